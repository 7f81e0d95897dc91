"""What lies on a foreign host's disk before it boots, and its place in the control groups."""

import contextlib
import shutil
import subprocess
import uuid
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
UID = 1000
# A Debian's own settings, as its packages left them: nothing that this machine's user wrote.
ETC = """adduser.conf alternatives bash.bashrc ca-certificates.conf debconf.conf debian_version
default deluser.conf dpkg environment ethertypes fonts gai.conf host.conf init.d inputrc issue
java-17-openjdk java-11-openjdk java-21-openjdk ld.so.cache ld.so.conf ld.so.conf.d libaudit.conf
locale.alias localtime login.defs magic magic.mime mime.types mke2fs.conf mysql netconfig networks
os-release pam.conf pam.d perl profile protocols python3 python3.11 rc0.d rc1.d rc2.d rc3.d rc4.d
rc5.d rc6.d rcS.d rpc security selinux services shells skel ssl terminfo timezone ucf.conf
xattr.conf""".split()
FOLDERS = {"home": 0o755, "root": 0o700, "opt": 0o755, "srv": 0o755, "mnt": 0o755, "var": 0o755,
           "proc": 0o555, "sys": 0o555, "dev": 0o755, "run": 0o755, "tmp": 0o1777,
           "var/tmp": 0o1777, "var/log": 0o755, "var/lib": 0o755, "var/cache/apt/archives": 0o755,
           "var/cache/debconf": 0o755, "var/lib/apt/lists": 0o755, "var/lib/misc": 0o755,
           "var/lib/ucf": 0o755, "var/lib/pam": 0o755, "var/mail": 0o2775, "var/spool": 0o755,
           "var/lib/systemd": 0o755, "etc/apt/apt.conf.d": 0o755, "etc/apt/preferences.d": 0o755,
           "etc/apt/sources.list.d": 0o755, "etc/apt/trusted.gpg.d": 0o755,
           "etc/ssh/sshd_config.d": 0o755, "etc/sudoers.d": 0o750, "etc/profile.d": 0o755}
SSHD = """Include /etc/ssh/sshd_config.d/*.conf
HostKey /etc/ssh/ssh_host_ed25519_key
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin no
UsePAM yes
PrintMotd no
AcceptEnv LANG LC_*
Subsystem sftp /usr/lib/openssh/sftp-server
"""
APT = """APT::Install-Recommends "false";
"""


def make_keys(folder: Path, hosts) -> dict:
    """The driver's key pair, and a host key for each; {public: ..., hosts: {name: public}}."""
    keys = {"user": _key(folder / "id"), "hosts": {}}
    for name in hosts:
        keys["hosts"][name] = _key(folder / f"{name}.key")
    return {**keys, "private": (folder / "id").read_text()}


def _key(path: Path) -> str:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", path], check=True)
    return path.with_name(path.name + ".pub").read_text().strip()


def make_root(root: Path, name: str, keys: dict, user: str, sudo: bool, addresses: dict):
    root.mkdir(mode=0o755)
    for place, mode in FOLDERS.items():
        (root / place).mkdir(parents=True, exist_ok=True)
        (root / place).chmod(mode)
    for place in ETC:
        _copy(Path("/etc", place), root / "etc" / place)
    for link, target in (("var/run", "/run"), ("var/lock", "/run/lock"),
                         ("etc/mtab", "/proc/self/mounts")):
        (root / link).symlink_to(target)
    _accounts(root / "etc", user)
    _write(root / "etc/hostname", f"{name}\n")
    _write(root / "etc/hosts", "127.0.0.1 localhost\n" + "".join(
        f"{address} {name}{'' if net == 'control' else '-' + net}\n"
        for net, address in addresses.items()) + f"127.0.1.1 {name}\n")
    _write(root / "etc/nsswitch.conf",
           "passwd: files\ngroup: files\nshadow: files\ngshadow: files\nhosts: files\n"
           "networks: files\nprotocols: files\nservices: files\nethers: files\nrpc: files\n")
    _write(root / "etc/resolv.conf", "")
    _write(root / "etc/fstab", "")
    _write(root / "etc/machine-id", uuid.uuid4().hex + "\n", 0o444)
    _write(root / "etc/apt/apt.conf.d/99tests", APT)
    _write(root / "etc/sudoers", "Defaults secure_path=/usr/local/sbin:/usr/local/bin:/usr/sbin:"
           "/usr/bin:/sbin:/bin\nroot ALL=(ALL:ALL) ALL\n@includedir /etc/sudoers.d\n", 0o440)
    if sudo:
        _write(root / "etc/sudoers.d/tests", f"{user} ALL=(ALL:ALL) NOPASSWD: ALL\n", 0o440)
    _write(root / "etc/ssh/sshd_config", SSHD)
    key = root.parent / f"{name}.key"
    _write(root / "etc/ssh/ssh_host_ed25519_key", key.read_text(), 0o600)
    _home(root / "home" / user, keys["user"])


def _copy(source: Path, target: Path):
    if source.is_dir() and not source.is_symlink():
        shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
    elif source.exists() or source.is_symlink():
        shutil.copy2(source, target, follow_symlinks=False)


def _accounts(etc: Path, user: str):
    """Debian's own accounts and those that packages made for services, and one person's."""
    lines = {name: Path("/etc", name).read_text().splitlines()
             for name in ("passwd", "group", "shadow", "gshadow")}
    system = {kind: {line.split(":")[0] for line in lines[kind]
                     if not 1000 <= int(line.split(":")[2]) < 60000} for kind in ("passwd", "group")}
    for name, person in (("passwd", f"{user}:x:{UID}:{UID}::/home/{user}:/bin/bash"),
                         ("shadow", f"{user}:*:19000:0:99999:7:::"),
                         ("group", f"{user}:x:{UID}:"), ("gshadow", f"{user}:!::")):
        known = system["passwd" if name in ("passwd", "shadow") else "group"]
        known_lines = [line for line in lines[name] if line.split(":")[0] in known]
        _write(etc / name, "\n".join([*known_lines, person]) + "\n", 0o640 if "shadow" in name else 0o644)


def _home(home: Path, key: str):
    ssh = home / ".ssh"
    ssh.mkdir(parents=True)
    _write(ssh / "authorized_keys", key + "\n", 0o600)
    for path in (home, ssh):
        path.chmod(0o700)
    for path in (home, ssh, ssh / "authorized_keys"):
        shutil.chown(path, UID, UID)


def _write(path: Path, text: str, mode: int = 0o644):
    path.unlink(missing_ok=True)
    path.write_text(text)
    path.chmod(mode)


def new_boot_id() -> str:
    return f"{uuid.uuid4()}\n"


def make_cgroups(place: str, host: str) -> list[Path]:
    """A host's own root in each hierarchy; those of its first process."""
    if (CGROUPS / "cgroup.controllers").exists():
        root = CGROUPS / f"foreign-{place}" / host
        root.mkdir(parents=True, exist_ok=True)
        for level in (CGROUPS, root.parent):
            _enable(level)
        return [root]
    made = []
    for hierarchy in sorted(CGROUPS.glob("*/")):
        folder = hierarchy / f"foreign-{place}" / host
        folder.mkdir(parents=True, exist_ok=True)
        made.append(folder)
        if hierarchy.name == "cpuset":
            for level in (folder.parent, folder):
                for name in ("cpuset.cpus", "cpuset.mems"):
                    (level / name).write_text((hierarchy / name).read_text())
    return made


def settle_cgroups(place: str, host: str) -> None:
    """Version 2 has processes in leaves only, but for the real root: as systemd does."""
    root = CGROUPS / f"foreign-{place}" / host
    if root.exists():
        (root / "system").mkdir(exist_ok=True)
        for moved in (root / "cgroup.procs").read_text().split():
            (root / "system" / "cgroup.procs").write_text(moved)
        _enable(root)


def _enable(folder: Path):
    given = (CGROUPS / "cgroup.controllers").read_text().split()
    (folder / "cgroup.subtree_control").write_text(" ".join(f"+{c}" for c in given))


def thaw(place: str) -> None:
    """A lab that was frozen when its host was killed: frozen processes do not end."""
    for pattern in (f"*/foreign-{place}", f"foreign-{place}"):
        for top in CGROUPS.glob(pattern):
            for name, word in (("freezer.state", "THAWED"), ("cgroup.freeze", "0")):
                for file in top.rglob(name):
                    with contextlib.suppress(OSError):
                        file.write_text(word)


def remove_cgroups(place: str) -> bool:
    """True once all of a place's are gone."""
    tops = [*CGROUPS.glob(f"*/foreign-{place}"), *CGROUPS.glob(f"foreign-{place}")]
    for top in tops:
        for folder in sorted((p for p in top.rglob("*") if p.is_dir()), reverse=True):
            _try_rmdir(folder)
        _try_rmdir(top)
    return not any(top.exists() for top in tops)


def _try_rmdir(folder):
    try:
        folder.rmdir()
    except OSError:
        pass   # a process in it is still ending
