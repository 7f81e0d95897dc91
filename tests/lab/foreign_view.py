"""All that a foreign host has, as JSON: run in the host's namespaces, by root, from outside."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

OWN = ("/etc", "/home", "/root", "/opt", "/srv", "/mnt", "/var", "/run", "/tmp", "/dev/shm",
       "/usr/local")   # below /usr: what lies in the layer over the machine's, seen from outside
# Written by every login, by sudo or by asking a host anything; apt's caches and logs with packages.
NOISE = ("/var/log/wtmp", "/var/log/lastlog", "/var/log/btmp", "/run/utmp", "/run/sshd.pid",
         "/run/xtables.lock", "/run/motd.dynamic", "/var/lib/sudo", "/run/sudo")
SSHD = ("sshd:", "/usr/sbin/sshd -D", "/usr/lib/openssh/sftp-server")


def files() -> dict:
    """{path: [kind and mode, owner, size, sum]}; no sum of a disk's file, to which the kernel writes when it likes."""
    found, disks = {}, backing_files()
    for top in OWN:
        for place, folders, names in os.walk(top):
            if place.startswith(("/var/lib/dpkg", *NOISE)):
                folders[:] = []
                continue
            for path in (f"{place}/{name}" for name in [*folders, *names]):
                if not path.startswith(NOISE):
                    found[path] = facts(path, is_disk=path in disks)
    return found


def facts(path, is_disk=False):
    status = os.lstat(path)
    regular = os.path.isfile(path) and not os.path.islink(path)
    digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16] if regular and not is_disk else ""
    return [oct(status.st_mode), f"{status.st_uid}:{status.st_gid}",
            status.st_size if regular else 0, digest]


def processes() -> list:
    """Command lines, without sshd's, which come and go with the connections to it."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
        except OSError:
            continue
        mine = int(entry.name) in (os.getpid(), os.getppid())
        if command and not mine and not command.startswith(SSHD):
            found.append(command)
    return sorted(found)


def rules() -> list:
    """Firewall rules and chains that are not a kernel's own; queueing on interfaces."""
    found = []
    for command in ("iptables-save", "ip6tables-save"):
        for line in output(command).splitlines():
            chain = line.startswith(":") and " - " in line
            if line.startswith("-") or chain or (line.startswith(":") and " ACCEPT" not in line):
                found.append(line.partition(" [")[0] if line.startswith(":") else line)
    found += [line for line in output("tc", "qdisc").splitlines() if "noqueue" not in line]
    return sorted(found)


def output(*command) -> str:
    return subprocess.run(command, capture_output=True, text=True).stdout


def look() -> dict:
    return {
        "files": files(), "processes": processes(), "rules": rules(),
        "cgroups": sorted(str(p) for p in Path("/sys/fs/cgroup").rglob("*")
                          if p.is_dir() and not p.is_symlink()),
        "mounts": sorted(line.split()[4] for line in Path("/proc/self/mountinfo").open()),
        "loops": sorted(filter(mine, backing_files())),
        "packages": output("dpkg-query", "-W", "-f", "${Package} ${Version} ${Status}\n").splitlines(),
        "network": output("ip", "-o", "address").replace(" tentative", "").splitlines()
        + output("ip", "route").splitlines(),
        "sysctl": [Path("/proc/sys/net/ipv4/ip_forward").read_text().strip()],
    }


def backing_files() -> list[str]:
    """The files that loop devices of the machine serve."""
    return [text(file) for file in Path("/sys/block").glob("loop*/loop/backing_file")]


def text(file: Path) -> str:
    """Nothing of a loop device that others detach meanwhile."""
    try:
        return file.read_text().strip()
    except OSError:
        return ""


def mine(backing: str) -> bool:
    """The machine's list has the disks of all hosts of all tests that run at the moment."""
    return backing.startswith("/home/") and (backing.endswith("(deleted)") or Path(backing).exists())


if __name__ == "__main__":
    json.dump(look(), sys.stdout)
