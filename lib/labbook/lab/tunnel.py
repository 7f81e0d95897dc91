"""Ways from here, through a host's SSH connection, to what listens where only that host reaches."""

import socket
import threading
from contextlib import suppress

from labbook.errors import LabbookError

AT_ONCE = 65536  # bytes
OPEN_SECONDS = 20  # for the host to reach the far end; SSH may have to be opened anew before


def tunnel(host, address: str, port: int) -> "Tunnel":
    """A listener here whose connections go on to `address`:`port` as `host` reaches it."""
    return Tunnel(host, address, port)


class Tunnel:
    """Unpacks to (ip, port) of the listener; ends with `close`, its own or its host's.

    What the far end closes or loses is closed here as well, and so is a connection that cannot
    be opened there; `lost` counts both. The host's SSH connection may break: the next connection
    opens it anew.
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
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits on it
        self._listener.close()
        for pair in pairs:
            pair.close()

    def _start(self, work, *arguments):
        threading.Thread(target=work, args=arguments, daemon=True,
                         name=f"tunnel to {self._far[0]}:{self._far[1]}").start()

    def _accept(self):
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:  # closed
                return
            self._start(self._serve, near)

    def _serve(self, near):
        """Reach the far end, then carry what it says; a second thread carries the other way."""
        near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            far = self._host.dial(*self._far, timeout=OPEN_SECONDS)
        except (LabbookError, OSError):
            self._count_lost()
            near.close()
            return
        far.settimeout(None)
        pair = _Pair(near, far)
        with self._lock:
            closed = self._closed
            self._pairs.add(pair)
        if closed:
            pair.close()
        back = threading.Thread(target=pair.carry_there, daemon=True)
        back.start()
        if pair.carry_back() and not self._closed:
            self._count_lost()
        back.join()
        pair.close()
        with self._lock:
            self._pairs.discard(pair)

    def _count_lost(self):
        with self._lock:
            self.lost += 1


class _Pair:
    """A connection here and its channel to the far end; each side's end is passed on."""

    def __init__(self, near: socket.socket, far):
        self._near, self._far, self._ended_here = near, far, False

    def carry_there(self) -> None:
        with suppress(OSError, EOFError):  # the far end's: `carry_back` sees to it
            while data := self._heard():
                self._far.sendall(data)
            self._far.shutdown_write()

    def _heard(self) -> bytes:
        data = b""
        with suppress(OSError):
            data = self._near.recv(AT_ONCE)
        self._ended_here = not data
        return data

    def carry_back(self) -> bool:
        """Whether the far end was the first to end."""
        with suppress(OSError, EOFError):
            while data := self._far.recv(AT_ONCE):
                self._near.sendall(data)
        first = not self._ended_here
        with suppress(OSError):
            # A far end that is no longer there takes nothing more either.
            self._near.shutdown(socket.SHUT_RDWR if self._far.closed else socket.SHUT_WR)
        return first

    def close(self) -> None:
        with suppress(OSError):
            self._near.shutdown(socket.SHUT_RDWR)
        with suppress(OSError, EOFError):
            self._far.close()
        self._near.close()
