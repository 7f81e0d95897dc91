"""SSH access to a local lab's hosts: key pairs, known hosts, and a wait until sshd answers."""

import socket
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from labbook.errors import LabError
from labbook.lab.kernel import start_time
from labbook.lab.ssh.login import Login

ANSWER_SECONDS = 30
KEY_SECONDS = 60


def make_keys(folder: Path) -> None:
    """Make two key pairs, mode 0600: `key` to log in with, `host_key` for all the lab's hosts."""
    for name in ("key", "host_key"):
        (folder / name).unlink(missing_ok=True)  # of an earlier start that was killed
        try:
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "labbook",
                            "-f", str(folder / name)], check=True, stdin=subprocess.DEVNULL,
                           timeout=KEY_SECONDS)
        except (OSError, subprocess.SubprocessError) as error:
            raise LabError(f"no keys for the lab: {error}",
                           remedy="apt-get install openssh-client") from None


def await_answers(hosts: list[dict], folder: Path) -> None:
    """Return when every host's sshd answers; LabError with its log for one that does not."""
    until = time.monotonic() + ANSWER_SECONDS
    with ThreadPoolExecutor(min(32, len(hosts))) as pool:
        answers = pool.map(lambda host: _answers(host, until), hosts)
        silent = [host["name"] for host, answered in zip(hosts, answers) if not answered]
    if silent:
        log = folder / f"{silent[0]}.log"
        end = log.read_text()[-1500:].strip() if log.exists() else ""
        raise LabError(f"{silent[0]} does not answer over SSH; its log ends: {end}")


def login(host: dict, folder: Path) -> Login:
    """How a host is reached, with the key in the lab's state folder."""
    return Login(host["control"], "root", str(folder / "key"), str(folder / "known_hosts"))


def write_known_hosts(hosts: list[dict], folder: Path) -> None:
    """All hosts have the same key, each under its control address."""
    public = " ".join((folder / "host_key.pub").read_text().split()[:2])
    (folder / "known_hosts").write_text(
        "".join(f"{host['control']} {public}\n" for host in hosts))


def _answers(host: dict, until: float) -> bool:
    hidden = start_time(1) is None      # /proc shows a user's own processes alone, so not root's sshd either
    while time.monotonic() < until and (hidden or start_time(host["pid"]) == host["start"]):
        try:
            with socket.create_connection((host["control"], 22), timeout=5) as connection:
                if connection.recv(4) == b"SSH-":
                    return True
        except OSError:
            time.sleep(0.005)
    return False
