"""A lab's client hosts at work: one ipyparallel engine on each, called from here.

The controller runs inside the first client host, on its control address, so that it ends with
the lab. Its connection files (ports and key) are written from here before anything starts: so
controller and engines start side by side, and a restarted kernel finds them again.
"""

import json
import os
import socket
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from weakref import WeakKeyDictionary

from labbook.errors import LabError, SystemFailure

START_SECONDS = 60
CONTROLLER, ENGINE = "crew-controller", "crew-engine"
FILES = "crew/profile/security/ipcontroller-{}.json"  # below the host's root
ENGINE_CHANNELS = ("registration", "control", "mux", "task", "iopub", "hb_ping", "hb_pong")
CLIENT_CHANNELS = ("control", "mux", "task", "iopub", "notification", "broadcast")
# Schedulers as threads, no task farming, no tree of broadcasters: 2 processes instead of 11.
# An engine enters with a heartbeat, so the period is short; many misses are allowed, because the
# clients leave the engine little CPU and its process is asked for anyway.
CONTROLLER_OPTIONS = ("--reuse", "--usethreads", "--scheme=none", "--nodb",
                      "--IPController.broadcast_scheduler_depth=0",
                      "--HeartMonitor.period=200", "--HeartMonitor.max_heartmonitor_misses=300")
ENGINE_OPTIONS = ("--IPEngine.enable_nanny=False", "--IPEngine.max_heartbeat_misses=0",
                  f"--timeout={START_SECONDS}")
FREE_PORTS = """import socket
s = [socket.create_server(("{address}", 0)) for _ in range({count})]
print(*(c.getsockname()[1] for c in s))"""

_crews = WeakKeyDictionary()


class Crew:
    """`hosts`: the client hosts, in the order of arguments and results of `run`."""

    def __init__(self, lab):
        """Start engines unless some are at work; the first `run` waits until they are ready."""
        self.hosts = list(lab.role("client"))
        if not self.hosts:
            raise LabError(f"lab {lab.id} has no host with the role client")
        self._client = self._engines = None
        if not self.at_work():
            self.stop()
            self._start()

    @classmethod
    def of(cls, lab) -> "Crew":
        """The lab's crew; a new one when there is none, or when one of its processes has died."""
        crew = _crews.get(lab)
        if crew is None or not crew.at_work():
            if crew is not None:
                crew.close()
            crew = _crews[lab] = cls(lab)
        return crew

    def run(self, function, *arguments, timeout: float = 60) -> list:
        """Call `function` on all hosts at once, the n-th with the n-th item of each argument.

        Arguments shorter than the crew leave its last hosts out. SystemFailure when the function
        raises, an engine dies or the time is up.
        """
        if self._client is None:
            self._join()
        count = min(map(len, arguments), default=len(self.hosts))
        calls = [self._client[self._engines[i]].apply_async(function, *(a[i] for a in arguments))
                 for i in range(count)]
        until = time.monotonic() + timeout
        return [self._result(call, host, until) for call, host in zip(calls, self.hosts)]

    def at_work(self) -> bool:
        """Whether the controller and all engines run."""
        found = [host.process(name) for host, name in self._processes()]
        return all(process is not None and process.alive() for process in found)

    def close(self) -> None:
        """Leave the engines; they go on."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def stop(self) -> None:
        """End the engines and the controller."""
        self.close()
        for host, name in self._processes():
            if (process := host.process(name)) is not None:
                process.stop(timeout=1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def _processes(self):
        return [*((host, ENGINE) for host in self.hosts), (self.hosts[0], CONTROLLER)]

    def _start(self):
        first = self.hosts[0]
        names = connection_files(first.control_address, _free_ports(first))
        with ThreadPoolExecutor(len(self.hosts)) as pool:
            list(pool.map(lambda host: self._start_on(host, names), self.hosts))

    def _start_on(self, host, files):
        address = self.hosts[0].control_address
        environment = {"IPYTHONDIR": host.root / "crew", "LABBOOK_HOST": host.name,
                       "PYTHONDONTWRITEBYTECODE": "1"}
        host.run("mkdir -p crew/profile/security && chmod 700 crew")
        profile = f"--profile-dir={host.root}/crew/profile"
        host.put(files["engine"], FILES.format("engine"), 0o600)
        if host is self.hosts[0]:
            host.put(files["client"], FILES.format("client"), 0o600)
            host.start(CONTROLLER, " ".join((
                host.python, "-m ipyparallel.controller", profile, f"--ip={address}",
                f"--location={address}", *CONTROLLER_OPTIONS)), env=environment)
        host.start(ENGINE, " ".join((
            host.python, "-m ipyparallel.engine", profile,
            f"--file={host.root / FILES.format('engine')}", *ENGINE_OPTIONS)), env=environment)

    def _join(self):
        """Connect, and learn which engine is on which host."""
        import ipyparallel

        first, until = self.hosts[0], time.monotonic() + START_SECONDS
        connection = json.loads(first.get(FILES.format("client")))
        first.wait_for(lambda: _listens(first.control_address, connection["registration"]),
                       "the controller to listen", START_SECONDS, first.process(CONTROLLER))
        self._client = ipyparallel.Client(connection, timeout=START_SECONDS)
        try:
            self._await_engines(until)
            engines = list(self._client.ids)
            found = [self._client[i].apply_async(_place) for i in engines]
            places = [self._result(call, first, until) for call in found]
        except BaseException:
            self.close()
            raise
        self._engines = [dict(zip(places, engines))[host.name] for host in self.hosts]

    def _await_engines(self, until):
        while len(self._client.ids) < len(self.hosts):
            for host in self.hosts:
                self._check_engine(host)
            if time.monotonic() > until:
                raise SystemFailure(f"only {len(self._client.ids)} of {len(self.hosts)} engines "
                                    "came to the controller",
                                    log=self.hosts[0].process(CONTROLLER).log_tail())
            time.sleep(0.02)

    def _check_engine(self, host):
        process = host.process(ENGINE)
        if process is None or not process.alive():
            raise SystemFailure(f"{host.name}: the engine of the clients has died",
                                log=process and process.log_tail())
        return process

    def _result(self, call, host, until):
        """What the call gave; a look at its process each second, so that a death is no hang."""
        import ipyparallel

        while not call.done():
            call.wait(1)
            if call.done():
                break
            process = self._check_engine(host)
            if time.monotonic() > until:
                log = process.log_tail()
                self.stop()  # it is not known what the engine still does: a new one next time
                raise SystemFailure(f"{host.name}: the engine did not answer in time", log=log)
        try:
            return call.get(timeout=1)
        except ipyparallel.RemoteError as error:
            raise SystemFailure(f"{host.name}: {error.ename}: {error.evalue}") from None


def connection_files(address: str, ports: list[int]) -> dict[str, str]:
    """The texts of the controller's two connection files, as ipcontroller --reuse reads them."""
    shared = {"key": uuid.uuid4().hex, "curve_serverkey": None, "location": address, "ssh": "",
              "pack": "json", "unpack": "json", "signature_scheme": "hmac-sha256",
              "interface": f"tcp://{address}"}
    ports = iter(ports)
    engine = {channel: next(ports) for channel in ENGINE_CHANNELS}
    client = {channel: next(ports) for channel in CLIENT_CHANNELS}
    client |= {"registration": engine["registration"], "task_scheme": "none"}
    return {"engine": json.dumps(shared | engine | {"broadcast": [next(ports)]}),
            "client": json.dumps(shared | client)}


def _free_ports(host) -> list[int]:
    count = len(ENGINE_CHANNELS) + len(CLIENT_CHANNELS) + 1
    script = FREE_PORTS.format(address=host.control_address, count=count)
    return [int(port) for port in host.run(f"{host.python} -c '{script}'").stdout.split()]


def _listens(address, port) -> bool:
    try:
        socket.create_connection((address, port), timeout=1).close()
        return True
    except OSError:
        return False


def _place() -> str:
    """Runs in the engine."""
    return os.environ["LABBOOK_HOST"]
