"""The base of all systems under test: their settings, what they need, and the life of a server."""

import shlex
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import PurePosixPath
from types import SimpleNamespace

from labbook.checks import check
from labbook.errors import InputError, LabbookError, SystemFailure
from labbook.lab.python_packages import PythonPackages
from labbook.systems.artifacts import Artifact

# Raised by a mistake in the code that asks a server, not by a server that is still starting.
PROGRAMMING_ERRORS = (TypeError, AttributeError, NameError, ImportError)
# Prints the process that listens at a port, if it is of the same session as process {pid}.
# Others of the host may listen at the same port of another address.
LISTENER = """for pid in $(ss -Hltnp 'sport = :{port}' | grep -o 'pid=[0-9]*' | cut -c 5-); do
[ "$(ps -o sid= -p $pid)" = "$(ps -o sid= -p {pid})" ] && echo $pid && exit; done; false"""


@dataclass(frozen=True)
class Needs:
    """What a system needs: Debian packages (`a | b`: either) and commands on its host, and
    artifacts (of Maven, or Python packages), which are fetched here and copied to the host.

    `built` names the folders that are built from the artifacts and copied to hosts instead of them.
    """

    packages: tuple[str, ...] = ()
    artifacts: tuple[Artifact | PythonPackages, ...] = ()
    commands: tuple[str, ...] = ()
    built: tuple[str, ...] = ()

    @property
    def pushed(self) -> tuple[str, ...]:
        """Names of the folders that `lab.cache.push` copies to a host."""
        return self.built or tuple(a.folder for a in self.artifacts)

    @classmethod
    def union(cls, *needs: "Needs") -> "Needs":
        """Everything that any of them needs, each thing once."""
        return cls(*(tuple(dict.fromkeys(one for need in needs for one in getattr(need, kind)))
                     for kind in ("packages", "artifacts", "commands", "built")))


class Described:
    """What is known of a system without a host: its name, settings, needs and wire protocol.

    SETTINGS maps each setting's name to its JSON schema, with a `default` if it has one. lab.yml
    and the constructor give settings by name; an object has them, checked and with the defaults
    filled in, as attributes of `self.settings`: `self.settings.version`. One without a default
    that was not given is None.
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
        """The wire protocol of a server with these settings."""
        return cls.protocol

    @classmethod
    def checked(cls, settings: dict) -> dict:
        """The settings with the defaults filled in; InputError for what is not allowed."""
        schema = {"type": "object", "additionalProperties": False, "properties": cls.SETTINGS}
        check(settings, schema, f"settings of {cls.NAME}")
        return {key: settings.get(key, rule.get("default")) for key, rule in cls.SETTINGS.items()}


@contextmanager
def errors_of(name: str):
    """A context whose InputErrors are of the settings of this system, the one in lab.yml, and not of a part's."""
    try:
        yield
    except InputError as error:
        error.file = f"settings of {name}"
        raise


class System(Described):
    """One server of a system on one host.

    A subclass has NAME, SETTINGS, NEEDS and `port`, and defines

    - `deploy()`: write its files below `self.home`, which exists and is empty;
    - `command()`: the command line that runs it in the foreground;
    - `answers()`: ask the running server something that it can answer only when it serves;
    - `report()`: what the running server says about itself, for the record.
    """

    START_SECONDS = 60
    STOP_SECONDS = 30
    port: int

    def __init__(self, host, **settings):
        self.host = host
        self._asked = settings
        self.settings = SimpleNamespace(**self.checked(settings))
        self.home: PurePosixPath = host.root / self.NAME
        self._process = self._refusal = None

    def deploy(self) -> None:
        raise NotImplementedError

    def command(self) -> str:
        raise NotImplementedError

    def answers(self) -> None:
        """Raise any exception as long as the server does not serve.

        Errors of labbook, and TypeError, AttributeError, NameError and ImportError, end the wait
        at once: they do not go away by waiting.
        """
        raise NotImplementedError

    def report(self) -> dict:
        """Version and effective configuration, as the running server reports them: a part of
        `facts`."""
        raise NotImplementedError

    @property
    def address(self) -> str:
        return self.host.address

    @property
    def addresses(self) -> list[str]:
        return [self.address]

    @property
    def process(self):
        """The server's process, started by this object or an earlier one; None without."""
        if self._process is None:
            self._process = self.host.process(self.NAME)
        return self._process

    @property
    def processes(self) -> list:
        return [self.process] if self.process is not None else []

    def up(self) -> "System":
        """Remove what an earlier run left, deploy and start; returns when it answers."""
        self.destroy()
        self.provide()
        self.deploy()
        self.start()
        return self

    def provide(self) -> None:
        """Make its home folder, and install its packages on a remote host that allows that."""
        # elsewhere they were checked before the lab was made
        if self.host.is_remote and self.host.may("packages"):
            from labbook.lab.remote.packages import provide

            provide(self.host, self.needs(**self._asked).packages)
        self.run("mkdir", "-p", "-m", "700", self.home)

    def start(self) -> None:
        """Start the server and wait until it answers; SystemFailure with the tail of its log if
        it does not."""
        self.begin()
        self.await_answer()

    def begin(self) -> None:
        """Start the server without waiting for it."""
        self._refusal = None
        command = self.command().removeprefix("exec ")  # host.start says `exec` itself
        self._process = self.host.start(self.NAME, command, cwd=str(self.home))

    def await_answer(self, seconds: float | None = None, interval: float = 0.05) -> None:
        """Return once the server answers. If it does not within `seconds` (START_SECONDS), stop
        it and raise SystemFailure with the tail of its log."""
        try:
            self.host.wait_for(self._ready, f"{self.NAME} to answer at {self.address}:{self.port}",
                               timeout=seconds or self.START_SECONDS, process=self._process,
                               interval=interval)
        except BaseException as error:
            if self._refusal and isinstance(error, SystemFailure):
                error.message += f"; the last attempt failed with {self._refusal!r}"
            with suppress(LabbookError):  # the first error is the one to report
                self.stop()
            raise

    def stop(self) -> None:
        """Stop the server in order: SIGTERM, and SIGKILL after STOP_SECONDS."""
        if self.process is not None:
            self.process.stop(timeout=self.STOP_SECONDS)

    def kill(self) -> None:
        """SIGKILL to the server, if it runs; returns when it is gone."""
        if self.process is not None:
            self.process.kill()

    def destroy(self) -> None:
        """Kill the server if it runs, and delete its files."""
        self.kill()
        self._process = None
        self.run("rm", "-rf", self.home)

    def facts(self) -> dict:
        """What runs and how: name, settings, `report()`, and memory and threads in use now."""
        usage = self._usage()   # first: of a server that has died it shows the log
        return {"system": self.NAME, **vars(self.settings), **self.report(), **usage}

    def run(self, *command, **options):
        """Run one command, given as its words, on the host: options and result as of `host.run`."""
        return self.host.run(shlex.join(str(word) for word in command), **options)

    def channel(self, timeout: float = 10):
        """An SSH channel to the server's port, by the control network and never over a link.

        It has recv, sendall, makefile, settimeout and close as a socket has them, but neither
        setsockopt nor recv_into. ConnectionRefusedError when nothing listens there.
        """
        return self.host.dial(self.address, self.port, timeout=timeout)

    def put(self, text: str, *place, mode: int = 0o644) -> PurePosixPath:
        """Write a file below the system's home: its path on the host."""
        path = self.home.joinpath(*place)
        self.host.put(text, path, mode)
        return path

    def put_secret(self, text: str, *place) -> PurePosixPath:
        """Write a file that only its owner can read."""
        return self.put(text, *place, mode=0o600)

    def _ready(self) -> bool:
        # The port's owner is checked first: another server there might answer in this one's place.
        if self._server_pid() is None:
            return False
        try:
            self.answers()
        except (LabbookError, *PROGRAMMING_ERRORS):
            raise
        except Exception as error:  # whatever a client raises while the server starts
            self._refusal = error
            return False
        return True

    def _server_pid(self) -> int | None:
        """The process that listens at the port, if it is of the session that `start` made."""
        if self.process is None:
            return None
        pid = self.host.run(LISTENER.format(port=self.port, pid=self.process.pid),
                              check=False).stdout.strip()
        return int(pid) if pid else None

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
    """The memory that a host may use, MB: its limit if it has one, else the machine's memory."""
    limit = (getattr(host, "limits", None) or {}).get("memory")
    if limit:
        return limit >> 20
    return int(host.run("grep MemTotal: /proc/meminfo").stdout.split()[1]) >> 10
