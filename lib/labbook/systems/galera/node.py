"""One MariaDB server with Galera replication: a node of a cluster, or a cluster of one node."""

import shlex
import time
from pathlib import Path

from labbook.errors import InputError, LabError, SystemFailure
from labbook.lab.cache.build import COMPLETE
from labbook.lab.cache.push import push
from labbook.systems.base import Needs
from labbook.systems.galera import config
from labbook.systems.sql import BOUNDED, INIT, MARIADBD, RUN_SECONDS, SQLServer, execute_command, fill_command
from labbook.targets import USER

NEEDS = Needs(packages=("mariadb-server", "galera-4", "mariadb-backup", "socat", "iproute2",
                        "procps"),
              commands=("ss", "ps"))
NEW_CLUSTER = "--wsrep-new-cluster"
# Accounts are made before a node starts: the cluster would replicate what an init-file says.
ALONE = "--wsrep-on=OFF --wsrep-provider=none"
# Files that a node makes anew; a copy of a stopped node's data needs none of them.
NOT_COPIED = ("galera.cache", "gvwstate.dat", "ibtmp1", "ib_buffer_pool", "sst_in_progress")
STATE = ("grastate.dat", "gvwstate.dat", "galera.cache")
TRANSFERS = ("IST", "SST")
SST_SECONDS = 300
ASK_SECONDS = 0.2  # half a dozen nodes share a machine


class Left(SystemFailure):
    """The node has closed its connection to the cluster and does not reconnect by itself."""


class GaleraNode(SQLServer):
    """`peers`: the addresses of all nodes of its cluster; without, the node is a cluster of its own."""

    NAME = "galera"
    SETTINGS = {
        "engine": {"enum": ["InnoDB"], "default": "InnoDB"},
        **config.SHARED,
        "peers": {"type": "array", "items": {"type": "string"}, "minItems": 1},
        "segment": {**config.BYTE, "default": 0},
        "weight": {**config.BYTE, "default": 1},
    }
    POOL_MB = 64

    def __init__(self, host, password: str | None = None, **settings):
        super().__init__(host, password, **settings)
        self.data = self.home / "data"
        self._how = ()

    @classmethod
    def needs(cls, **settings) -> Needs:
        return NEEDS

    @classmethod
    def checked(cls, settings: dict) -> dict:
        settings = super().checked(settings)
        config.check_windows(settings)
        return settings

    def deploy(self, data: Path | None = None, empty=False, password: str | None = None) -> None:
        """Write the configuration and the data directory.

        data: the data directory of a stopped node, in or below a folder of the cache (lab/cache).
        empty: leave the data directory empty, so that the node gets all data from the cluster.
        password: of the cluster's USER; without, a new one.
        """
        self.run("mkdir", "-p", self.data)
        self._given = password or self._given
        self.put_accounts(config.CHECK_ACCOUNT)
        self.put_options(config.transfers(self.address), **config.options(
            self.settings, self.host.name, self.address, self._provider(),
            f"{USER}:{self.password}"))
        if data is not None:
            self._copy(data)
            self.host.run(execute_command(self.home, ALONE, self.home / INIT), timeout=RUN_SECONDS)
        elif not empty:
            self.host.run(fill_command(self.home, ALONE, self.home / INIT), timeout=RUN_SECONDS)

    def command(self) -> str:
        return shlex.join((MARIADBD, f"--defaults-file={self.home}/my.cnf", *self._how))

    def start(self, *how, seconds=None) -> None:
        """Start with these options on the command line; returns once the node is Synced."""
        self.begin(*how or ((NEW_CLUSTER,) if self._alone() else ()))
        self.await_answer(seconds)

    def begin(self, *how) -> None:
        """Start without waiting."""
        self._how = how
        super().begin()

    def begin_again(self) -> None:
        """Start without waiting, with the options of the last time."""
        self.begin(*self._how)

    def await_answer(self, seconds=None, interval=ASK_SECONDS) -> None:
        """Wait until the node is Synced. If it does not become so, it is stopped; SystemFailure with the
        end of its log, which is a `Left` as soon as the node has left the cluster."""
        super().await_answer(seconds, interval)

    def rejoin(self, by="IST", seconds=SST_SECONDS) -> dict:
        """Restart a node that was killed or stopped.

        by: IST transfers what the node missed since its last transaction, SST a whole copy. Returns `by`, as the node's
        log says (None: nothing was missing), and `seconds` until it was Synced. InputError for another transfer, and
        for a node that runs; SystemFailure where it is not Synced within `seconds`.
        """
        if by not in TRANSFERS:
            raise InputError(f"no state transfer {by!r}", key="by", allowed=TRANSFERS)
        if self.process is not None and self.process.alive():
            raise InputError(f"galera on {self.host.name} runs", key="rejoin",
                             allowed="a node that was killed or stopped")
        began = time.monotonic()
        if by == "SST":
            self.run("rm", "-f", *(self.data / name for name in STATE))
            self.start(seconds=seconds)
        else:
            self.start(f"--wsrep_start_position={self.recovered()}", seconds=seconds)
        return {"by": self.transfer(), "seconds": time.monotonic() - began}

    def recovered(self) -> str:
        """The position (history and number) of the last transaction of a node that does not run.

        SystemFailure where its files have none, or the server fails to look for it.
        """
        done = self.host.run(f"{BOUNDED} {self.command()} --wsrep-recover --log-error=/dev/stderr 2>&1",
                             timeout=RUN_SECONDS, check=False)
        position = config.parse_recovered_position(done.stdout)
        if done.exit_code or position is None:
            why = f": --wsrep-recover ended with exit code {done.exit_code}" if done.exit_code else ""
            raise SystemFailure(f"galera on {self.host.name} has no transaction to start from{why}",
                                log=done.stdout[-4000:])
        return position

    def transfer(self) -> str | None:
        """How it got the transactions that it missed when it last started: SST, IST or None."""
        log = self.run("grep", "-aE", config.TRANSFER, self.process.log, check=False)
        return config.parse_transfer(log.stdout)

    def answers(self) -> None:
        found = self.cluster_state()
        if not found["size"] and self.left():
            raise Left(f"{self.host.name}: it left its cluster while joining", log=self.process.log_tail())
        if not (found["primary"] and found["state"] == "Synced"):
            raise ConnectionError(f"it is {found['state']}, {found}")

    def leads(self) -> bool:
        """Whether it was started as the first node of a new cluster."""
        return NEW_CLUSTER in self._how

    def left(self) -> bool:
        """Whether it joined its cluster since its start and has closed its connection since."""
        log = self.run("grep", "-aE", config.SHIFTS, self.process.log, check=False)
        return config.has_left(log.stdout)

    def cluster_state(self) -> dict:
        """size, primary, state, committed; see config.parse_cluster_state."""
        return config.parse_cluster_state(self._status())

    def counters(self) -> dict:
        return config.parse_counters(self._status())

    def query_synced(self, statement: str, database=None) -> tuple:
        """All rows of one statement, run once the node has applied every transaction that the cluster
        had committed. (A committed transaction may not be visible on all nodes yet.)"""
        with self.client(database) as client, client.cursor() as cursor:
            cursor.execute("SET SESSION wsrep_sync_wait = 3")  # reads, updates and deletes
            cursor.execute(statement)
            return cursor.fetchall()

    def listens(self) -> bool:
        """Whether other nodes can connect to its cluster port."""
        return bool(self.run("ss", "-Hltn", f"sport = :{config.CLUSTER_PORT}").stdout.strip())

    def stopped_last(self) -> bool | None:
        """Whether its data say that it was the last node to stop in order. None where they say nothing: it has
        never run, or a state transfer to it has failed."""
        state = self.run("cat", self.data / "grastate.dat", check=False)
        return None if state.exit_code else "safe_to_bootstrap: 1" in state.stdout

    def report(self) -> dict:
        return {**super().report(),
                "provider": self._status()["wsrep_provider_version"]}

    def _status(self) -> dict:
        return dict(self.query("SHOW GLOBAL STATUS"))

    def _alone(self) -> bool:
        return not self.settings.peers or self.settings.peers == [self.address]

    def _copy(self, data: Path) -> None:
        if not (data / "grastate.dat").exists():
            raise InputError("is no data directory of a stopped Galera node", file=data)
        whole = data if (data / COMPLETE).exists() else data.parent
        place = push(self.host, whole) / data.relative_to(whole)
        self.run("cp", "-r", "--reflink=auto", f"{place}/.", self.data, timeout=300)
        self.run("rm", "-f", *(self.data / name for name in (COMPLETE, *NOT_COPIED)))

    def _provider(self) -> str:
        found = self.host.run(f"ls {' '.join(config.PROVIDERS)} 2> /dev/null", check=False).stdout
        if not found:
            raise LabError(f"{self.host.name}: Galera's library is missing",
                           remedy="Install galera-4 there")
        return found.split()[0]
