"""Where a benchmark runs: a lab host, or a guest that a lab host reaches over ssh."""

import shlex
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePosixPath

from labbook.errors import LabbookError, LabError, SystemFailure
from labbook.lab.host.host import Host, Result

CONNECT_SECONDS = 15
GRACE_SECONDS = 5       # for the far side to end by itself what we have given up
# A guest that swaps may be silent for minutes, and is given up no sooner.
OPTIONS = ("BatchMode=yes", "IdentitiesOnly=yes", "LogLevel=ERROR", "ServerAliveInterval=15",
           "ServerAliveCountMax=20", f"ConnectTimeout={CONNECT_SECONDS}")
ANY_HOST_KEY = ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null")
UNREACHABLE, LATE = 255, 124    # exit codes of ssh when it was not the command that failed, of timeout
# Below a lab host's own folder: programs, which may be sent on, and a key, which may not.
HOME, KEYS = "benchmarks", "keys"
# One program that sleeps, since what is measured may run on this host: asking anew each moment over
# ssh takes a good part of a core.
WAIT = "timeout {seconds:.2f} tail --pid={pid} -s 0.1 -f /dev/null"
LOOK_SECONDS = 5
ASK_SECONDS = 60


@dataclass(frozen=True)
class Machine:
    """`via` is the lab host from which it is reached; with no `key` it is that host itself.

    `key` (a private key) and `known_hosts` are files on `via`. Without known_hosts any host key is
    taken, as of a guest that made its own when it booted. `data` is its address for messages where
    that is another one than `address`. Programs of the benchmarks lie in `folder`, and what they
    write goes there unless they are told otherwise; it must be the same on machines that run together.
    """

    name: str
    via: Host
    address: str
    user: str = "root"
    key: str = ""
    known_hosts: str = ""
    data: str = ""
    folder: str = "/opt/labbook"

    @classmethod
    def of(cls, host: Host, via: Host | None = None) -> "Machine":
        """A lab host as a machine; with another one as `via`, from which it is then reached.

        The lab's own key is put there for it. LabError on hosts of a user's own: their key is no
        lab's to copy.
        """
        folder = str(host.root / HOME)
        if via is None or via is host:
            return cls(host.name, host, host.address, folder=folder)
        if host.is_remote or via.is_remote:
            raise LabError(f"{via.name} has no key for {host.name}, and the one by which we reach it "
                           "is not put there", remedy="Run it on one host")
        from pathlib import Path

        key = via.root / KEYS / "machines"
        via.run(f"mkdir -p -m 700 {shlex.quote(str(key.parent))}")
        via.put(Path(host.login.key), key, 0o600)
        return cls(host.name, via, host.login.address, host.login.user, str(key),
                   data=host.address, folder=folder)

    @property
    def here(self) -> bool:
        """Whether it is the host `via` itself."""
        return not self.key

    def ssh_options(self) -> list[str]:
        known = (("StrictHostKeyChecking=yes", f"UserKnownHostsFile={self.known_hosts}")
                 if self.known_hosts else ANY_HOST_KEY)
        words = ["-F", "/dev/null", "-i", self.key, "-l", self.user]
        return words + [word for option in (*OPTIONS, *known) for word in ("-o", option)]

    def line(self, command: str, seconds: float | None = None) -> str:
        """The shell line for `via` that runs a shell command there. `seconds`: after so many the way there
        is given up, and nothing of it is left on `via`."""
        if self.here:
            return command
        bounded = ["timeout", "-k", str(GRACE_SECONDS), f"{seconds:g}"] if seconds else []
        return shlex.join([*bounded, "ssh", *self.ssh_options(), self.address, command])

    def run(self, command: str, timeout: float = 60, check: bool = True) -> Result:
        """Run a shell command there; LabError as Host.run, and when the machine cannot be reached."""
        result = self.via.run(self.line(command, timeout), timeout=timeout + 2 * GRACE_SECONDS, check=False)
        if result.exit_code == UNREACHABLE and not self.here:
            raise LabError(f"{self.name} ({self.user}@{self.address}) cannot be reached from "
                           f"{self.via.name}: {result.stderr.strip()[-500:]}")
        if result.exit_code == LATE and not self.here:
            raise LabError(f"{self.name}: `{command[:120]}` had not ended within {timeout:g} s")
        if check and result.exit_code:
            said = (result.stderr or result.stdout).strip()[-2000:]
            raise LabError(f"{self.name}: `{command[:120]}` ended with exit code "
                           f"{result.exit_code}: {said}")
        return result

    def program(self, folder: str, name: str) -> str:
        """Path of a benchmark's program there, which `build` made; LabError where it is not."""
        path = str(PurePosixPath(self.folder) / folder / name)
        if self.run(f"test -x {shlex.quote(path)}", check=False).exit_code:
            raise LabError(f"{self.name}: no program {path}",
                           remedy="Have `build` compile it there, or send what it compiled elsewhere")
        return path

    def send(self, folder, to, timeout: float = 60) -> None:
        """Copy what a folder on `via` holds into a folder there."""
        to = shlex.quote(str(to))
        self.via.run(f"tar -C {shlex.quote(str(folder))} -cf - . | "
                     + self.line(f"mkdir -p {to} && tar -C {to} -xf -"), timeout=timeout)

    def finish(self, name: str, command: str, seconds: float, what: str) -> str:
        """All that a shell command said which may take `seconds`; `name` is of its log on `via`.

        SystemFailure with the log's tail when it failed or was not done in time; it is then ended
        there, also when nothing reaches the machine any more.
        """
        bounded = shlex.join(["timeout", "-k", str(GRACE_SECONDS), f"{seconds + GRACE_SECONDS:g}",
                              "sh", "-c", command])
        return finished(self.via, name, self.line(bounded), seconds, f"{what} on {self.name}")


def run_on_all(machines, command: str) -> list[str]:
    """Lines that a shell command says in machines of one `via`, asked all at a time: in no order, and none of
    a machine that cannot be reached."""
    line = " & ".join(f"( {machine.line(command, ASK_SECONDS)} )" for machine in machines)
    return machines[0].via.run(f"{line} & wait", timeout=ASK_SECONDS + 2 * GRACE_SECONDS).stdout.splitlines()


def finished(host: Host, name: str, line: str, seconds: float, what: str) -> str:
    """All that one command on a host said, within `seconds`, else SystemFailure with its tail."""
    process, until = host.start(name, line), time.monotonic() + seconds

    def ended():
        left = min(LOOK_SECONDS, until - time.monotonic())
        host.run(WAIT.format(seconds=max(left, 0.1), pid=process.pid), check=False)
        return not process.alive()

    try:
        host.wait_for(ended, f"{what} to end", seconds, process, interval=0)
    except BaseException:
        with suppress(LabbookError):  # what went wrong first is what must be told
            process.stop()
        raise
    code = process.exit_code()
    if code:
        raise SystemFailure(f"{host.name}: {what} failed with exit code {code}",
                            log=process.log_tail())
    return host.get(process.log).decode(errors="replace")
