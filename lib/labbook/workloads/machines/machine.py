"""The machine that a benchmark runs on: a lab host, or a guest that a lab host reaches over ssh."""

import shlex
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from labbook.errors import LabbookError, LabError, SystemFailure
from labbook.lab.host.host import Host, Result

CONNECT_SECONDS = 15
GRACE_SECONDS = 5       # for the other side to end itself what has been given up
# A guest that swaps may be silent for minutes, and is not given up before.
OPTIONS = ("BatchMode=yes", "IdentitiesOnly=yes", "LogLevel=ERROR", "ServerAliveInterval=15",
           "ServerAliveCountMax=20", f"ConnectTimeout={CONNECT_SECONDS}")
ANY_HOST_KEY = ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null")
UNREACHABLE, LATE = 255, 124    # exit codes: ssh's own failure, timeout's
# Folders of a lab host: programs, which may be copied to guests, and a key, which may not.
HOME, KEYS = "benchmarks", "keys"
# One program that waits on the host, since the benchmark may run on it too: polling over ssh would
# take a good part of a core.
WAIT = "timeout {seconds:.2f} tail --pid={pid} -s 0.1 -f /dev/null"
LOOK_SECONDS = 5
ASK_SECONDS = 60


@dataclass(frozen=True)
class Machine:
    """`via`: the lab host from which it is reached; without a `key` it is that host itself.

    `key` (a private key) and `known_hosts` are files on `via`. Without known_hosts any host key is accepted: only where
    nobody but the machine can answer, as in a local lab. `data`: its address for messages, where that is not `address`.
    `folder`: where the benchmarks' programs lie, and where they write by default; it must be the same on machines that
    run one program together. `socket`: file on `via` of a connection that is held open, with %h for the address;
    without one each command makes its own.
    """

    name: str
    via: Host
    address: str
    user: str = "root"
    key: str = ""
    known_hosts: str = ""
    data: str = ""
    folder: str = "/opt/labbook"
    socket: str = ""

    @classmethod
    def of(cls, host: Host, via: Host | None = None) -> "Machine":
        """A lab host as a machine, reached from `via` if that is another host.

        The lab's own key is copied to `via` for that. LabError on a user's hosts, whose key may not
        be copied.
        """
        folder = str(host.root / HOME)
        if via is None or via is host:
            return cls(host.name, host, host.address, folder=folder)
        if host.is_remote or via.is_remote:
            raise LabError(f"{via.name} has no key for {host.name}, and a user's key is not "
                           "copied to it", remedy="Run it on one host")
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
        options = ["-F", "/dev/null", "-i", self.key, "-l", self.user]
        options += ["-S", self.socket] if self.socket else []
        return options + [word for option in (*OPTIONS, *known) for word in ("-o", option)]

    @contextmanager
    def held(self):
        """A context with the same machine over one connection that stays open: an emulated guest takes a
        second for each new one. LabError when it cannot be reached."""
        if self.here:
            yield self
            return
        one = replace(self, socket=f"{self.key}-%h")
        way = shlex.join([*one.ssh_options(), self.address])
        said = shlex.quote(f"{self.key}-{self.address}.err")    # a file, since the connection goes on
        begun = self.via.run(f"ssh -M -N -f {way} < /dev/null > /dev/null 2> {said} || {{ cat {said} >&2; exit "
                             f"{UNREACHABLE}; }}", timeout=ASK_SECONDS, check=False)
        if begun.exit_code:
            raise self._unreachable(begun)
        try:
            yield one
        finally:
            self.via.run(f"ssh -O exit {way} 2> /dev/null", check=False)

    def line(self, command: str, seconds: float | None = None) -> str:
        """The shell line for `via` that runs a shell command on the machine. After `seconds` ssh is
        ended, so that nothing of it is left on `via`."""
        if self.here:
            return command
        bounded = ["timeout", "-k", str(GRACE_SECONDS), f"{seconds:g}"] if seconds else []
        return shlex.join([*bounded, "ssh", *self.ssh_options(), self.address, command])

    def run(self, command: str, timeout: float = 60, check: bool = True) -> Result:
        """Run a shell command on the machine; LabError as of Host.run, and when it cannot be reached."""
        result = self.via.run(self.line(command, timeout), timeout=timeout + 2 * GRACE_SECONDS, check=False)
        if result.exit_code == UNREACHABLE and not self.here:
            raise self._unreachable(result)
        if result.exit_code == LATE and not self.here:
            raise LabError(f"{self.name}: `{command[:120]}` did not end within {timeout:g} s")
        if check and result.exit_code:
            output = (result.stderr or result.stdout).strip()[-2000:]
            raise LabError(f"{self.name}: `{command[:120]}` ended with exit code "
                           f"{result.exit_code}: {output}")
        return result

    def _unreachable(self, result: Result) -> LabError:
        return LabError(f"{self.name} ({self.user}@{self.address}) cannot be reached from "
                        f"{self.via.name}: {result.stderr.strip()[-500:]}")

    def program(self, folder: str, name: str) -> str:
        """Path of a benchmark's program, made by `build`; LabError when it is not there."""
        path = str(PurePosixPath(self.folder) / folder / name)
        if self.run(f"test -x {shlex.quote(path)}", check=False).exit_code:
            raise LabError(f"{self.name}: no program {path}",
                           remedy="Compile it there by `build`, or `send` what was compiled elsewhere")
        return path

    def send(self, folder, to, timeout: float = 60) -> None:
        """Copy the contents of a folder on `via` into a folder on the machine."""
        to = shlex.quote(str(to))
        self.via.run(f"tar -C {shlex.quote(str(folder))} -cf - . | "
                     + self.line(f"mkdir -p {to} && tar -C {to} -xf -"), timeout=timeout)

    def finish(self, name: str, command: str, seconds: float, what: str) -> str:
        """Run a shell command that may take `seconds`: its output. `name`: of its log on `via`.

        SystemFailure with the log's tail when it fails or does not end in time; it is then ended,
        even when the machine can no longer be reached.
        """
        bounded = shlex.join(["timeout", "-k", str(GRACE_SECONDS), f"{seconds + GRACE_SECONDS:g}",
                              "sh", "-c", command])
        return output_of(self.via, name, self.line(bounded), seconds, f"{what} on {self.name}")


def run_on_all(machines, command: str) -> list[str]:
    """Run a shell command on machines of one `via` in parallel: the lines of their output, in no order,
    and none of a machine that cannot be reached."""
    line = " & ".join(f"( {machine.line(command, ASK_SECONDS)} )" for machine in machines)
    return machines[0].via.run(f"{line} & wait", timeout=ASK_SECONDS + 2 * GRACE_SECONDS).stdout.splitlines()


def output_of(host: Host, name: str, line: str, seconds: float, what: str) -> str:
    """The output of a command on a host; SystemFailure with its tail when it fails or does not end
    within `seconds`."""
    process, until = host.start(name, line), time.monotonic() + seconds

    def ended():
        left = min(LOOK_SECONDS, until - time.monotonic())
        host.run(WAIT.format(seconds=max(left, 0.1), pid=process.pid), check=False)
        return not process.alive()

    try:
        host.wait_for(ended, f"{what} to end", seconds, process, interval=0)
    except BaseException:
        with suppress(LabbookError):  # the first error is the one to report
            process.stop()
        raise
    code = process.exit_code()
    if code:
        raise SystemFailure(f"{host.name}: {what} failed with exit code {code}",
                            log=process.log_tail())
    return host.get(process.log).decode(errors="replace")
