"""Tunnels through a host's SSH connection to a server that only the host reaches."""

import os
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from labbook.errors import LabError
from labbook.lab.ssh.tunnel import tunnel

# Echoes until the other side has said its last word, then says "end".
ECHO = """import socketserver
class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        while data := self.request.recv(65536):
            self.request.sendall(data)
        self.request.sendall(b"end")
class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address, daemon_threads, request_queue_size = True, True, 64
with Server(("127.0.0.1", 7007), Echo) as server:
    server.serve_forever()
"""


@pytest.fixture
def host(pair):
    host = pair.host("h1")
    host.put(ECHO, "echo.py")
    server = host.start("echo", f"{host.python} echo.py")
    host.wait_for(lambda: listens(host), "the echo", 20, server)
    yield host
    server.stop(timeout=1)
    assert not host.tunnels


def listens(host) -> bool:
    try:
        host.dial("127.0.0.1", 7007).close()
        return True
    except ConnectionRefusedError:
        return False


def connect(way):
    return socket.create_connection(tuple(way), timeout=60)


def exchange(way, data: bytes) -> bytes:
    """All that comes back for `data`, to the end."""
    with connect(way) as connection:
        sender = threading.Thread(target=lambda: (connection.sendall(data),
                                                  connection.shutdown(socket.SHUT_WR)))
        sender.start()
        found = b"".join(iter(lambda: connection.recv(65536), b""))
        sender.join()
        return found


def until(condition):
    limit = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.01)


def test_many_connections_carry_much_both_ways_and_leave_no_thread(host):
    before = threading.active_count()
    with tunnel(host, "127.0.0.1", 7007) as way:
        assert way.ip == "127.0.0.1"
        data = [os.urandom(1 << 20) + bytes([i]) for i in range(12)]
        with ThreadPoolExecutor(12) as pool:
            found = list(pool.map(lambda each: exchange(way, each), data))
        assert found == [each + b"end" for each in data]
        assert way.lost == 0
    until(lambda: threading.active_count() <= before)


def test_close_ends_what_is_open_and_listens_no_more(host):
    way = tunnel(host, "127.0.0.1", 7007)
    with connect(way) as connection:
        connection.sendall(b"a")
        assert connection.recv(1) == b"a"
        way.close()
        assert connection.recv(1) == b"" and way.lost == 0
    with pytest.raises(ConnectionRefusedError):
        connect(way)


def test_what_the_far_side_ends_or_refuses_ends_here(host):
    with tunnel(host, "127.0.0.1", 7007) as way, connect(way) as connection:
        connection.sendall(b"a")
        assert connection.recv(1) == b"a"
        host.process("echo").kill()
        assert connection.recv(1) == b""
        until(lambda: way.lost == 1)
        with connect(way) as refused:
            assert refused.recv(1) == b""
        until(lambda: way.lost == 2)


def test_a_lost_connection_ends_what_is_open_and_the_next_goes_through_a_new_one(host):
    with tunnel(host, "127.0.0.1", 7007) as way, connect(way) as connection:
        connection.sendall(b"a")
        assert connection.recv(1) == b"a"
        sshd = int(host.run("ps -o ppid= -p $$").stdout)  # of this connection alone
        assert sshd != 1
        with pytest.raises(LabError, match="connection lost"):
            host.run(f"kill -KILL {sshd}")
        assert connection.recv(1) == b""
        until(lambda: way.lost == 1)
        assert exchange(way, b"again") == b"againend"


def test_it_ends_with_its_host(host):
    way = tunnel(host, "127.0.0.1", 7007)
    with connect(way) as connection:
        connection.sendall(b"a")
        assert connection.recv(1) == b"a"
        host.close()
        assert connection.recv(1) == b""
    with pytest.raises(ConnectionRefusedError):
        connect(way)
