"""Connections to jump hosts, each shared by all hosts behind it, and a watch over what goes through.

One connection a jump host, however many hosts lie behind it: sshd refuses who starts many at once
(MaxStartups). TCP tells us when the jump host has gone, but not when the host behind it has: that
one is asked.
"""

import threading
from contextlib import suppress

ASK_SECONDS = 10   # between two questions to a host behind a jump host


class Jumps:
    """Open connections by login; `open_one(login)` makes one."""

    def __init__(self, open_one):
        self._open_one, self._lock = open_one, threading.Lock()
        self._locks, self._open, self._users = {}, {}, {}

    def take(self, login):
        """The connection to a jump host, opened when it is not."""
        with self._lock:
            lock = self._locks.setdefault(login, threading.Lock())
        with lock:  # not `_lock`: another jump host may be slow to answer
            connection = self._open.get(login)
            if connection is None or not connection.is_connected:
                connection = self._open[login] = self._open_one(login)
            with self._lock:
                self._users[id(connection)] = self._users.get(id(connection), 0) + 1
            return connection

    def release(self, connection) -> None:
        """Closes it after the last host that went through it."""
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
    """Close the transport when its host leaves a question unanswered for `patience` seconds."""
    threading.Thread(target=_ask_on, args=(transport, patience), daemon=True).start()


def _ask_on(transport, patience):
    pause = threading.Event()
    while transport.is_active():
        late = threading.Timer(patience, transport.close)
        late.daemon = True
        late.start()
        with suppress(Exception):  # it has gone: whoever waits on it is told
            transport.global_request("keepalive@openssh.com", wait=True)
        late.cancel()
        pause.wait(ASK_SECONDS)
