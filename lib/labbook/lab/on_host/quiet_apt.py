"""Run as root: `python -I quiet_apt.py LOG PACKAGE...` installs Debian packages quietly.

Nothing is removed, started or enabled: services are refused (policy-rc.d) while apt works, and what
packages enabled is disabled after. Killed at any moment, the next call puts right what was left. Without a
PACKAGE it does nothing else, which takes a moment. `quiet_apt.py LOG --finish` also has dpkg configure what it
left half-installed, which may take minutes. Standard library only, since it runs outside the checkout's environment.
"""

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

MARK = "# put here by labbook while it installs packages"
REFUSE = f"#!/bin/sh\n{MARK}; taken away after\nexit 101\n"
WOULD_REMOVE = 3
STALE_LISTS_S = 24 * 3600
LONGEST_INSTALL_S = 1800
LOCK_TAKEN = 4
LOOK_S = 0.2
OTHERS_S = 300      # for another apt to end
ASK_S = 60          # for one answer of the service manager
TIMED_OUT = 124     # as timeout(1) has it
APT = ["apt-get", "-y", "-q", "-o", "DPkg::Lock::Timeout=300", "-o", "Dpkg::Options::=--force-confold"]
QUIET = {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8", "APT_LISTCHANGES_FRONTEND": "none",
         "NEEDRESTART_SUSPEND": "1"}
ONLY_FINISH = "--finish"
FINISH = ["dpkg", "--force-confold", "--configure", "-a"]


class Machine:
    """The files that matter, under `root` (another one than / only in tests)."""

    def __init__(self, root="/"):
        root = Path(root)
        self.policy = root / "usr/sbin/policy-rc.d"
        self.kept = root / "usr/sbin/policy-rc.d.labbook-kept"
        self.before = root / "var/lib/labbook/before-install.json"
        self.policy_draft, self.before_draft = self.policy.with_suffix(".labbook-new"), self.before.with_suffix(".new")
        # root's alone: elsewhere others could hold the lock, or lead root to another file
        self.lock = root / "run/labbook/.locks/install"
        self.etc = root / "etc"
        self.dpkg = root / "var/lib/dpkg"
        self.unit_folders = [root / "lib/systemd", root / "usr/lib/systemd", root / "etc/systemd"]

    def refuse_services(self):
        if self.policy.exists():
            self.kept.unlink(missing_ok=True)
            os.link(self.policy, self.kept)
        self.policy_draft.write_text(REFUSE)
        self.policy_draft.chmod(0o755)
        self.policy_draft.rename(self.policy)

    def allow_services(self):
        """Back to the policy that was there; one that came meanwhile stays."""
        ours = self.policy.exists() and MARK in self.policy.read_text(errors="replace")
        if ours and self.kept.exists():
            self.kept.rename(self.policy)
        elif ours:
            self.policy.unlink()
        self.kept.unlink(missing_ok=True)

    def left_over(self) -> bool:
        ours = (self.before, self.before_draft, self.kept, self.policy_draft)
        return any(file.exists() for file in ours) or self.is_unfinished() or (
            self.policy.exists() and MARK in self.policy.read_text(errors="replace"))

    def is_unfinished(self) -> bool:
        """Whether a killed dpkg left changes that the next has to take over. So does one at work, which has a lock."""
        left = any(one.name.isdigit() for one in (self.dpkg / "updates").glob("*"))
        return left and not _is_locked(self.dpkg / "lock")

    def services(self) -> dict:
        """Names of all services, and the links that enable some of them."""
        units = {p.name for d in self.unit_folders for p in d.glob("*/*.*")}
        units |= {p.name for p in (self.etc / "init.d").glob("*")}
        links = {str(p) for kind in ("system", "user")
                 for p in (self.etc / "systemd" / kind).glob("**/*") if p.is_symlink()}
        links |= {str(p) for p in self.etc.glob("rc[2-5S].d/S*")}
        return {"units": sorted(units), "links": sorted(links)}

    def disable_new(self, before: dict, only_new_units=False):
        """Take away links that were not there `before`; the same as `systemctl disable` does."""
        scripts = set()
        for link in map(Path, sorted(set(self.services()["links"]) - set(before["links"]))):
            unit = Path(os.readlink(link)).name if link.is_symlink() else link.name[3:]
            if only_new_units and unit in before["units"]:
                continue
            if "systemd" in link.parts:
                link.unlink()
            else:
                scripts.add(unit)
        for script in sorted(scripts):
            if _ask(["update-rc.d", script, "disable"]):
                raise SystemExit(f"{script} was enabled by a package, and could not be disabled")

    def stop_new(self, before: dict):
        """Should a package have started something past policy-rc.d: stop it."""
        if not Path("/run/systemd/system").is_dir():
            return
        _ask(["systemctl", "daemon-reload"])
        for unit in sorted(set(self.services()["units"]) - set(before["units"])):
            if unit.endswith((".service", ".socket", ".timer", ".path")) and "@." not in unit:
                if _ask(["systemctl", "is-active", "--quiet", unit]) == 0:
                    _ask(["systemctl", "stop", unit])


def _ask(command: list[str]) -> int:
    """Run a command of the service manager: its exit code, or TIMED_OUT after killing it."""
    try:
        return subprocess.run(command, stdout=sys.stderr, timeout=ASK_S).returncode
    except subprocess.TimeoutExpired:
        print(f"{' '.join(command)} did not end within {ASK_S} s", file=sys.stderr)
        return TIMED_OUT


def await_others(machine: Machine, seconds: float = OTHERS_S) -> bool:
    """Wait for another apt's end: what that starts and enables is not ours to refuse. False where it goes on."""
    until = time.monotonic() + seconds
    while any(_is_locked(machine.dpkg / name) for name in ("lock-frontend", "lock")):
        if time.monotonic() > until:
            print(f"waited {seconds:g} s for another apt or dpkg to end", file=sys.stderr)
            return False
        time.sleep(LOOK_S)
    return True


def _is_locked(path: Path) -> bool:
    """Whether a process has a lock on a file that only root can open."""
    return path.exists() and bool(re.search(rf":{path.stat().st_ino} \d+ ", Path("/proc/locks").read_text()))


def recover(machine: Machine):
    """Put right what an install that was killed left."""
    machine.allow_services()
    for draft in (machine.policy_draft, machine.before_draft):
        draft.unlink(missing_ok=True)
    if machine.before.exists():
        before = _read(machine.before)
        _settle(machine, machine.services() if before is None else before, only_new_units=True)


def _read(before: Path) -> dict | None:
    """None of a file that a power cut left empty."""
    try:
        return json.loads(before.read_text())
    except ValueError:
        return None


def install(machine: Machine, packages: list[str], apt) -> int:
    """Have dpkg finish what it left, and then `apt` install the packages: apt's exit code. Without packages it is
    dpkg's, or 0 where nothing was left."""
    before = machine.services()
    machine.before.parent.mkdir(parents=True, exist_ok=True)
    with open(machine.before_draft, "w") as file:
        file.write(json.dumps(before))
        file.flush()
        os.fsync(file.fileno())
    machine.before_draft.rename(machine.before)
    try:
        machine.refuse_services()
        finished = 0
        if machine.is_unfinished():     # apt installs nothing before
            finished = subprocess.run(FINISH, stdout=sys.stderr, close_fds=False).returncode
        return apt(packages) if packages else finished
    finally:
        machine.allow_services()
        _settle(machine, before)


def _settle(machine, before, only_new_units=False):
    machine.disable_new(before, only_new_units)
    machine.stop_new(before)
    machine.before.unlink(missing_ok=True)


def apt_install(packages: list[str]) -> int:
    """0, apt's exit code, or WOULD_REMOVE: packages of the user's would have to go (on stdout)."""
    if _lists_are_old():
        _apt("update")
    plan = _plan(packages)
    if plan.returncode:
        _apt("update")
        plan = _plan(packages)
    removed = [line.split()[1] for line in plan.stdout.splitlines() if line.startswith("Remv ")]
    if removed:
        print(*removed)
        return WOULD_REMOVE
    command = ["install", "--no-install-recommends", "--no-remove", *packages]
    code = _apt(*command)
    if code:    # the lists may name versions that are gone from the archive
        _apt("update")
        code = _apt(*command)
    return code


def _plan(packages):
    return subprocess.run([*APT, "--simulate", "install", "--no-install-recommends", *packages],
                          text=True, capture_output=True)


def _apt(*arguments) -> int:
    # it inherits the lock: should it outlive this process, the next one waits for its end
    return subprocess.run([*APT, *arguments], stdout=sys.stderr, close_fds=False).returncode


def _lists_are_old() -> bool:
    lists = list(Path("/var/lib/apt/lists").glob("*_Packages*"))
    return not lists or time.time() - Path("/var/lib/apt/lists").stat().st_mtime > STALE_LISTS_S


def take_lock(path: Path, seconds: float) -> bool:
    """Hold a lock until this process and the apt-get that it started have ended. False, after saying
    who holds it, when it is not free within `seconds`."""
    path.parent.parent.mkdir(mode=0o755, exist_ok=True)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    lock = os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600)
    os.set_inheritable(lock, True)
    until = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(lock, 0)
            os.pwrite(lock, f"{os.getpid()} ({' '.join(sys.argv)[:80]})".encode(), 0)
            return True
        except BlockingIOError:
            if time.monotonic() > until:
                print(f"waited {seconds:g} s for another install: process {path.read_text()}, or the "
                      "apt-get that it started", file=sys.stderr)
                return False
        time.sleep(LOOK_S)


def main(log: str, *words: str) -> int:
    """`words`: names of packages, or ONLY_FINISH."""
    machine, packages = Machine(), [word for word in words if word != ONLY_FINISH]
    os.umask(0o022)     # others read what it makes below /var/lib and /run, whatever the caller's mask
    os.environ.update(QUIET)
    signal.signal(signal.SIGTERM, lambda *_: None)     # half-installed packages help nobody
    with open(log, "a") as file:
        os.dup2(file.fileno(), 2)
    if not take_lock(machine.lock, LONGEST_INSTALL_S):
        return LOCK_TAKEN
    recover(machine)
    if not packages and not (words and machine.is_unfinished()):
        return 0
    return install(machine, packages, apt_install) if await_others(machine) else LOCK_TAKEN


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
