"""A lab's client hosts at work: one ipyparallel engine on each, called from the driver.

The controller runs inside the first client host, so that it ends with the lab. The driver writes
its connection files (ports and key) before anything starts: so controller and engines start side by
side, and a restarted kernel finds them again. What they say is encrypted (CURVE). On a local lab's
hosts all meet at the control address; on a user's hosts engines connect to the first one's data
address, and the driver connects through SSH.
"""

import shlex
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from weakref import WeakKeyDictionary

from labbook.errors import LabError, SystemFailure
from labbook.lab.clock import Offset, host_offset, measure
from labbook.lab.host.process import Process
from labbook.workloads.crew.connection import (
    CONTROLLER,
    FILES,
    FREE_PORTS,
    START_SECONDS,
    Connection,
    connection_files,
)
from labbook.workloads.crew.on_host import engine as on_host

BACK_SECONDS = 60  # for a lost SSH connection to come back
ASK_SECONDS = 5  # after which a new client asks for the engines
CLOCK_SECONDS, CLOCK_ASKS = 10, 5  # how long offsets hold: see lab.clock.DRIFT
ENGINE = "crew-engine"
# Schedulers as threads, no task farming, no tree of broadcasters: 2 processes instead of 11.
# An engine registers with a heartbeat, so the period is short; many misses are allowed, because the
# clients leave the engine little CPU and its process is checked anyway.
CONTROLLER_OPTIONS = ("--reuse", "--usethreads", "--scheme=none", "--nodb",
                      "--IPController.broadcast_scheduler_depth=0",
                      "--HeartMonitor.period=200", "--HeartMonitor.max_heartmonitor_misses=300")
ENGINE_OPTIONS = ("--IPEngine.enable_nanny=False", "--IPEngine.max_heartbeat_misses=0",
                  f"--timeout={START_SECONDS}")

_crews = WeakKeyDictionary()


class _Lost(Exception):
    """The connection to the controller broke: answers under way are lost."""


class Crew:
    """`hosts`: the client hosts, in the order of arguments and results of `run`."""

    def __init__(self, lab):
        """Start engines unless they are running; the first `run` waits until they are ready.
        LabError for a lab without hosts of the role `client`."""
        self.hosts = list(lab.role("client"))
        if not self.hosts:
            raise LabError(f"lab {lab.id} has no host with the role client")
        self._connection = Connection(self.hosts[0])
        self._engines = self._clocks = None
        self._given_up = False
        if not self.at_work():
            self.stop()
            self._start()

    @classmethod
    def of(cls, lab) -> "Crew":
        """The lab's crew; a new one when there is none, or when one of its processes has died."""
        crew = _crews.get(lab)
        if crew is not None and crew._given_up:
            crew.stop()  # what its engines still do is not known
        if crew is None or not crew.at_work():
            if crew is not None:
                crew.close()
            crew = _crews[lab] = cls(lab)
        return crew

    def run(self, function, *arguments, timeout: float = 60) -> list:
        """Call `function` on all client hosts at once: a list of what it returned, one item a host.

        Each of `arguments` is a list with one item for each host, in the order of `hosts`: the
        n-th host gets the n-th items, so `crew.run(f, [1, 2], ["a", "b"])` calls f(1, "a") on the
        first host and f(2, "b") on the second. Lists shorter than the crew leave its last hosts
        out. Without arguments the function is called without any.

        The function must be importable on the hosts: in a module of the library whose imports are
        installed there (a module in an `on_host` folder: standard library only), not in a notebook.
        Arguments and results are pickled; return plain Python objects or bytes.

        The call must return within `timeout` seconds, on all hosts: for what takes longer start a
        program (see workloads.clients.on_host.engine), or raise `timeout`.

        SystemFailure when the function raises (its `log` has the traceback from the host), when an
        engine dies or when the time is up. Engines go on while the SSH connection to them is lost,
        and their answers are asked for again; LabError when it does not come back.
        """
        count = min(map(len, arguments), default=len(self.hosts))
        names = [uuid.uuid4().hex for _ in range(count)]
        calls = [(on_host.call, name, function, *(a[i] for a in arguments))
                 for i, name in enumerate(names)]
        again = [(on_host.again, name) for name in names]
        try:
            return self._answers(calls, again, time.monotonic() + timeout)
        except KeyboardInterrupt:   # the engines go on with the call
            self._given_up = True
            raise

    def clock_offsets(self) -> list[Offset]:
        """Of each host, in order; measured again when the last time is CLOCK_SECONDS ago.

        Hosts of a local lab have this machine's clock.
        """
        if not self._connection.far:
            return [host_offset(host) for host in self.hosts]
        if self._clocks is None or time.monotonic() - self._clocks[0] > CLOCK_SECONDS:
            self._clocks = time.monotonic(), [self._clock(i) for i in range(len(self.hosts))]
        return self._clocks[1]

    def at_work(self) -> bool:
        """Whether the controller and all engines run."""
        # Asked before each load: one that was never started is not alive either, so nobody asks for that first.
        return all(Process(host, name).alive() for host, name in self._processes())

    def close(self) -> None:
        """Disconnect; the engines go on."""
        self._connection.close()

    def stop(self) -> None:
        """End the engines and the controller."""
        self.close()
        self._engines = None
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
        ports = first.run(f"{shlex.quote(first.python)} -c '{FREE_PORTS}'").stdout.split()
        files = connection_files(*self._connection.meeting, map(int, ports))
        with ThreadPoolExecutor(len(self.hosts)) as pool:
            list(pool.map(lambda host: self._start_on(host, files), self.hosts))

    def _start_on(self, host, files):
        environment = {"IPYTHONDIR": host.root / "crew", "LABBOOK_HOST": host.name}
        if not (host.is_remote and host.may("software")):  # else its Python is the lab's and may cache
            environment["PYTHONDONTWRITEBYTECODE"] = "1"
        host.run("mkdir -p crew/profile/security && chmod 700 crew")
        profile = f"--profile-dir={host.root}/crew/profile"
        own = files if host is self.hosts[0] else [FILES.format("engine")]
        for path in own:
            host.put(files[path], path, 0o600)
        if host is self.hosts[0]:
            engines, clients = self._connection.meeting  # two addresses need options of their own
            host.start(CONTROLLER, " ".join((
                shlex.quote(host.python), "-m ipyparallel.controller", profile, *CONTROLLER_OPTIONS,
                f"--IPController.engine_ip={engines} --IPController.client_ip={clients}")),
                env=environment)
        host.start(ENGINE, " ".join((
            shlex.quote(host.python), "-m ipyparallel.engine", profile,
            f"--file={host.root / FILES.format('engine')}", *ENGINE_OPTIONS)), env=environment)

    def _join(self):
        """Connect, and ask which engine is on which host."""
        until = time.monotonic() + START_SECONDS
        self._connect(until)
        try:
            engines = list(self._connection.client.ids)
            found = [self._connection.client[i].apply_async(on_host.place) for i in engines]
            names = [self._result(call, self.hosts[0], until) for call in found]
        except BaseException:
            self.close()
            raise
        self._engines = [dict(zip(names, engines))[host.name] for host in self.hosts]

    def _connect(self, until):
        """Until all engines are there.

        The controller tells a client of the engines that are there when it connects, and then of
        each that registers. It does not tell one whose subscription has not yet arrived, so a
        client that lacks engines is replaced now and then.
        """
        self._connection.open()
        connected = time.monotonic()
        try:
            while (there := len(self._connection.client.ids)) < len(self.hosts):
                for host in self.hosts:
                    self._check_engine(host)
                if time.monotonic() > until:
                    log = self.hosts[0].process(CONTROLLER).log_tail()
                    raise SystemFailure(f"only {there} of {len(self.hosts)} engines connected to "
                                        "the controller", log=log)
                if time.monotonic() - connected > ASK_SECONDS:
                    self.close()
                    self._connection.open()
                    connected = time.monotonic()
                time.sleep(0.02)
        except BaseException:
            self.close()
            raise

    def _check_engine(self, host):
        process = host.process(ENGINE)
        if process is None or not process.alive():
            raise SystemFailure(f"{host.name}: the engine of the clients has died",
                                log=process and process.log_tail())
        return process

    def _answers(self, calls, again, until, first=0) -> list:
        """Answers to `calls`, one a host from the `first`; to `again` after a lost connection."""
        hosts = self.hosts[first:]
        while True:
            try:
                if self._engines is None:
                    self._join()
                elif self._connection.client is None or self._connection.broken():
                    raise _Lost
                results = [self._connection.client[engine].apply_async(*call)
                           for engine, call in zip(self._engines[first:], calls)]
                calls = again
                return [self._result(call, host, until) for call, host in zip(results, hosts)]
            except _Lost:
                if self._engines is not None:
                    self._connect_again()

    def _connect_again(self):
        """With a new client: the controller may take the old one to be connected still."""
        self.close()
        until = time.monotonic() + BACK_SECONDS
        while True:
            try:
                return self._connect(until)
            except LabError as error:
                if time.monotonic() > until:
                    self._given_up = True
                    raise LabError("the connection to the clients was lost and did not come back "
                                   f"within {BACK_SECONDS} s: {error}") from None
                time.sleep(1)

    def _result(self, call, host, until):
        """What the call returned. The engine's process is checked each second, so that its death
        is no hang."""
        import ipyparallel

        gone = None
        while not call.done():
            call.wait(1)
            if call.done():
                break
            if self._connection.broken():
                raise _Lost
            try:
                process = self._check_engine(host)
                gone = None
            except LabError:  # unreachable for now; it may answer all the same
                gone = gone or time.monotonic() + BACK_SECONDS
                if time.monotonic() > gone:
                    self._given_up = True
                    raise
                continue
            if time.monotonic() > until:
                log = process.log_tail()
                self.stop()  # it is not known what the engine still does: a new one next time
                raise SystemFailure(f"{host.name}: the engine did not answer in time; "
                                    "Crew.run takes a longer `timeout`", log=log)
        try:
            outcome = call.get(timeout=1)
        except ipyparallel.RemoteError as error:
            if error.ename == on_host.NeverCame.__name__:
                raise LabError(f"{host.name}: the connection was lost before the call arrived there",
                               remedy="Try again") from None
            raise SystemFailure(f"{host.name}: {error.ename}: {error.evalue}",
                                log=error.traceback) from error
        if not isinstance(outcome, on_host.Outcome):
            return outcome
        if outcome.error is not None:
            raise SystemFailure(f"{host.name}: {outcome.error}", log=outcome.traceback)
        return outcome.answer

    def _clock(self, host: int) -> Offset:
        """Measured through the host's first engine."""
        def ask():
            call = [(on_host.now,)]
            return self._answers(call, call, time.monotonic() + START_SECONDS, first=host)[0]
        return measure(ask, CLOCK_ASKS)
