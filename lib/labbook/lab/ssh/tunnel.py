"""Ways from here, through a host's SSH connection, to what listens where only that host reaches."""

import socket
import threading
from contextlib import suppress

from labbook.errors import LabbookError

AT_ONCE = 65536  # bytes
OPEN_SECONDS = 20  # for the host to reach the far end; SSH may have to be opened anew before
LOOK_SECONDS = 0.5  # between two looks whether to end


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
            pair.end()

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
    """A connection here and its channel to the far end; each side's end is passed on.

    The channel is closed only when nothing is sent on it any more: Paramiko may send data after
    it has said that it closes, and to that sshd ends the whole SSH connection.
    """

    def __init__(self, near: socket.socket, far):
        self._near, self._far, self._ended, self._ended_here = near, far, False, False
        far.settimeout(LOOK_SECONDS)

    def end(self) -> None:
        """Have `carry` return soon."""
        self._ended = True
        with suppress(OSError):
            self._near.shutdown(socket.SHUT_RDWR)

    def carry(self, lost) -> None:
        """To the end, both ways; calls `lost` when the far side is the first to end."""
        there = threading.Thread(target=self._carry_there, daemon=True)
        there.start()
        self._carry_back()
        if not self._ended_here:
            lost()
        with suppress(OSError):  # a far end that is no longer there takes nothing more either
            self._near.shutdown(socket.SHUT_RDWR if self._far.closed else socket.SHUT_WR)
        there.join()
        with suppress(OSError, EOFError):
            self._far.close()
        self._near.close()

    def _carry_there(self):
        with suppress(OSError, EOFError):  # the far end's: `_carry_back` sees to it
            while data := self._heard():
                while data:
                    with suppress(TimeoutError):
                        data = data[self._far.send(data):]
                    if self._ended:
                        return
            self._far.shutdown_write()

    def _heard(self) -> bytes:
        data = b""
        with suppress(OSError):
            data = self._near.recv(AT_ONCE)
        self._ended_here = not data
        return data

    def _carry_back(self):
        with suppress(OSError, EOFError):
            while not self._ended:
                try:
                    data = self._far.recv(AT_ONCE)
                except TimeoutError:
                    continue
                if not data:
                    return
                self._near.sendall(data)
