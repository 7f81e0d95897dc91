"""The way into a local lab's hosts: keys, known hosts, an ssh_config, and whether they answer."""

import socket
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from labbook.errors import LabError
from labbook.lab.local.kernel import start_time

ANSWER_SECONDS = 30


def make_keys(folder: Path) -> None:
    """A key pair to log in with and one for all the lab's hosts, 0600."""
    for name in ("key", "host_key"):
        (folder / name).unlink(missing_ok=True)  # of a run that was killed before it made more
        try:
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "labbook",
                            "-f", str(folder / name)], check=True, stdin=subprocess.DEVNULL)
        except (OSError, subprocess.CalledProcessError) as error:
            raise LabError(f"no keys for the lab: {error}",
                           remedy="apt-get install openssh-client") from None


def await_answers(hosts: list[dict], folder: Path) -> None:
    """Every host's sshd greets us; LabError with its log for one that does not."""
    until = time.monotonic() + ANSWER_SECONDS
    with ThreadPoolExecutor(min(32, len(hosts))) as pool:
        answers = pool.map(lambda host: _greets(host, until), hosts)
        silent = [host["name"] for host, answered in zip(hosts, answers) if not answered]
    if silent:
        log = folder / f"{silent[0]}.log"
        said = log.read_text()[-1500:].strip() if log.exists() else ""
        raise LabError(f"{silent[0]} does not answer over SSH; its log says: {said}")


def write_down(hosts: list[dict], folder: Path) -> None:
    """Known hosts and an ssh_config, by name."""
    public = " ".join((folder / "host_key.pub").read_text().split()[:2])
    (folder / "known_hosts").write_text(
        "".join(f"{host['control']} {public}\n" for host in hosts))
    (folder / "ssh_config").write_text(
        "".join(_ssh_entry(host, folder) for host in hosts))


def _ssh_entry(host, folder):
    return (f"Host {host['name']}\n  HostName {host['control']}\n  User root\n"
            f"  IdentityFile {folder}/key\n  IdentitiesOnly yes\n"
            f"  UserKnownHostsFile {folder}/known_hosts\n")


def _greets(host: dict, until: float) -> bool:
    while time.monotonic() < until and start_time(host["pid"]) == host["start"]:
        try:
            with socket.create_connection((host["control"], 22), timeout=5) as connection:
                if connection.recv(4) == b"SSH-":
                    return True
        except OSError:
            time.sleep(0.005)
    return False
