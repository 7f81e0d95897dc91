"""What all systems under test share: settings, needs, and a life from deploy to destroy."""

import shlex
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePosixPath
from types import SimpleNamespace

from labbook.checks import check
from labbook.errors import LabbookError, SystemFailure
from labbook.lab.cache.python_packages import PythonPackages
from labbook.systems.artifacts import Artifact

# The process that listens at a port, if it is of the same session as another process.
LISTENER = """pid=$(ss -Hltnp 'sport = :{port}' | grep -o 'pid=[0-9]*' | head -n 1 | cut -c 5-)
[ -n "$pid" ] && [ "$(ps -o sid= -p $pid)" = "$(ps -o sid= -p {pid})" ] && echo $pid"""


@dataclass(frozen=True)
class Needs:
    """Debian packages (`a | b`: either) and commands of the host, artifacts (of Maven, or Python's
    packages) from here.

    `made` names the folders that are made of the artifacts and brought to hosts in their place.
    """

    packages: tuple[str, ...] = ()
    artifacts: tuple[Artifact | PythonPackages, ...] = ()
    commands: tuple[str, ...] = ()
    made: tuple[str, ...] = ()

    @property
    def brought(self) -> tuple[str, ...]:
        """Names of the folders that `artifacts.bring` brings to a host."""
        return self.made or tuple(a.folder for a in self.artifacts)


class Described:
    """What is known of a system before there is one, of one server or several.

    SETTINGS are JSON schema properties, each with its `default` if it has one.
    """

    NAME: str
    SETTINGS: dict = {}
    NEEDS: Needs
    protocol: str

    @classmethod
    def needs(cls, **settings) -> Needs:
        """What the system needs with these settings."""
        return cls.NEEDS

    @classmethod
    def speaks(cls, **settings) -> str:
        """The protocol by which a server with these settings is called."""
        return cls.protocol

    @classmethod
    def checked(cls, settings: dict) -> dict:
        """The settings with the defaults filled in; InputError for what is not allowed."""
        schema = {"type": "object", "additionalProperties": False, "properties": cls.SETTINGS}
        check(settings, schema, f"settings of {cls.NAME}")
        return {key: settings.get(key, rule.get("default")) for key, rule in cls.SETTINGS.items()}


class System(Described):
    """One server of a system on one host.

    A system gives, beside what describes it, `port`, `deploy()`, `command()` and `answers()`,
    which asks the running server itself.
    """

    START_SECONDS = 60
    STOP_SECONDS = 30

    def __init__(self, host, **settings):
        self.host = host
        self.settings = SimpleNamespace(**self.checked(settings))
        self.home: PurePosixPath = host.root / self.NAME
        self._process = self._refusal = None

    @property
    def address(self) -> str:
        return self.host.address

    @property
    def process(self):
        """The server's process, started by this object or an earlier one; None without."""
        if self._process is None:
            self._process = self.host.process(self.NAME)
        return self._process

    def up(self) -> "System":
        """Take away what an earlier run left, deploy and start."""
        self.destroy()
        self.provide()
        self.deploy()
        self.start()
        return self

    def provide(self) -> None:
        """Install its packages on a user's own host that allows it."""
        if self.host.is_remote and self.host.may("packages"):  # else they are there, which was looked at before
            from labbook.lab.remote.packages import provide

            given = {key: value for key, value in vars(self.settings).items() if value is not None}
            provide(self.host, self.needs(**given).packages)

    def start(self) -> None:
        """Start the server and wait until it answers; SystemFailure with its log's tail if not."""
        self.begin()
        self.await_answer()

    def begin(self) -> None:
        """Start the server, and do not wait."""
        self._process = self.host.start(self.NAME, self.command(), cwd=str(self.home))

    def await_answer(self, seconds: float | None = None, interval: float = 0.05) -> None:
        """Returns once it answers; ends it and raises SystemFailure, with its log's tail, if not."""
        try:
            self.host.wait_for(self._ready, f"{self.NAME} to answer at {self.address}:{self.port}",
                               timeout=seconds or self.START_SECONDS, process=self._process,
                               interval=interval)
        except BaseException as error:
            if self._refusal and isinstance(error, SystemFailure):
                error.message += f"; last asked, it gave {self._refusal!r}"
            with suppress(LabbookError):  # what went wrong first is what must be told
                self.stop()
            raise

    def stop(self) -> None:
        if self.process is not None:
            self.process.stop(timeout=self.STOP_SECONDS)

    def destroy(self) -> None:
        """End the server if it runs and take its files away."""
        self.stop()
        self._process = None
        self.run("rm", "-rf", self.home)

    def facts(self) -> dict:
        """What runs and how: version as the server says it, settings, memory and threads now."""
        usage = self._usage()   # first, since it shows the log of a server that runs no more
        return {"system": self.NAME, **vars(self.settings), **self.server_facts(), **usage}

    def deploy(self) -> None:
        raise NotImplementedError

    def command(self) -> str:
        raise NotImplementedError

    def answers(self) -> None:
        """Ask what the server can only answer when it serves; any exception means not yet."""
        raise NotImplementedError

    def server_facts(self) -> dict:
        raise NotImplementedError

    def run(self, *words, **options):
        """Run one command, given in words, on the host."""
        return self.host.run(shlex.join(str(word) for word in words), **options)

    def dial(self, timeout=10):
        """A socket to the server through the host's SSH connection, never over a link."""
        return self.host.dial(self.address, self.port, timeout=timeout)

    def put(self, text: str, *place) -> PurePosixPath:
        """Write a file below the system's home; its path on the host."""
        path = self.home.joinpath(*place)
        self.host.put(text, path)
        return path

    def _ready(self) -> bool:
        # The port's owner is asked first: another server there might answer in this one's place.
        if self._server_pid() is None:
            return False
        try:
            self.answers()
        except LabbookError:
            raise
        except Exception as error:  # whatever a driver makes of a server that is still starting
            self._refusal = error
            return False
        return True

    def _server_pid(self) -> int | None:
        """The process that listens at the port, if it is of the session that `start` made."""
        if self.process is None:
            return None
        found = self.host.run(LISTENER.format(port=self.port, pid=self.process.pid),
                              check=False).stdout.strip()
        return int(found) if found else None

    def _usage(self) -> dict:
        """Resident memory (MB) and threads of the server."""
        pid = self._server_pid()
        if pid is None:
            raise SystemFailure(f"{self.NAME} on {self.host.name} does not run",
                                log=self.process.log_tail() if self.process else None)
        status = dict(line.split(":", 1) for line in
                      self.host.run(f"cat /proc/{pid}/status").stdout.splitlines() if ":" in line)
        return {"resident_mb": round(int(status["VmRSS"].split()[0]) / 1024),
                "threads": int(status["Threads"])}


def memory_mb(host) -> int:
    """What the host may use: its limit if it has one, else the machine's memory."""
    limit = (getattr(host, "limits", None) or {}).get("memory")
    if limit:
        return limit >> 20
    return int(host.run("grep MemTotal: /proc/meminfo").stdout.split()[1]) >> 10
