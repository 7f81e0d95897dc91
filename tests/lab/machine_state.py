"""What a machine has that a lab could leave: read from the kernel, without the code under test.

`snapshot()` before and `left(before)` afterwards compare a whole machine. On one that others use, too,
`left` leaves out what the labs of other living processes have.
"""

import os
import subprocess
import time
from pathlib import Path

from other_labs import RECORDS, OtherLabs, namespaces
from traces_left import instances

MARK = "LABBOOK_TRACE"      # a variable that whoever compares gives to all that he starts
ENDING_S = 15               # processes that were killed take a moment to go
STATE = Path("/var/lib/labbook")
SHARED = (Path("/run"), Path("/var/tmp"), Path("/run/lock"), Path("/dev/shm"))   # /tmp: see `folders`
CONNECTIONS = Path("/sys/fs/fuse/connections")
TABLES = (["ip", "-o", "link"], ["ip", "-4", "route", "show", "table", "all"], ["ip", "rule"],
          ["iptables-save"], ["ip6tables-save"], ["nft", "list", "ruleset"])
DOMAINS = ["virsh", "-c", "qemu:///system", "list", "--all", "--name"]
PROGRAMS = STATE / ".programs"     # what was compiled once
LOCKS = RECORDS / ".locks"      # the files of locks stay; the kernel frees a lock whose holder was killed
STAYS = {RECORDS, RECORDS / "probes.json", LOCKS, *(LOCKS / name for name in ("labs", "probes", "install"))}
COUNTERS = ("expires", "packets", "# ")     # lines of a firewall that change by themselves


def snapshot(folders=(), mark: str = "") -> set[str]:
    """All there is, as lines. `folders`: whose files count, too, such as that for temporary files, since
    others have theirs in /tmp; `mark`: value of MARK of our processes."""
    return {*_files(folders), *_kernel(), *_tables(), *_processes(mark)}


def left(before: set[str], folders=(), mark: str = "") -> list[str]:
    """What is there now and was not in `before`, once what was killed has gone."""
    until = time.monotonic() + ENDING_S
    while (found := _not_of_others(snapshot(folders, mark) - before, mark)) and time.monotonic() < until:
        time.sleep(0.2)
    return sorted(found)


def _files(folders):
    for folder in (RECORDS, STATE, *map(Path, folders)):
        for parent, folders_in, files in os.walk(folder):      # passes by what cannot be read, such as a dead FUSE mount
            yield from (f"file {path}" for name in folders_in + files
                        if (path := Path(parent, name)) not in STAYS and PROGRAMS not in (path, path.parent))
    for folder in SHARED:
        yield from (f"file {path}" for path in folder.glob("*labbook*") if path != RECORDS)


def _kernel():
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields, _, kind = line.partition(" - ")
        yield f"mount {fields.split()[4]} {kind}"
    for path in Path("/sys/block").glob("loop*/loop/backing_file"):
        yield f"loop device on {_text(path)}"
    for path in Path("/sys/fs/cgroup").rglob("*labbook*"):
        if path.is_dir():
            yield f"control group {path}"
    yield from (f"network namespace {path.name}" for path in Path("/run/netns").glob("*"))
    yield from (f"FUSE connection {number}" for number in connections())
    yield from (f"trace {name}" for name in instances())
    yield from (f"domain {name}" for name in _output_lines(DOMAINS))


def connections() -> set[str]:
    """Numbers of the machine's FUSE connections."""
    look = f"mount -t fusectl fusectl {CONNECTIONS} 2> /dev/null; ls {CONNECTIONS}"
    return set(_output_lines([*_root(), "unshare", "--mount", "sh", "-c", look]))


def _tables():
    for command in TABLES:
        for line in _output_lines([*_root(), *command]):     # of a firewall only root sees anything
            if not any(word in line for word in COUNTERS):
                yield f"{' '.join(command[:3])}: {_plain(line)}"


def _plain(line: str) -> str:
    """A line without an interface's number, and a firewall's chain without its counters."""
    number, colon, rest = line.partition(": ")
    line = rest if colon and number.isdigit() else line
    return line.partition(" [")[0] if line.startswith(":") else line.strip()


def _processes(mark):
    """Processes with our mark, a lab's files in their command, or in namespaces of their own without a
    living ancestor that started them."""
    for process in Path("/proc").glob("[0-9]*"):
        pid = process.name
        try:
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
            started = (process / "stat").read_text().rpartition(")")[2].split()[19]
        except OSError:
            continue
        marked = _is_ours(pid, mark)    # of other users' processes it is not known: these are known by their command
        if pid == str(os.getpid()) or not command:     # this one; a thread of the kernel, or a zombie
            continue
        if marked or f"{RECORDS}/" in command or (parent == 1 and namespaces(pid)):
            yield f"process {pid} of {started}: {command[:1000]}"


def has_mark(pid, mark: str) -> bool:
    """Whether a process was started with our mark. OSError when it has ended."""
    return bool(mark) and f"{MARK}={mark}\0".encode() in Path(f"/proc/{pid}/environ").read_bytes()


def _not_of_others(found: set[str], mark: str) -> set[str]:
    """Without what the labs of other living processes have."""
    if not found:
        return found
    others = OtherLabs(is_ours=lambda pid: _is_ours(pid, mark))
    return {thing for thing in found if not others.have(thing)}


def _is_ours(pid: int, mark: str) -> bool:
    try:
        return has_mark(pid, mark)
    except OSError:
        return False


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _output_lines(command) -> list[str]:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20).stdout.splitlines()
    except (OSError, subprocess.TimeoutExpired):
        return []


def _root() -> list[str]:
    return ["sudo", "-n"] if os.geteuid() else []
