"""`labbook doctor --fleet` and `labbook install --fleet`: look at all machines of a fleet at once, and prepare them."""

import json
import secrets
import shlex
import subprocess
import sys
import tarfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from labbook import colour, paths
from labbook.errors import LabbookError, LabError
from labbook.lab.ssh import connection as ssh
from labbook.pipeline.fleet import fitness, on_machine
from labbook.pipeline.fleet.file import Fleet
from labbook.pipeline.setup.requirements import EVERY_LAB
from labbook.pipeline.sources import notebooks

AT_ONCE = 16
LOOK_SECONDS, DOCTOR_SECONDS, INSTALL_SECONDS = 60, 300, 3600
MARK_MINUTES = 60       # longer than a checkout is copied
OLD_MARKS = f"find build -maxdepth 1 -name '.copying-*' -mmin +{MARK_MINUTES} -delete"
CHUNK = 1 << 18
ABOUT = ("import json, sys; from labbook.pipeline.fleet import on_machine; "
         "print(json.dumps(on_machine.about(sys.argv[1:])))")
_connections = set()    # those that are open, see _of_each
UNDER_WAY = "from labbook.pipeline.fleet import on_machine; print(on_machine.under_way() or '')"


@dataclass
class Seen:
    """What was found of a machine. problem: why nothing more was; studies: {name: what it lacks, [] for nothing}."""

    name: str
    problem: str | None = None
    remedy: str = ""
    about: dict = field(default_factory=dict)
    studies: dict = field(default_factory=dict)


def doctor(studies, file, as_json=False, profile="quick") -> int:
    """Print what each machine of a fleet lacks; 1 if any study finds no machine, or a machine cannot be used."""
    fleet, studies = Fleet.load(file), notebooks.selected(studies)
    compare = fitness.Fitness(studies, {one.name: one.studies for one in fleet.machines})
    seen = _of_each(fleet.machines, lambda machine: _look(machine, studies, profile))
    for one in seen:
        _judge(one, compare, studies)
    if as_json:
        print(json.dumps({"fleet": fleet.name, "machines": [vars(one) for one in seen]}, indent=1))
    else:
        print(colour.words("\n".join(_lines(seen, studies)), sys.stdout))
    measured = {study for one in seen for study, missing in one.studies.items() if not missing}
    return int(any(one.problem for one in seen) or measured != set(studies))


def _of_each(machines, action) -> list:
    """`action(machine)` of all, AT_ONCE at a time. On Ctrl-C the connections are closed, so that what waits for a
    command on a machine ends at once; the command goes on there until it writes to the closed connection."""
    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        return list(pool.map(action, machines))
    except KeyboardInterrupt:
        print("labbook: stopping; what was begun on machines may go on there", file=sys.stderr, flush=True)
        pool.shutdown(wait=False, cancel_futures=True)
        for connection in list(_connections):
            ssh.close(connection)
        raise
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _connect(machine):
    connection = ssh.connect(machine.name, machine.login)
    _connections.add(connection)
    return connection


def _close(connection) -> None:
    _connections.discard(connection)
    ssh.close(connection)


def _look(machine, studies, profile) -> Seen:
    seen = Seen(machine.name)
    try:
        connection = _connect(machine)
    except LabError as error:
        seen.problem, seen.remedy = error.message, "Check address, user, key and known_hosts in the fleet file"
        return seen
    try:
        code, output, complaint = _run(
            connection, machine, f".venv/bin/python -c {shlex.quote(ABOUT)} {' '.join(studies)}", DOCTOR_SECONDS)
        if code:
            seen.problem = _last(complaint) or f"its checkout does not answer (code {code})"
            seen.remedy = f"Type: labbook install --fleet FILE, with `allow: [code]` for {machine.name}"
            return seen
        seen.about = json.loads(output.strip().splitlines()[-1])
        code, output, complaint = _run(
            connection, machine, f".venv/bin/python -m labbook.cli doctor --json --profile {profile} "
            f"--environment {machine.environment} {' '.join(studies)}", DOCTOR_SECONDS)
        findings = json.loads(output)["findings"] if output.strip().startswith("{") else None
        if findings is None:
            seen.problem = _last(complaint) or "its `labbook doctor` failed"
        else:
            seen.studies = {study: [one["name"] for one in findings if not one["ok"] and (
                {study, EVERY_LAB} & set(one["studies"]) or not one["studies"])] for study in studies}
    except (ssh.TimedOut, *ssh.LOST, ValueError) as error:
        seen.problem = f"no answer: {str(error) or type(error).__name__}"
    finally:
        _close(connection)
    return seen


def _judge(seen: Seen, compare, studies) -> None:
    """Add why its code or versions do not do, to what each study lacks."""
    for study in studies if seen.about and not seen.problem else ():
        if why := compare.why_not(seen.name, study, seen.about):
            seen.studies[study] = [why, *seen.studies.get(study, [])]


def _lines(seen, studies):
    width = max(map(len, studies), default=0)
    for one in seen:
        if one.problem:
            yield f"{one.name}: MISSING: {one.problem}" + (f"\n{'':9}-> {one.remedy}" if one.remedy else "")
            continue
        of = one.about["machine"]
        yield f"{one.name}: {of['cores']} × {of['cpu']}, {of['memory_gib']} GiB, Linux {of['kernel']}, {of['system']}"
        for study in studies:
            missing = one.studies.get(study, [])
            yield f"  {study:<{width}}  " + (f"MISSING: {'; '.join(missing)}" if missing else "ready")
    kinds = {(one.about["machine"]["cpu"], one.about["machine"]["cores"]) for one in seen if one.about}
    if len(kinds) > 1:
        yield f"\nMachines of {len(kinds)} kinds: each verdict says what differs between them."


def install(studies, file, profile) -> int:
    """Prepare the machines that allow it for a profile; 1 if one of them could not be, with its reason."""
    fleet, studies = Fleet.load(file), notebooks.selected(studies)
    began = time.monotonic()
    with _marked() as mark:
        problems = [one for one in _of_each(
            fleet.machines, lambda machine: _prepare(machine, studies, profile, mark)) if one]
    for problem in problems:
        print(f"labbook: {problem}", file=sys.stderr)
    if not problems:
        print(f"{sum(bool(one.allow) for one in fleet.machines)} machines in {time.monotonic() - began:.0f} s; "
              f"labbook doctor --fleet {file} looks at them", file=sys.stderr)
    return int(bool(problems))


@contextmanager
def _marked():
    """The name of a file in this checkout while the block lasts. A machine with such a file in its checkout has this
    one, or that of another machine to which it is being copied."""
    mark = paths.checkout() / "build" / f".copying-{secrets.token_hex(8)}"
    mark.parent.mkdir(exist_ok=True)
    for old in mark.parent.glob(".copying-*"):      # of commands that were killed
        with suppress(FileNotFoundError):
            if time.time() - old.stat().st_mtime > MARK_MINUTES * 60:
                old.unlink()
    mark.touch()
    try:
        yield f"build/{mark.name}"
    finally:
        mark.unlink(missing_ok=True)


def _prepare(machine, studies, profile, mark) -> str | None:
    """Why a machine could not be prepared, or None."""
    if not machine.allow:
        print(f"{machine.name}: the fleet file allows nothing there", file=sys.stderr)
        return None
    try:
        connection = _connect(machine)
    except LabError as error:
        return error.message
    try:
        _require_idle(connection, machine)
        if machine.may("code"):
            _say(machine, "copying this checkout and making its Python environment")
            _send_checkout(connection, machine, mark)
            _must(connection, machine, "lib/bootstrap.sh", "making its Python environment")
        if machine.may("packages") and (mine := _allowed(machine, studies)):
            _say(machine, "installing what studies need")
            _must(connection, machine, f".venv/bin/python -m labbook.cli install --profile {profile} {' '.join(mine)}",
                  "installing")
    except (LabbookError, ssh.TimedOut, *ssh.LOST) as error:
        return f"{machine.name}: {str(error) or 'no answer in time'}"
    finally:
        _close(connection)
    return None


def _require_idle(connection, machine) -> None:
    """LabError while a job is under way, which would go on with another library. Where there is no checkout yet, or
    half of one, nothing is measured."""
    _, output, _ = _run(connection, machine, f".venv/bin/python -c {shlex.quote(UNDER_WAY)}", LOOK_SECONDS)
    if on_machine.JOB_ID.fullmatch(job := _last(output)):
        raise LabError(f"it measures job {job}", remedy="Wait until the run that drives it is over, or end that with "
                       "Ctrl-C; then type the same again")


def _say(machine, what):
    print(f"{machine.name}: {what}", file=sys.stderr, flush=True)


def _allowed(machine, studies) -> list:
    return [study for study in studies if machine.studies is None or study in machine.studies]


def _must(connection, machine, command, what) -> None:
    code, output, complaint = _run(connection, machine, command, INSTALL_SECONDS)
    if code:
        raise LabError(f"{what} ended with {code}: {_last(complaint) or _last(output)}")


def _run(connection, machine, command: str, seconds: float):
    """(code, stdout, stderr) of a command in the machine's checkout."""
    folder = shlex.quote(str(machine.checkout))
    line = f"cd {folder} && export LABBOOK_ROOT={folder} PATH=$PATH:/usr/sbin:/sbin && {command}"
    out, complaint, code = ssh.run(connection, line, seconds)
    return code, out, complaint


def _send_checkout(connection, machine, mark) -> None:
    """All that git knows here, as it is now, and what it does not know of studies' data is left alone there. `mark`:
    see _marked; it stays there while the files are copied. LabError where the machine has it already."""
    files = sorted(_tracked(), key=lambda name: name != "_toc.yml")     # first, since by it half a copy is known
    folder = shlex.quote(str(machine.checkout))
    out, complaint, code = ssh.run(connection, f"mkdir -p {folder} && cd {folder} && ls -A | head -n 50", LOOK_SECONDS)
    there = set(out.split())
    if there - {"build"} and "_toc.yml" not in there:
        raise LabError(f"{machine.checkout} is there, and is no checkout of labbook", remedy="Name another `checkout`")
    _, _, code = ssh.run(connection, f"cd {folder} && mkdir -p build && {OLD_MARKS} && set -C && : > {mark}",
                         LOOK_SECONDS)
    if code:
        raise LabError(f"{machine.checkout} is this checkout, or another machine's of this fleet: its files would be "
                       "removed while they are copied", remedy="Name another `checkout`, or allow no `code` there")
    try:
        _copy(connection, folder, files)
    finally:
        with suppress(LabbookError, ssh.TimedOut, *ssh.LOST):
            ssh.run(connection, f"rm -f {folder}/{mark}", LOOK_SECONDS)


def _copy(connection, folder, files) -> None:
    channel = connection.transport.open_session(timeout=LOOK_SECONDS)
    channel.settimeout(LOOK_SECONDS)
    # the library is replaced whole: a module that is gone here would change its fingerprint there
    with ssh.answered(channel):
        channel.exec_command(f"cd {folder} && rm -rf lib/labbook notebooks data/papers && tar -xzf - --no-same-owner")
    try:
        with channel.makefile("wb") as sink, tarfile.open(fileobj=sink, mode="w|gz", bufsize=CHUNK) as tar:
            for name in files:
                tar.add(paths.checkout() / name, arcname=name)
        channel.shutdown_write()
    except OSError:
        if not channel.exit_status_ready():     # the connection broke, or a file here cannot be read
            raise
    if (code := channel.recv_exit_status()) != 0:
        raise LabError(f"copying the checkout ended with {code}: its disk may be full")


def _tracked() -> list[str]:
    """Files of this checkout, from git; without git all but what is made here."""
    done = subprocess.run(["git", "-C", str(paths.checkout()), "ls-files", "-z", "--cached", "--others",
                           "--exclude-standard"], text=True, capture_output=True)
    if done.returncode:
        raise LabError("this checkout is in no git repository, so its own files are not known",
                       remedy="Copy it to the machines yourself")
    return [name for name in done.stdout.split("\0") if name and (paths.checkout() / name).is_file()]


def _last(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else ""
