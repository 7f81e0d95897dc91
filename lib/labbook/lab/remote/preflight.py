"""Check all hosts of a study before anything starts on any of them. Changes nothing there."""

import shlex
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import PurePosixPath

import paramiko

from labbook.errors import LabError
from labbook.lab import clock
from labbook.lab.environment.inventory import Jump, RealHost
from labbook.lab.finding import Finding
from labbook.lab.host.host import Host
from labbook.lab.remote import probe, software
from labbook.lab.remote.assign import match
from labbook.lab.remote.checks import check_host
from labbook.lab.remote.claim import look
from labbook.lab.remote.diagnose import FORBIDDEN, unreachable
from labbook.lab.remote.needs import HostNeeds, host_requests, modelled_packages, named_packages, require_allowed
from labbook.lab.remote.wheels import check_kind
from labbook.lab.ssh import connection as ssh

AT_ONCE = 32
CLOCK_SECONDS = 1.0     # a larger offset is reported
# Whether an address answers: a refused connection is an answer too.
REACH = """reach() { ping -n -q -c 1 -W 2 "$1" > /dev/null 2>&1 && return 0
error=$(LC_ALL=C timeout 3 bash -c "exec 3<> /dev/tcp/$1/$2" 2>&1) && return 0
case "$error" in *refused*) return 0;; esac; return 1; }
{ @CALLS@
wait; } 2> /dev/null
"""


def require(description, environment, needs=None) -> list[Finding]:
    """Findings, when all are ok; LabError with all problems otherwise. InputError for what the
    environment file does not have or allow. `needs` as for `examine`."""
    matched = match(description, environment)
    require_allowed(description, matched, environment)
    seen = examine(description, environment, needs)
    problems = [one.words() for one in seen if not one.ok]
    if problems:
        raise LabError(f"{environment.file}: study {description.name} cannot run on these hosts yet"
                       "\n  " + "\n  ".join(problems))
    return seen


def examine(description, environment, needs=None, profile="quick") -> list[Finding]:
    """Findings about each host of a study; the hosts are asked in parallel.

    needs: {lab host: HostNeeds} of its systems and programs, in addition to lab.yml. profile: the one whose data
    must find room on the disks. InputError when the environment's hosts cannot make up the study's lab.
    """
    matched = match(description, environment)
    wants = _wants(description, matched, needs or {}, profile)
    reals = list({real.name: real for real in matched.values()}.values())
    closed = _closed_jumps(reals)
    seen = list(closed.values())
    open_to = [real for real in reals if not any(j in closed for j in _jumps_to(real))]
    hosts = {real: _host(real) for real in open_to}
    try:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            looks = list(pool.map(lambda real: _look(hosts[real], real, wants[real.name]), open_to))
            alive = [real for real, (ok, _) in zip(open_to, looks) if ok]
            seen += [one for _, found in looks for one in found]
            seen += [one for found in pool.map(
                lambda real: _mutual(hosts[real], real, alive), alive) for one in found]
    finally:
        for host in hosts.values():
            with suppress(Exception):
                host.close()
    return seen


def _wants(description, matched, needs, profile="quick") -> dict[str, HostNeeds]:
    asks = host_requests(description, matched)
    wants = {name: HostNeeds(asks[name], named_packages(description) | modelled_packages(asks[name]),
                         disk_bytes=description.disk_bytes(profile)) for name in asks}
    for lab_host, real in matched.items():
        mine, more = wants[real.name], needs.get(lab_host, HostNeeds())
        mine.packages |= more.packages
        mine.commands |= more.commands
        mine.folders |= more.folders
        mine.programs |= more.programs
        # root's work for limits, links and disks is in Python
        mine.python |= more.python or mine.programs or bool(mine.request.of or mine.folders)
    return wants


def _jumps_to(place: Jump) -> list[Jump]:
    """The jump hosts on the way, the first one first."""
    return [*_jumps_to(place.jump), place.jump] if place.jump else []


def _closed_jumps(reals) -> dict[Jump, Finding]:
    """Jump hosts that cannot be reached: reported once, not for each host behind."""
    closed = {}
    rounds = max((len(_jumps_to(real)) for real in reals), default=0)
    for depth in range(rounds):
        there = {way[depth] for real in reals if len(way := _jumps_to(real)) > depth}
        tried = sorted((j for j in there if not any(b in closed for b in _jumps_to(j))),
                       key=lambda j: j.name)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for jump, error in zip(tried, pool.map(_try, tried)):
                if error is not None:
                    closed[jump] = unreachable(jump, error)
    return closed


def _try(place) -> Exception | None:
    try:
        ssh.close(ssh.connect(place.name, place.login))
    except LabError as error:
        return error
    return None


def _host(real: RealHost) -> Host:
    return Host(real.name, real.site, "", real.data, real.login, PurePosixPath("/"), real.python,
                sudo=bool(real.allow))


def _look(host, real, wants) -> tuple[bool, list[Finding]]:
    """(whether commands can be run there, findings)."""
    try:
        host.connection()
    except LabError as error:
        return False, [unreachable(real, error)]
    try:
        done = host.run(probe.script(real, wants), timeout=probe.SECONDS, check=False)
        found = probe.parse(done.stdout)
    except (LabError, ValueError) as error:
        return False, [_no_shell(real, error)]
    seen = check_host(real, found, wants)
    if found.system != "Linux":     # what follows asks it as a Linux
        return False, seen
    try:
        for check in (_root, _clock, _channels, *([_programs] if wants.programs else [])):
            seen += check(host, real)
    except (LabError, ValueError, *ssh.LOST) as error:
        return False, [*seen, _broken_off(real, error)]
    return True, seen


def _programs(host, real) -> list[Finding]:
    """Whether the host's Python can run the library's programs, with packages copied or present."""
    try:
        there = software.ask(host, real.python)
    except LabError:  # no Python, which is a finding already
        return []
    try:
        if real.may("software"):
            check_kind(host.name, there)
            return []
        missing, remedy = software.lacks(there) or ("", "")
    except LabError as error:
        missing, remedy = error.message, error.remedy
    return [Finding(f"{real.entry}.python", "the library and its packages", not missing,
                    "clients and stand-ins for servers are programs of it", missing,
                    missing and f"Allow software, or have there: {remedy}")]


def _broken_off(real, error) -> Finding:
    """Of a host that stopped answering after its first answer, or gave one that cannot be read."""
    reason = error.message if isinstance(error, LabError) else str(error) or type(error).__name__
    return Finding(real.entry, "answers to all checks", False, "a host is used only if it passes all of them", reason,
                   getattr(error, "remedy", None) or "")


def _no_shell(real, error) -> Finding:
    reason = error.message if isinstance(error, LabError) else f"it began with {str(error)!r}"
    return Finding(f"{real.entry}.user", "a shell that takes commands", False,
                   "all is done by commands of sh over SSH", reason,
                   f"Give {real.user} sh or bash as login shell, and see that `ssh {real.user}@"
                   f"{real.address} true` prints nothing (its .bashrc may)")


def _root(host, real) -> list[Finding]:
    """The root folder's owner, and whether another lab uses the host now."""
    try:
        in_use = look(host, real.root, "none").in_use
    except LabError as error:
        return [Finding(f"{real.entry}.root", "a root folder of one's own", False,
                        "what a lab leaves there is found again and taken away", error.message,
                        error.remedy)]
    if in_use is None:
        return []
    return [Finding(real.entry, "in use", True, "its root folder serves one lab at a time",
                    f"lab {in_use['lab']} of {in_use['by']}, since {in_use['time']}")]


def _clock(host, real) -> list[Finding]:
    """The offset of its clock, when it is large."""
    offset, uncertainty = clock.measure(lambda: float(host.run("date +%s.%N").stdout), rounds=1)
    if abs(offset) - uncertainty <= CLOCK_SECONDS:
        return []
    way = "ahead of" if offset > 0 else "behind"
    return [Finding(real.entry, "clock", True, "starts are corrected by it; logs are not",
                    f"{abs(offset):.1f} s {way} this machine's")]


def _channels(host, real) -> list[Finding]:
    """Whether SFTP and forwarded connections work."""
    try:
        with ssh.sftp(host, "reach", "/") as files:
            files.stat("/")
        host.connection().transport.open_channel(
            "direct-tcpip", (real.data, real.port), ("127.0.0.1", 0), timeout=10).close()
    except LabError as error:
        return [Finding(f"{real.entry}.user", "files over SSH (SFTP)", False,
                        "settings and programs are written with it", error.message,
                        "Add to its sshd_config: Subsystem sftp internal-sftp")]
    except paramiko.ChannelException as error:  # it may be that nothing listens there, which is fine
        if error.code == FORBIDDEN:
            return [Finding(f"{real.entry}.user", "connections through SSH", False,
                            "servers are asked whether they are ready through it",
                            "its sshd forbids it", "Set AllowTcpForwarding yes in its sshd_config")]
    except paramiko.SSHException as error:
        if not host.connected:
            raise
        return [Finding(f"{real.entry}.data", f"data address {real.data}, from {real.name}", False,
                        "servers are asked there whether they are ready", f"does not answer: {error}",
                        "Write down one of its own addresses, and see that no firewall drops what it sends there")]
    return []


def _mutual(host, real, others) -> list[Finding]:
    """Whether it reaches the data addresses of the other hosts."""
    others = [other for other in others if other is not real]
    if not others:
        return []
    calls = "\n".join(f"{{ reach {shlex.quote(o.data)} {o.port} && echo {o.data}; }} &"
                      for o in others)
    try:
        reached = host.run(REACH.replace("@CALLS@", calls), timeout=60, check=False).stdout.split()
    except LabError as error:
        return [Finding(real.entry, "reaches the others", False, "", error.message)]
    lost = [other for other in others if other.data not in reached]
    return [Finding(f"{other.entry}.data", f"data address {other.data}, from {real.name}", False,
                    "servers and clients of a study call one another", "no answer to ping nor TCP",
                    "See that the hosts share this network and that no firewall lies between")
            for other in lost]
