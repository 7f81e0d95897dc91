"""Kernel features that a lab may need, each with a function that tries it as root.

Such a function returns a short description (or None), raises Missing or OSError when the feature
does not work, and leaves nothing behind.
"""

import os
import secrets
import shlex
import sys
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path

from labbook.lab import deadline
from labbook.lab.disk import loop_device, tracefs
from labbook.lab.host import fuse
from labbook.lab.link.on_host import delayline
from labbook.lab.link.shaping import TRY_NETEM

CGROUPS = Path("/sys/fs/cgroup")
# On the disk of the labs' folder. It is root's alone: in /var/tmp others could plant what root opens.
SCRATCH = Path("/var/lib/labbook/.probes")
PREFIX = "labbook-probe-"
SECONDS = 20    # for one command; each takes hundredths of a second
MEBIBYTE = 1 << 20
KERNEL = "Use a kernel that has it: the standard one of Debian or Ubuntu, not the cloud or minimal one"


class Missing(Exception):
    """A feature does not work: why, and a remedy where the usual one does not fit."""

    def __init__(self, why, remedy=""):
        super().__init__(why)
        self.remedy = remedy


def _run(command: str) -> str:
    """Output of a command; Missing, with the package to install, when it fails or is not there."""
    arguments = shlex.split(command)
    try:
        return deadline.run(*arguments, seconds=SECONDS, name=command)
    except FileNotFoundError:
        raise Missing(f"no command {arguments[0]}", _install(arguments[0])) from None
    except OSError as error:
        reason = str(error).removeprefix(f"{command}: ")
    absent = next((command for command in PACKAGE_OF
                   if f"{command}: not found" in reason or f"execute {command}:" in reason), None)
    raise Missing(reason[-300:] or f"`{command}` failed", _install(absent) if absent else "")


PACKAGE_OF = {"unshare": "util-linux", "losetup": "mount", "mount": "mount",
              "ip": "iproute2", "tc": "iproute2", "iptables": "iptables"}


def _install(command):
    return f"Type: apt-get install {PACKAGE_OF[command]}" if command in PACKAGE_OF else ""


def _in_namespaces(script: str, namespaces="--net") -> str:
    """Run a shell script in namespaces of its own."""
    return _run(f"unshare {namespaces} sh -ec {shlex.quote(script)}")


def _root():
    return "root" if "SUDO_UID" not in os.environ else "passwordless sudo"


def _namespaces():
    _in_namespaces("ip link add br0 type bridge\n"
           "ip link add veth0 type veth peer name veth1\n"
           "mount -t proc proc /proc\nmount -t tmpfs tmpfs /mnt",
           "--net --mount --uts --ipc --pid --fork --kill-child")


def _netem():
    _run(TRY_NETEM)


def _tbf():
    _in_namespaces("tc qdisc add dev lo root tbf rate 10mbit burst 15000 latency 50ms")


def _nfqueue():
    """The firewall rule and the delay line itself."""
    line = shlex.join([sys.executable, "-I", "-S", delayline.__file__, "--queue", "7", "--try"])
    _in_namespaces(f"iptables -w -t mangle -A POSTROUTING -o lo -j NFQUEUE --queue-num 7\n{line} >&2")


def _fuse():
    _in_namespaces(fuse.TRY, "--mount")


def _delay():
    """netem or, without it, the delay line."""
    try:
        _netem()
        return "netem"
    except Missing:
        _nfqueue()
        return "delay line (this kernel has no netem)"


def _cgroup(controller, knob1, knob2):
    """A function that makes a cgroup, checks that it has the limit's file, and removes it."""
    def attempt():
        if (CGROUPS / "cgroup.controllers").exists():
            with _enabled(controller), _folder(CGROUPS) as group:
                _require_file(group / knob2)
            return "cgroup v2"
        hierarchy = CGROUPS / {"io": "blkio"}.get(controller, controller)
        if not hierarchy.is_dir():
            raise Missing(f"no cgroup controller {controller} in {CGROUPS}")
        with _folder(hierarchy) as group:
            _require_file(group / knob1)
        return "cgroup v1"
    return attempt


@contextmanager
def _enabled(controller):
    """Enable a cgroup v2 controller for children of the root group; disable it after, if it was off."""
    control = CGROUPS / "cgroup.subtree_control"
    if controller not in (CGROUPS / "cgroup.controllers").read_text().split():
        raise Missing(f"no cgroup controller {controller}")
    was = controller in control.read_text().split()
    control.write_text(f"+{controller}")
    try:
        yield
    finally:
        if not was:
            with suppress(OSError):     # in use by others by now
                control.write_text(f"-{controller}")


@contextmanager
def _folder(parent):
    """A cgroup's folder. (tempfile would try to delete the files in it.)"""
    place = parent / f"{PREFIX}{secrets.token_hex(4)}"
    place.mkdir()
    try:
        yield place
    finally:
        place.rmdir()


def _require_file(path):
    if not path.exists():
        raise Missing(f"no {path.name} in cgroups here")


def _with_loop(look):
    """A function that returns `look(/sys/block/loopN)` for a small scratch disk."""
    def attempt():
        SCRATCH.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=SCRATCH.resolve(), prefix=PREFIX) as file:
            file.truncate(4 * MEBIBYTE)
            device = _run(f"losetup --find --show --direct-io=on {file.name}").strip()
            try:
                return look(Path("/sys/block", Path(device).name))
            finally:
                _run(f"losetup --detach {device}")
    return attempt


def _direct(block):
    if (block / "loop/dio").read_text().strip() != "1":
        raise Missing(f"loop devices do no direct I/O on the file system of {SCRATCH.parent}",
                      "Put the labs' folder on ext4 or xfs")
    return "direct I/O"


def _schedulers(block):
    offered = (block / "queue/scheduler").read_text().replace("[", "").replace("]", "").split()
    if len(offered) < 2:
        raise Missing(f"only {' '.join(offered)}")
    return " ".join(offered)


def clear_leftovers() -> None:
    """Remove what a killed probe left. Only one process may probe at a time."""
    for file in SCRATCH.resolve().glob(f"{PREFIX}*"):
        for device in loop_device.devices(str(file)):
            loop_device.detach(device)
        file.unlink()
    with suppress(OSError):
        SCRATCH.rmdir()
    with suppress(OSError):
        tracefs.undo(*tracefs.instances(PREFIX))
    for group in [*CGROUPS.glob(f"{PREFIX}*"), *CGROUPS.glob(f"*/{PREFIX}*")]:
        group.rmdir()


def _traced(block):
    """A request of a disk shows up in a tracing instance."""
    major, minor = map(int, (block / "dev").read_text().split(":"))
    name = f"{PREFIX}{secrets.token_hex(4)}"
    _in_namespaces(f"{tracefs.TRY}\n"
           f"cd {tracefs.FOLDER}/instances; mkdir {name}; trap 'rmdir {name}' EXIT\n"
           f"for event in {tracefs.EVENTS}; do\n"
           f"echo 'dev == {major << 20 | minor}' > {name}/events/block/$event/filter\n"
           f"echo 1 > {name}/events/block/$event/enable; done\n"
           f"dd if=/dev/{block.name} of=/dev/null bs=4096 count=1 iflag=direct status=none\n"
           f"for event in {tracefs.EVENTS}; do\n"
           f"grep -q $event: {name}/trace || {{ echo $event was not seen >&2; exit 1; }}; done",
           "--mount")


ROOT_REMEDY = "Run as root, or give yourself passwordless sudo: `sudo -n true` must succeed"
CGROUP_REMEDY = "Mount cgroups with this controller: Debian 12 and Ubuntu 22.04 do so by default"

PROBES = {
    "root": (_root, ROOT_REMEDY),
    "namespaces": (_namespaces, f"{KERNEL}; in a container, run on the machine itself"),
    "delay": (_delay, KERNEL),
    "netem": (_netem, "Optional: without it a delay line is used; on Ubuntu, "
                      "apt-get install linux-modules-extra-$(uname -r) installs it"),
    "nfqueue": (_nfqueue, KERNEL),
    "tbf": (_tbf, KERNEL),
    "cgroup cpu": (_cgroup("cpu", "cpu.cfs_quota_us", "cpu.max"), CGROUP_REMEDY),
    "cgroup cpuset": (_cgroup("cpuset", "cpuset.cpus", "cpuset.cpus"), CGROUP_REMEDY),
    "cgroup memory": (_cgroup("memory", "memory.limit_in_bytes", "memory.max"), CGROUP_REMEDY),
    "cgroup io": (_cgroup("io", "blkio.throttle.read_iops_device", "io.max"), CGROUP_REMEDY),
    "loop": (_with_loop(_direct), f"{KERNEL}; in a container, run on the machine itself"),
    "schedulers": (_with_loop(_schedulers), KERNEL),
    "fuse": (_fuse, "Type: modprobe fuse; in a container, run on the machine itself"),
    "block trace": (_with_loop(_traced), f"{KERNEL}; in a container, run on the machine itself"),
}
