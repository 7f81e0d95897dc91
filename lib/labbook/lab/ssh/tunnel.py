"""Local ports forwarded through a host's SSH connection to servers that only the host reaches."""

import socket
import threading
import time
from contextlib import suppress

from labbook.errors import LabbookError

CHUNK = 65536  # bytes
OPEN_SECONDS = 20  # to connect to the far end, including a new SSH connection if need be
POLL_SECONDS = 0.5  # between two checks whether to end


def tunnel(host, address: str, port: int) -> "Tunnel":
    """Listen on a local port and forward connections to `address`:`port`, as `host` reaches it."""
    return Tunnel(host, address, port)


class Tunnel:
    """A local listener; unpacks to its (ip, port). Closed by `close`, its own or its host's.

    A connection that the far end closes, loses or refuses is closed here too and counted in `lost`.
    After the host's SSH connection broke, the next connection opens it again.
    """

    def __init__(self, host, address, port):
        self._host, self._far = host, (address, port)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.ip, self.port = self._listener.getsockname()
        self.lost, self._closed, self._lock, self._pairs = 0, False, threading.Lock(), set()
        host.tunnels.append(self)
        self._start(self._accept)

    def __iter__(self):
        return iter((self.ip, self.port))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self) -> None:
        with self._lock:
            self._closed, pairs = True, [*self._pairs]
        with suppress(ValueError):
            self._host.tunnels.remove(self)
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the accepting thread
        self._listener.close()
        for pair in pairs:
            pair.end()

    def _start(self, work, *arguments):
        threading.Thread(target=work, args=arguments, daemon=True,
                         name=f"tunnel to {self._far[0]}:{self._far[1]}").start()

    def _accept(self):
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                if self._closed:
                    return
                time.sleep(POLL_SECONDS)    # such as too many open files
                continue
            self._start(self._serve, near)

    def _serve(self, near):
        near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            far = self._host.dial(*self._far, timeout=OPEN_SECONDS)
        except (LabbookError, OSError):
            self._count_lost()
            near.close()
            return
        pair = _Pair(near, far)
        with self._lock:
            self._pairs.add(pair)
            if self._closed:
                pair.end()
        pair.carry(self._count_lost)
        with self._lock:
            self._pairs.discard(pair)

    def _count_lost(self):
        with self._lock:
            self.lost += not self._closed


class _Pair:
    """A local connection and its channel to the far end; each side's end is passed on.

    The channel is closed only when nothing more is sent on it: Paramiko may send data after its
    close message, upon which sshd drops the whole SSH connection.
    """

    def __init__(self, near: socket.socket, far):
        self._near, self._far, self._ended, self._ended_here = near, far, False, False
        far.settimeout(POLL_SECONDS)

    def end(self) -> None:
        """Make `carry` return soon."""
        self._ended = True
        with suppress(OSError):
            self._near.shutdown(socket.SHUT_RDWR)

    def carry(self, lost) -> None:
        """Forward both ways until the end; calls `lost()` when the far side ends first."""
        there = threading.Thread(target=self._send_on, daemon=True)
        there.start()
        self._send_back()
        if not self._ended_here:
            lost()
        with suppress(OSError):  # a far end that is gone accepts nothing more
            self._near.shutdown(socket.SHUT_RDWR if self._far.closed else socket.SHUT_WR)
        there.join()
        with suppress(OSError, EOFError):
            self._far.close()
        self._near.close()

    def _send_on(self):
        with suppress(OSError, EOFError):  # errors of the far end: `_send_back` handles them
            while data := self._received():
                while data:
                    with suppress(TimeoutError):
                        data = data[self._far.send(data):]
                    if self._ended:
                        return
            self._far.shutdown_write()

    def _received(self) -> bytes:
        data = b""
        with suppress(OSError):
            data = self._near.recv(CHUNK)
        self._ended_here = not data
        return data

    def _send_back(self):
        with suppress(OSError, EOFError):
            while not self._ended:
                try:
                    data = self._far.recv(CHUNK)
                except TimeoutError:
                    continue
                if not data:
                    return
                self._near.sendall(data)
