"""A host: commands, files and processes over one SSH connection (Fabric) that stays open."""

import io
import shlex
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from labbook.errors import LabError, Lost, SystemFailure
from labbook.lab.host.process import Process
from labbook.lab.ssh.login import Login


LEAST_KIB = 64  # a disk with less left is full


@dataclass(frozen=True)
class Result:
    stdout: str
    stderr: str
    exit_code: int


@dataclass
class Host:
    """`address` is on the data network; the login's is on the control network, never shaped or cut.

    `root` is the host's own folder: nothing outside it, /run, /tmp and /var/tmp is written.
    `cores` are the CPUs it has for itself (None: all), `limits` as in lab.yml with sizes in bytes.
    `sudo`: its user is not root and may run commands with `root=True`. `env` is set for all
    commands. `groups` are the folders of the control groups that commands join, where the SSH
    connection itself is outside of them. `allow` are permissions on a user's own host (keys of
    environment.schema.ALLOW); None on a host that the lab made.
    """

    name: str
    site: str
    role: str
    address: str
    login: Login
    root: PurePosixPath
    python: str
    cores: list[int] | None = None
    limits: dict = field(default_factory=dict)
    sudo: bool = False
    env: dict = field(default_factory=dict)
    groups: tuple[str, ...] = ()
    allow: frozenset[str] | None = None

    def __post_init__(self):
        self._lock, self._connection, self.transfers = threading.RLock(), None, threading.RLock()
        self.tunnels = []  # closed by `close`, not by a lost connection

    @property
    def is_remote(self) -> bool:
        """Whether it is a user's own host; a host that the lab made is not."""
        return self.allow is not None

    def may(self, kind: str) -> bool:
        """Whether the lab may do `kind` (a key of schema.ALLOW) here: anything on a host that it
        made; on a user's own host what the environment file allows."""
        return self.allow is None or kind in self.allow

    @property
    def control_address(self) -> str:
        return self.login.address

    def run(self, command: str, timeout: float = 60, check: bool = True, env=None,
            root: bool = False) -> Result:
        """Run a shell command in the host's root folder; `timeout` in seconds.

        With `root` it runs as root. On a host of the user's it is then outside of the host's control groups: the
        lab's own work, such as a link's delay line, is no load of the host. On a local host it counts as the host's.

        LabError when the host cannot be reached or the time is up and, with `check`, when the exit
        code is not 0: it has the host, the command and the end of the output.
        """
        result = self._run(self._line(command, env, root), command, timeout)
        if check and result.exit_code != 0:
            output = (result.stderr or result.stdout).strip()[-2000:]
            raise LabError(f"{self.name}: `{_short(command)}` ended with exit code "
                           f"{result.exit_code}: {output}")
        return result

    def open(self, command: str, env=None, root: bool = False, apart: bool = False):
        """A channel (paramiko's, like a socket) to a command that runs until the channel is closed or it ends
        by itself; `apart`, and with `root`, outside of the host's limits. LabError when the host cannot be reached."""
        from labbook.lab.ssh import connection as ssh

        return ssh.open_command(self, self._line(command, env, root, apart))

    def _line(self, command, env, root, apart=False) -> str:
        line = self.in_root_folder(command, env, apart=root or apart)
        return self._by_sudo(line, command) if root and self.login.user != "root" else line

    def put(self, data, remote, mode: int = 0o644) -> None:
        """Write bytes, text or a local file (a Path) to a file of the host, atomically.

        `remote` is relative to the root folder. Lost or LabError when it fails.
        """
        raw = data.read_bytes() if isinstance(data, Path) else (
            data.encode() if isinstance(data, str) else data)
        remote = str(self.root / remote)
        partial = f"{remote}.partial"
        with self._sftp_channel("put", remote) as sftp:
            with sftp.open(partial, "wb") as file:
                file.chmod(mode)
                file.set_pipelined(True)
                file.write(raw)
            sftp.posix_rename(partial, remote)

    def get(self, remote, local: Path | None = None) -> bytes | None:
        """Read a file: its bytes, or None after writing them to the file `local`."""
        remote, buffer = str(self.root / remote), io.BytesIO()
        with self._sftp_channel("get", remote) as sftp:
            if local is not None:
                sftp.get(remote, str(local))
                return None
            sftp.getfo(remote, buffer)
        return buffer.getvalue()

    def dial(self, address: str, port: int, timeout: float = 10):
        """A socket to a server that this host reaches, through the SSH connection.

        ConnectionRefusedError when nothing listens there.
        """
        from labbook.lab.ssh import connection as ssh

        return ssh.dial(self, address, port, timeout)

    def start(self, name: str, command: str, env=None, cwd=None, root: bool = False) -> Process:
        """Start a program (one simple command) that outlives this connection and this process."""
        process = Process(self, name, root)
        process.begin(command, env, cwd)
        return process

    def process(self, name: str) -> Process | None:
        """The process that was last started under this name; None when none was."""
        process = Process(self, name)
        return process if process.known() else None

    def wait_for(self, predicate, what: str, timeout: float, process=None, interval: float = 0.1):
        """Call `predicate` until it returns something true; return that. Times are in seconds.

        SystemFailure, with the end of the process's log, when time is up or the process ended.
        `what` names in the error what was waited for.
        """
        until = time.monotonic() + timeout
        while True:
            ended = process is not None and not process.alive()
            answer = predicate()
            if answer:
                return answer
            if ended or time.monotonic() > until:
                why = (f"{process.name} ended with exit code {process.exit_code()}" if ended
                       else f"not within {timeout:g} s") + self._full()
                log = process.log_tail() if process else None
                where = f" (log: {process.log})" if process else ""
                raise SystemFailure(f"{self.name}: waited for {what}: {why}{where}", log=log)
            time.sleep(interval)

    def _full(self) -> str:
        """Words for an error when the disk of the root folder is full; else empty."""
        left = self.run("df --output=avail . | tail -n 1", check=False).stdout.strip()
        return f"; the disk of {self.name} is full" if left.isdigit() and int(left) < LEAST_KIB else ""

    def close(self) -> None:
        for tunnel in [*self.tunnels]:
            tunnel.close()
        self.disconnect()

    def disconnect(self, only=None) -> None:
        """Drop the connection; the next command opens a new one. only: the connection that broke: a thread may have
        opened another one since."""
        with self._lock:
            if only is not None and self._connection is not only:
                return
            if self._connection is not None:
                from labbook.lab.ssh import connection as ssh

                ssh.close(self._connection)
            self._connection = None

    @property
    def connected(self) -> bool:
        return self._connection is not None and self._connection.is_connected

    def connection(self):
        """The Fabric connection, opened if need be."""
        with self._lock:
            if not self.connected:
                self.disconnect()
                from labbook.lab.ssh import connection as ssh

                self._connection = ssh.connect(self.name, self.login)
            return self._connection

    def in_root_folder(self, command, env, apart=False) -> str:
        """A shell line that runs `command` in the root folder, with `apart` outside of its groups."""
        values = {"HOME": str(self.root), **self.env, **(env or {})}
        exports = " ".join(f"{k}={shlex.quote(str(v))}" for k, v in values.items())
        root = shlex.quote(str(self.root))
        return f"{'' if apart else self._join()}export {exports}; cd {root} && {{ {command}\n}}"

    def _join(self):
        """Shell code that moves the shell into the host's control groups, by sudo if need be."""
        if not self.groups:
            return ""
        files = [shlex.quote(f"{group}/cgroup.procs") for group in self.groups]
        mine = " && ".join(f"echo $$ > {file}" for file in files)
        roots = shlex.quote(" && ".join(f"echo $0 > {file}" for file in files))
        return f"{{ {mine}; }} 2> /dev/null || sudo -n sh -c {roots} $$ || exit 125; "

    def _by_sudo(self, line, command):
        if not self.sudo:
            raise LabError(f"{self.name}: `{_short(command)}` needs root, and the environment "
                           "allows nothing there that gives it")
        return f"exec sudo -n sh -c {shlex.quote(f'PATH=$PATH:/usr/sbin:/sbin; {line}')}"

    def _run(self, line, command, timeout) -> Result:
        from labbook.lab.ssh import connection as ssh

        connection = self.connection()
        try:
            return Result(*ssh.run(connection, line, timeout))
        except ssh.TimedOut:
            raise LabError(f"{self.name}: `{_short(command)}` did not end within "
                           f"{timeout:g} s") from None
        except ssh.LOST as error:
            self.disconnect(only=connection)
            raise Lost(f"{self.name}: connection lost during `{_short(command)}`: "
                       f"{error or type(error).__name__}") from None

    def _sftp_channel(self, verb, remote):
        from labbook.lab.ssh import connection as ssh

        return ssh.sftp(self, verb, remote)


def _short(command: str) -> str:
    line = " ".join(command.split())
    return line if len(line) <= 120 else line[:117] + "..."
