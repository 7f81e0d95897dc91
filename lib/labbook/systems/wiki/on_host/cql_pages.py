"""Pages in today's Cassandra, by its own driver, with one session for all threads."""

import threading

from cassandra import ConsistencyLevel, DriverException
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable
from cassandra.policies import ConstantReconnectionPolicy, RoundRobinPolicy, TokenAwarePolicy

from labbook.systems.wiki.on_host.pages import CALL_SECONDS, StoredPages, StoreFailed
from labbook.targets import DATABASE

ERRORS = (DriverException, NoHostAvailable, OSError)
PROTOCOL = 4
RECONNECT_SECONDS = 1  # by default up to ten minutes, the longer a node is away
PART = 500  # names fetched by one call
LEVEL = ConsistencyLevel.QUORUM  # so that other servers see a page as soon as one has saved it


class CQLPages(StoredPages):
    """The session is made at the first call; the driver reconnects by itself. The store asks for no
    password."""

    def __init__(self, addresses: list[str], port: int, table: str, password: str = ""):
        self._place = addresses, port, table
        self._session, self._connecting = None, threading.Lock()

    def _ask(self, call, *arguments):
        try:
            session = self._session or self._connected()
            return getattr(session, call)(*arguments)
        except ERRORS as error:
            raise StoreFailed(f"{type(error).__name__}: {error}") from error

    def _connected(self):
        with self._connecting:
            if self._session is None:
                self._session = _Session(*self._place)
            return self._session


class _Session:
    def __init__(self, addresses, port, table):
        profile = ExecutionProfile(load_balancing_policy=TokenAwarePolicy(RoundRobinPolicy()),
                                   consistency_level=LEVEL, request_timeout=CALL_SECONDS)
        cluster = Cluster(addresses, port, protocol_version=PROTOCOL,
                          execution_profiles={EXEC_PROFILE_DEFAULT: profile},
                          connect_timeout=CALL_SECONDS, reconnection_policy=(
                              ConstantReconnectionPolicy(RECONNECT_SECONDS, max_attempts=None)))
        try:
            self._session = cluster.connect(DATABASE)
            self._fetch, self._store, self._remove, self._first, self._after = map(
                self._session.prepare, (
                    f"SELECT value FROM {table} WHERE name = ?",
                    f"INSERT INTO {table} (name, value) VALUES (?, ?)",
                    f"DELETE FROM {table} WHERE name = ?",
                    f"SELECT name FROM {table} LIMIT {PART}",
                    f"SELECT name FROM {table} WHERE token(name) > token(?) LIMIT {PART}"))
        except BaseException:
            cluster.shutdown()
            raise

    def fetch(self, name: str) -> bytes | None:
        row = self._session.execute(self._fetch, (name.encode(),)).one()
        return row.value if row else None

    def store(self, name: str, value: bytes) -> None:
        self._session.execute(self._store, (name.encode(), value))

    def remove(self, name: str) -> None:
        self._session.execute(self._remove, (name.encode(),))

    def names_after(self, name: str | None) -> list[str]:
        rows = (self._session.execute(self._first) if name is None else
                self._session.execute(self._after, (name.encode(),)))
        return [row.name.decode(errors="replace") for row in rows]
