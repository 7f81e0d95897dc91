"""An ipyparallel cluster over the machines of a fleet file: a controller here, an engine on each by SSH.

The controller listens on loopback alone. An engine reaches it through its own SSH session, by ports of loopback
over there, and its connection file comes by that session's input, so all traffic is inside SSH, and encrypted by
CURVE besides: other users of either machine can neither read nor send. A session that ends is begun again.
"""

import contextlib
import ctypes
import itertools
import json
import os
import random
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from labbook import paths
from labbook.atomic_files import disk_errors
from labbook.errors import LabError
from labbook.lab.ssh import config
from labbook.pipeline.executing import pages
from labbook.pipeline.executing.driver import sweep_sockets
from labbook.pipeline.fleet.engines import CONNECT_SECONDS, Engines
from labbook.pipeline.fleet.on_machine import NAME
from labbook.workloads.crew import connection
from labbook.workloads.crew.crew import CONTROLLER_OPTIONS

FIRST_PORT, LAST_PORT = 20000, 32000    # of loopback on a machine, below those that its kernel gives out
LONGEST_PAUSE_S = 30                    # between two tries to begin a session
CHANNELS = tuple(channel for channel in connection.ENGINE_CHANNELS if channel != "task")   # no task farming
_PR_SET_PDEATHSIG = 1


class OwnCluster(Engines):
    """Engines on the machines of a Fleet, from the first look on; `close` ends them all."""

    def __init__(self, fleet):
        self.fleet, self._sessions, self._controller = fleet, {}, None
        self._stack = contextlib.ExitStack()
        try:
            self._folder = self._stack.enter_context(_own_folder())
            files = connection.connection_files(connection.LOOPBACK, connection.LOOPBACK, _free_ports())
            for name, text in files.items():
                _write_secret(self._folder / name, text)
            config.write({one.name: one.login for one in fleet.machines}, self._folder)
            self._controller = self._start_controller()
            super().__init__(self._connect(json.loads(files[connection.FILES.format("client")])))
            engine = json.loads(files[connection.FILES.format("engine")])
            self._sessions = {one.name: _Session(one, engine, self._folder, fleet.lost_after_s)
                              for one in fleet.machines}
        except BaseException:
            self.close()
            raise

    def look(self) -> dict[str, dict]:
        for session in self._sessions.values():
            session.tend()
        return super().look()

    def why_not(self, name: str) -> str:
        """The last line that SSH or the engine of a machine printed."""
        return self._sessions[name].last_words()

    def close(self) -> None:
        for session in self._sessions.values():
            session.end()
        if hasattr(self, "client"):
            with contextlib.suppress(Exception):
                super().close()
        if self._controller:
            with contextlib.suppress(ProcessLookupError):   # with the process that it has forked
                os.killpg(self._controller.pid, signal.SIGKILL)
            self._controller.wait()
        self._stack.close()

    def _start_controller(self):
        command = [sys.executable, "-m", "ipyparallel.controller", f"--profile-dir={self._folder}/crew/profile",
                   *CONTROLLER_OPTIONS, f"--IPController.engine_ip={connection.LOOPBACK}",
                   f"--IPController.client_ip={connection.LOOPBACK}"]
        with open(self._folder / "controller.log", "w") as log:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                                    start_new_session=True, preexec_fn=lambda: _die_with_us(signal.SIGTERM))

    def _connect(self, client: dict):
        import ipyparallel

        until = time.monotonic() + CONNECT_SECONDS
        while not _listens(client["registration"]):
            if self._controller.poll() is not None or time.monotonic() > until:
                raise LabError("the controller of the fleet did not start: "
                               + (self._folder / "controller.log").read_text()[-500:])
            time.sleep(0.05)
        return ipyparallel.Client(client | {"task": connection.NOWHERE}, timeout=CONNECT_SECONDS)


class _Session:
    """The SSH session of one machine, in which its engine runs."""

    def __init__(self, machine, engine: dict, folder: Path, lost_after_s: float):
        self.machine, self._engine, self._folder = machine, engine, folder
        self._alive_s = max(int(lost_after_s) // 4, 1)
        self._log = paths.build_dir() / "logs" / f"fleet-{machine.name}.log"
        self._log.unlink(missing_ok=True)       # of an earlier run
        self._process, self._next, self._pause = None, 0.0, 1.0

    def tend(self) -> None:
        """Begin it if it has ended; less often if that does not help."""
        now = time.monotonic()
        if self._process is not None and self._process.poll() is not None:
            began_s, self._process = now - self._began, None
            self._pause = 1.0 if began_s > LONGEST_PAUSE_S else min(self._pause * 2, LONGEST_PAUSE_S)
            self._next = now + self._pause
        if self._process is None and now >= self._next:
            self._began = now
            self._begin()

    def _begin(self):
        ports = random.sample(range(FIRST_PORT, LAST_PORT), len(CHANNELS) + 1)
        led = dict(zip((*CHANNELS, "broadcast"), ports))
        theirs = self._engine | led | {"broadcast": [led["broadcast"]], "task": connection.NOWHERE}
        near = {**{channel: self._engine[channel] for channel in CHANNELS}, "broadcast": self._engine["broadcast"][0]}
        tunnels = [word for channel, port in led.items() for word in (
            "-R", f"{connection.LOOPBACK}:{port}:{connection.LOOPBACK}:{near[channel]}")]
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with open(self._log, "a") as log:
            self._process = subprocess.Popen(
                ["ssh", "-F", str(self._folder / "ssh_config"), "-T", "-o", "BatchMode=yes", "-o", "LogLevel=ERROR",
                 "-o", "ExitOnForwardFailure=yes", "-o", f"ServerAliveInterval={self._alive_s}", "-o",
                 f"ConnectTimeout={max(4 * self._alive_s, 10)}", *tunnels, self.machine.name, _command(self.machine)],
                stdin=subprocess.PIPE, stdout=log, stderr=log, text=True, start_new_session=True,
                preexec_fn=_die_with_us)
        with contextlib.suppress(OSError):      # it has ended at once; its words are in the log
            self._process.stdin.write(json.dumps(theirs) + "\n")
            self._process.stdin.flush()

    def last_words(self) -> str:
        try:
            lines = [line for line in self._log.read_text(errors="replace").splitlines() if line.strip()]
        except OSError:
            lines = []
        return lines[-1] if lines else "no answer"

    def end(self) -> None:
        if self._process is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()     # with it the engine ends
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(5)
            self._process.kill()
            self._process.wait()


def _command(machine) -> str:
    folder = shlex.quote(str(machine.checkout))
    return (f"cd {folder} && export LABBOOK_ROOT={folder} {NAME}={shlex.quote(machine.name)} "
            "PATH=$PATH:/usr/sbin:/sbin && exec .venv/bin/python -m labbook.pipeline.fleet.engine")


def _die_with_us(number=signal.SIGKILL):
    """The kernel sends it this signal when the driver is killed (Linux); upon SIGTERM a controller ends the
    process that it has forked, too."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)


def _free_ports() -> list[int]:
    sockets = [socket.socket() for _ in range(connection.PORTS)]
    try:
        for one in sockets:
            one.bind((connection.LOOPBACK, 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


@contextlib.contextmanager
def _own_folder():
    """An empty folder that only this user can enter. Its note and lock are like those of a study's sockets, so the
    next command removes what a killed driver leaves."""
    sweep_sockets()
    name = next(one for number in itertools.count(1) if not pages.is_running(one := f"fleet-{number}"))
    note = paths.build_dir() / "logs" / f"{name}.sockets"
    with pages.only_me(name):
        folder = Path(tempfile.mkdtemp(prefix="labbook-fleet-"))
        try:
            with disk_errors(note):
                note.parent.mkdir(parents=True, exist_ok=True)
                note.write_text(str(folder))
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            note.unlink(missing_ok=True)


def _write_secret(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(0o600)
    path.write_text(text)


def _listens(port: int) -> bool:
    try:
        socket.create_connection((connection.LOOPBACK, port), timeout=1).close()
        return True
    except OSError:
        return False
