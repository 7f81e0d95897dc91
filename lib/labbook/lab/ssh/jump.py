"""Connections to jump hosts, shared by the hosts behind them, and keepalives through them.

There is one connection to a jump host, however many hosts lie behind it: sshd refuses many
simultaneous logins (MaxStartups). TCP detects a vanished jump host but not a vanished host behind
it, which is therefore asked for a keepalive.
"""

import threading
from contextlib import suppress

KEEPALIVE_SECONDS = 10   # between two requests to a host behind a jump host


class Jumps:
    """Reference-counted connections by login; `open_one(login)` opens one."""

    def __init__(self, open_one):
        self._open_one, self._lock = open_one, threading.Lock()
        self._locks, self._open, self._users = {}, {}, {}

    def take(self, login):
        """The connection to a jump host, opened if need be; give it back by `release`."""
        with self._lock:
            lock = self._locks.setdefault(login, threading.Lock())
        with lock:  # one for each jump host: another one may be slow to answer
            connection = self._shared(login)
            if connection is None:
                connection = self._open_one(login)
                with self._lock:
                    self._open[login] = connection
                    self._count(connection)
            return connection

    def _shared(self, login):
        """The open connection with one user more; None when none is open."""
        with self._lock:    # found and counted at once: `release` closes one without users
            connection = self._open.get(login)
            if connection is None or not connection.is_connected:
                return None
            self._count(connection)
            return connection

    def _count(self, connection):
        self._users[id(connection)] = self._users.get(id(connection), 0) + 1

    def release(self, connection) -> None:
        """Close the connection when no other host uses it."""
        with self._lock:
            left = self._users[id(connection)] - 1
            self._users[id(connection)] = left
            if left:
                return
            del self._users[id(connection)]
            self._open = {k: c for k, c in self._open.items() if c is not connection}
        with suppress(Exception):
            connection.close()


def watch(transport, patience: float) -> None:
    """Close the transport when its host leaves a keepalive unanswered for `patience` seconds."""
    threading.Thread(target=_keep_asking, args=(transport, patience), daemon=True).start()


def _keep_asking(transport, patience):
    pause = threading.Event()
    while transport.is_active():
        late = threading.Timer(patience, transport.close)
        late.daemon = True
        late.start()
        with suppress(Exception):  # closed: whoever uses it gets the error
            transport.global_request("keepalive@openssh.com", wait=True)
        late.cancel()
        pause.wait(KEEPALIVE_SECONDS)
