"""System calls that Python's standard library lacks, by ctypes, and facts from /proc."""

import ctypes
import os
import platform
import re
import signal

_libc = ctypes.CDLL(None, use_errno=True)
_CLONE = {"x86_64": 56, "aarch64": 220, "riscv64": 220, "ppc64le": 120, "s390x": 120}

NEWNS, NEWUTS, NEWIPC, NEWPID, NEWNET = (
    0x00020000, 0x04000000, 0x08000000, 0x20000000, 0x40000000)
SANDBOX = NEWNS | NEWUTS | NEWIPC | NEWPID | NEWNET

RDONLY, NOSUID, NODEV, NOEXEC, REMOUNT = 1, 2, 4, 8, 32
NOATIME, NODIRATIME, BIND, REC, PRIVATE = 1024, 2048, 4096, 16384, 1 << 18
RELATIME = 1 << 21
DETACH = 2


def _checked(result, what):
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def mount(source, target, kind=None, flags=0, data=None):
    encoded = [None if x is None else os.fsencode(str(x)) for x in (source, target, kind, data)]
    _checked(_libc.mount(encoded[0], encoded[1], encoded[2], ctypes.c_ulong(flags), encoded[3]),
             f"mount {source} on {target}")


def umount(target, flags=DETACH):
    _checked(_libc.umount2(os.fsencode(str(target)), flags), f"umount {target}")


def unescaped(field: str) -> str:
    r"""A path of mountinfo, which writes a space as \040."""
    return re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), field)


def mounts(text: str) -> list[tuple[str, str, str]]:
    """(device's major:minor, where it is mounted, type and all that follows it) of the lines of a mountinfo."""
    found = []
    for line in filter(None, text.split("\n")):
        fields, _, kind = line.partition(" - ")
        fields = fields.split()
        found.append((fields[2], unescaped(fields[4]), kind))
    return found


def read_mounts(pid: int | str = "self") -> str:
    """The mountinfo of a process; OSError when it has ended."""
    with open(f"/proc/{pid}/mountinfo", errors="surrogateescape", newline="\n") as file:
        return file.read()


def fork_into(namespaces: int) -> int:
    """Like os.fork; the child is the first process of new namespaces. Needs a single thread."""
    number = _CLONE.get(platform.machine())
    if number is None:
        raise OSError(f"no clone call known for {platform.machine()}")
    flags = ctypes.c_ulong(namespaces | signal.SIGCHLD)
    # s390x takes the stack first
    first, second = (0, flags) if platform.machine() == "s390x" else (flags, 0)
    return _checked(_libc.syscall(number, first, second, 0, 0, 0), "clone")


def find_tools() -> None:
    """Add the folders of ip, tc, losetup and mkfs to PATH, which may be a normal user's."""
    os.environ["PATH"] = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"


def start_time(pid: int) -> int | None:
    """Clock ticks since boot at which a process started, which with its pid identifies it; None when
    it has ended."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            fields = stat.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def command(pid: int | str) -> str:
    """The command of a process, shortened; "ended" when there is none."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            arguments = file.read().replace(b"\0", b" ").decode(errors="replace").split()
    except OSError:
        arguments = []
    line = " ".join(arguments) or "ended"
    return line if len(line) <= 80 else f"{line[:77]}..."


def boot_id() -> str:
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()
