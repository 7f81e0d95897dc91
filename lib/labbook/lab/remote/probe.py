"""Probe a host by one shell script, which changes nothing there, and parse its output."""

import shlex
from dataclasses import dataclass, field

from labbook.lab.disk import tracefs
from labbook.lab.host import fuse

BEGIN = "labbook\tbegins"
SECONDS = 60
# Commands that Host, Process, systems and workloads run, by Debian package.
TOOLS = {
    "coreutils": "cat cut date dirname head id mkdir mv nproc rm sleep sort tail test touch tr uname",
    "grep": "grep", "sed": "sed", "tar": "tar", "util-linux": "setsid",
    "procps": "pgrep pkill ps", "iproute2": "ip ss",
}
ROOTS_TOOLS = {   # by permission: commands that root runs
    "limits": {},
    "shape": {"iptables": "iptables iptables-restore"},
    "disk": {"mount": "losetup mount umount", "e2fsprogs": "mkfs.ext4"},
    "trace": {"mount": "mount", "util-linux": "unshare"},
    "fuse": {"mount": "mount umount", "util-linux": "unshare"},
}

SCRIPT = r"""LC_ALL=C; PATH=$PATH:/usr/sbin:/sbin; export LC_ALL PATH
say() { printf '%s\t%s\n' "$1" "$2"; }
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }
say labbook begins
say system "$(uname -s)"; say arch "$(uname -m)"; say kernel "$(uname -r)"
say user "$(id -un)"; say uid "$(id -u)"; say ssh "$SSH_CONNECTION"
for tool in @TOOLS@; do command -v "$tool" > /dev/null || say lacks "$tool"; done
say python "$(@PYTHON@ -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2> /dev/null)"
place=@ROOT@; while [ ! -e "$place" ]; do place=$(dirname "$place"); done
say place "$place"; [ -d "$place" ] && [ -w "$place" ] && [ -x "$place" ] && say writable yes
say free_kib "$(df -Pk "$place" | sed -n 2p | tr -s ' ' | cut -d' ' -f4)"
say options "$(findmnt -n -o OPTIONS -T "$place" 2> /dev/null)"
say cores "$(nproc)"; say memory_kib "$(grep MemTotal: /proc/meminfo | tr -dc 0-9)"
ip -o -4 addr show 2> /dev/null | while read -r _ _ _ address _; do say address "${address%/*}"; done
for tool in dpkg-query apt-get; do command -v $tool > /dev/null && say debian $tool; done
for folder in @FOLDERS@; do
  [ -e @ROOT@/artifacts/"$folder"/complete.json ] && say folder "$folder"
done
dpkg-query -W -f 'package\t${db:Status-Status} ${Package} ${Version}\n' @PACKAGES@ 2> /dev/null
"""
AS_ROOT = r"""as_root true 2> /dev/null && say root yes || exit 0
groups=/sys/fs/cgroup
if [ -e $groups/cgroup.controllers ]; then
  as_root test -w $groups/cgroup.subtree_control && say controllers "$(cat $groups/cgroup.controllers)"
else
  for one in cpu cpuset memory blkio; do
    as_root test -w $groups/$one/cgroup.procs && say controllers $one
  done
fi
[ -e /dev/loop-control ] && say loop yes
"""
# In a network namespace, which ends with the shell.
TRY_SHAPE = r"""rule='iptables -w -t mangle -A PREROUTING -j NFQUEUE --queue-num 0'
error=$(as_root unshare --net sh -c "$rule" 2>&1) && say shape works || say no_shape "$(echo $error)"
"""
# In a mount namespace, which ends with the shell.
TRY_TRACE = f"""error=$(as_root unshare --mount sh -c {shlex.quote(tracefs.TRY)} 2>&1) \\
  && say trace works || say no_trace "$(echo $error)"
"""
TRY_FUSE = f"""error=$(as_root unshare --mount sh -ec {shlex.quote(fuse.TRY)} 2>&1) \\
  && say fuse works || say no_fuse "$(echo $error)"
"""


@dataclass
class Found:
    """What a probe found. `place` is the root folder, or the nearest existing folder above it.

    `shape`, `trace` and `fuse` are error messages, empty when the feature works.
    """

    system: str = ""
    arch: str = ""
    kernel: str = ""
    user: str = ""
    uid: int = -1
    lacks: set[str] = field(default_factory=set)
    python: str = ""
    place: str = ""
    writable: bool = False
    free_bytes: int = 0
    options: set[str] = field(default_factory=set)
    cores: int = 0
    memory_bytes: int = 0
    addresses: list[str] = field(default_factory=list)
    ssh_address: str = ""   # of its own, where this SSH connection arrived
    debian: set[str] = field(default_factory=set)
    packages: dict[str, str] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)
    root: bool = False
    controllers: set[str] = field(default_factory=set)
    loop: bool = False
    shape: str = ""
    trace: str = ""
    fuse: str = ""


def script(real, needs) -> str:
    """The script for a RealHost with these HostNeeds."""
    tools = [tool for package in TOOLS.values() for tool in package.split()]
    for kind in needs.request.of:
        tools += [tool for names in ROOTS_TOOLS[kind].values() for tool in names.split()]
    names = sorted({name for need in needs.packages for name in alternatives(need)})
    text = SCRIPT
    for mark, values in (("@TOOLS@", [*tools, *needs.commands]), ("@PYTHON@", [real.python]),
                         ("@ROOT@", [str(real.root)]), ("@FOLDERS@", needs.folders),
                         ("@PACKAGES@", names or ["dpkg"])):
        text = text.replace(mark, shlex.join(values))
    allowed = real.allow & {"packages", *needs.request.of}      # what is tried as root, too
    if allowed:
        text += AS_ROOT
    if "shape" in allowed:
        text += TRY_SHAPE
    if "trace" in allowed:
        text += TRY_TRACE
    if "fuse" in allowed or needs.request.modelled and "disk" in real.allow:
        text += TRY_FUSE
    return text + "exit 0\n"


def alternatives(need: str) -> list[str]:
    """`a | b` -> [a, b]."""
    return [name.strip() for name in need.split("|")]


def parse(output: str) -> Found:
    """Parse the script's output; ValueError when it did not run, or other output precedes it."""
    lines = output.splitlines()
    if not lines or lines[0] != BEGIN:
        raise ValueError(lines[0][:80] if lines else "nothing")
    found = Found()
    for line in lines[1:]:
        key, _, value = line.partition("\t")
        _take(found, key, value)
    return found


def _take(found, key, value):
    if key in ("system", "arch", "kernel", "user", "python", "place"):
        setattr(found, key, value)
    elif key in ("uid", "cores"):
        setattr(found, key, int(value or -1))
    elif key in ("free_kib", "memory_kib"):
        setattr(found, key.replace("kib", "bytes"), int(value or 0) * 1024)
    elif key in ("writable", "root", "loop"):
        setattr(found, key, True)
    elif key == "ssh":      # our address and port, its address and port
        found.ssh_address = "".join(value.split()[2:3])
    elif key == "address":
        found.addresses.append(value)
    elif key in ("lacks", "debian", "folder"):
        getattr(found, "folders" if key == "folder" else key).add(value)
    elif key in ("options", "controllers"):
        getattr(found, key).update(value.replace(",", " ").replace("blkio", "io").split())
    elif key in ("no_shape", "no_trace", "no_fuse"):
        setattr(found, key.removeprefix("no_"), value or "it failed")
    elif key == "package":
        status, name, version = (value.split() + ["", ""])[:3]
        if status == "installed":
            found.packages[name] = version
