"""The driver's side of the namespaces provider: sends requests to the privileged helper."""

import json
import os
import sys
from pathlib import Path, PurePosixPath

from labbook.errors import LabError
from labbook.lab import deadline
from labbook.lab.disk import modelled
from labbook.lab.host.host import Host
from labbook.lab.local import access, cgroups, cores, root
from labbook.lab.local.root import STATE
from labbook.lab.local.sandbox import ROOT
from labbook.lab.local.standing import Standing
from labbook.lab.ssh import config

NAME = "namespaces"
LIB = Path(__file__).resolve().parents[3]
PROGRAM = ("import sys; sys.path.insert(0, sys.argv[1]); "
           "from labbook.lab.local.root import main; main()")
STANDING = ("import sys; sys.path.insert(0, sys.argv[1]); "
            "from labbook.lab.local import root; root.serve()")
LIMIT = root.SECONDS + 60  # seconds for a request; the helper ends before by itself
SUDO = "labbook needs root or passwordless sudo: `labbook doctor` says what is missing"


def helper(do: str, **request) -> dict:
    """Run the privileged helper for one request: its answer. LabError with its message."""
    code, output, complaint = _ask(_command(PROGRAM), json.dumps({"do": do, **request}))
    if code:
        raise LabError(f"the privileged helper failed: {complaint.strip() or code}",
                       remedy=SUDO if os.geteuid() != 0 else None)
    return _checked(json.loads(output))


def _quickly(do: str, **request) -> dict:
    """As `helper`, by the one that stands by, for requests that a measurement makes again and again."""
    answer = _standing.ask({"do": do, **request}, LIMIT)
    return helper(do, **request) if answer is None else _checked(answer)


def _checked(answer: dict) -> dict:
    if "error" in answer:
        raise LabError(answer["error"])
    return answer


def _command(program: str) -> list[str]:
    as_root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    # isolated: a file of the working folder, which others may write to, must not be imported by root
    return [*as_root, sys.executable, "-I", "-S", "-c", program, str(LIB)]


_standing = Standing(_command(STANDING))


def _ask(command, request):
    """(exit code, stdout, stderr). Ctrl-C takes effect after the helper's end."""
    try:
        return deadline.to_its_end(command, request, LIMIT)
    except FileNotFoundError as error:
        raise LabError(f"no command {error.filename}", remedy=SUDO) from None
    except deadline.Overdue:
        raise LabError(f"the privileged helper did not end within {LIMIT} s",
                       remedy="See `ps` for what it waits for, then try again") from None


def open_state(lab_id: str) -> Path:
    """Make the lab's state folder, owned by this user, if need be."""
    request = {"lab": lab_id, "uid": os.getuid(), "gid": os.getgid()}
    if os.geteuid() != 0:
        return Path(helper("open", **request)["folder"])
    try:
        return Path(root.open_state(**request)["folder"])
    except (OSError, ValueError) as error:
        raise LabError(str(error)) from None


def state_folder(lab_id: str) -> Path:
    """Where the lab's state is kept; it may not exist."""
    return STATE / lab_id


def folders() -> list[Path]:
    """State folders of the labs of this machine that this user may take down."""
    return sorted(f for f in STATE.glob("[a-z0-9]*") if f.is_dir() and os.getuid() in (0, _owner(f)))


def clear_trash() -> None:
    """Delete what a helper that was killed did not delete of a lab that is down."""
    if any(os.getuid() in (0, _owner(folder)) for folder in STATE.glob(root.TRASH)) or root.forgotten_locks():
        helper("clear")


def _owner(folder):
    try:
        return folder.stat().st_uid
    except FileNotFoundError:
        return None


def up(lab_id: str, description, environment) -> dict:
    """Make a lab; return the facts of its hosts once every host answers over SSH."""
    folder = state_folder(lab_id)
    access.make_keys(folder)
    made = _make(lab_id, description, environment)
    access.await_answers(made["hosts"], folder)
    access.write_known_hosts(made["hosts"], folder)
    config.write({host["name"]: access.login(host, folder) for host in made["hosts"]}, folder)
    return made


def _make(lab_id, description, environment) -> dict:
    plan = {
        "lab": lab_id, "sites": list(description.sites),
        "links": [list(link["between"]) for link in description.links],
        "hosts": [{"name": h.name, "site": h.site, "role": h.role, "limits": h.limits}
                  for h in description.hosts],
        "sees": [sys.prefix, sys.base_prefix, str(LIB)], "library": str(LIB),
        "share_cores": cores.are_shared(),
    }
    owner = {"uid": os.getuid(), "pid": os.getpid(), "study": description.name}
    return helper("up", plan=plan, range=environment.range, state=environment.state, owner=owner)


def require_cores(count: int) -> None:
    """LabError, which says who has them, when a lab would not get so many cores of its own now."""
    if count:
        helper("cores", asked=count, share_cores=cores.are_shared())


def host(made: dict, folder: Path) -> Host:
    return Host(made["name"], made["site"], made["role"], made["address"],
                access.login(made, folder), PurePosixPath(ROOT), sys.executable, made["cores"], made["limits"])


def limit(lab_id: str, host: Host, quota: float | None) -> None:
    _quickly("limit", lab=lab_id, uid=os.getuid(), host=host.name, quota=quota)


def freeze(lab_id: str, hosts: list[Host], frozen: bool) -> None:
    """Freeze hosts that have a freezer, or thaw them."""
    _quickly("freeze", lab=lab_id, uid=os.getuid(), hosts=[host.name for host in hosts], frozen=frozen)


def trace(lab_id: str, host: Host) -> str:
    """Write a tracing instance for a host's disk into the journal; return its name."""
    return _quickly("trace", lab=lab_id, uid=os.getuid(), host=host.name)["instance"]


def ask_disk(lab_id: str, host: Host, command: str) -> dict:
    """The answer of a host's modelled disk; LabError, with its last words, when there is none."""
    own = modelled.places(host.name, state_folder(lab_id))
    try:
        return modelled.ask(own["socket"], command)
    except OSError as error:
        raise LabError(f"{error}; it said: {modelled.complaints(own['complaints'])}") from None


def served_log(lab_id: str, host: Host) -> bytes:
    """The log of served requests of a host's modelled disk."""
    return modelled.places(host.name, state_folder(lab_id))["log"].read_bytes()


def ended_for_memory(lab_id: str, host: Host) -> int:
    return cgroups.ended_for_memory(lab_id, host.name)


def space_below(made: dict, host: Host) -> int:
    """KiB that are left on the machine's disk below a host's own; `made`: an entry of what `up` returned."""
    state = os.statvfs(Path(made["folder"]).parents[1])
    return state.f_bavail * state.f_frsize // 1024


def down(lab_id: str) -> None:
    """Undo all that the lab's journal names; LabError says what is left."""
    _standing.close()
    problems = helper("down", lab=lab_id, uid=os.getuid())["problems"]
    if problems:
        raise LabError(f"lab {lab_id} is not wholly down: " + "; ".join(problems),
                       remedy=f"try again: labbook down {lab_id}")
