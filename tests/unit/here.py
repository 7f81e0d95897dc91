"""A host that is this machine: for tests of what runs on hosts, without root and without SSH."""

import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from types import SimpleNamespace

import pytest

from labbook.errors import LabError
from labbook.lab.host.host import Host, Result
from labbook.lab.ssh.login import Login
from labbook.workloads.keyvalue import protocols


class HereHost(Host):
    """Commands, files and processes are local, below `root`; both addresses are loopback."""

    def run(self, command, timeout=60, check=True, env=None, root=False):
        done = subprocess.run(["bash", "-c", self.in_root_folder(command, env)], timeout=timeout,
                              capture_output=True, text=True)
        if check and done.returncode:
            raise LabError(f"{self.name}: {command} ended with {done.returncode}: {done.stderr}")
        return Result(done.stdout, done.stderr, done.returncode)

    def put(self, data, remote, mode=0o644):
        path = Path(self.root / remote)
        path.write_bytes(data.read_bytes() if isinstance(data, Path) else
                         data.encode() if isinstance(data, str) else data)
        path.chmod(mode)

    def get(self, remote, local=None):
        data = Path(self.root / remote).read_bytes()
        if local is None:
            return data
        local.write_bytes(data)


class HereLab:
    """Client hosts c1, c2, ... of one machine."""

    id = "here"

    def __init__(self, folder: Path, clients: int = 1):
        self.clients = [here_host(folder, f"c{i + 1}") for i in range(clients)]

    def role(self, role):
        return self.clients if role == "client" else []


def here_host(folder: Path, name: str) -> HereHost:
    (folder / name).mkdir()
    return HereHost(name, "lan", "client", "127.0.0.1", Login("127.0.0.1", "me", "", ""),
                    PurePosixPath(folder / name), sys.executable)


class HereCrew:
    """Runs a crew's functions in this process, one host after the other."""

    def __init__(self, host):
        self.hosts = [host]

    def run(self, function, *arguments, timeout=60):
        return [function(*each) for each in (zip(*arguments) if arguments else [()])]


@pytest.fixture
def null_server():
    """Starts null servers of a protocol: targets with an address, a port and the subprocess."""
    started = []

    def start(protocol, value_bytes=100, address="127.0.0.1", values="dots"):
        with free_port(address) as port:
            server = subprocess.Popen([sys.executable, "-m", "labbook.systems.null.on_host.null_server", protocol,
                                       address, str(port), str(value_bytes), values])
            started.append(server)
            until = time.monotonic() + 10
            while not listens(port, address):
                assert server.poll() is None and time.monotonic() < until
                time.sleep(0.01)
        return target(port, protocol, address=address, server=server)

    yield start
    for server in started:
        server.kill()
        server.wait()


@pytest.fixture
def wire():
    """Calls connected to a server, and a list of what they send."""
    made = []

    def connect(server, **more):
        calls, sent = protocols.calls(calls_spec(server, **more)), []
        calls.connect()
        send = calls._send
        calls._send = lambda message: (sent.append(bytes(message)), send(message))
        made.append(calls)
        return calls, sent

    yield connect
    for calls in made:
        calls.close()


def target(port: int, protocol: str, **more) -> SimpleNamespace:
    return SimpleNamespace(**{"address": "127.0.0.1"} | more, port=port, protocol=protocol)


def calls_spec(server, **more) -> dict:
    """What the calls of one client to a target are made from."""
    return dict(protocol=server.protocol, addresses=[server.address], address=server.address,
                port=server.port, rows=1, value_bytes=100, consistency="ONE", call_seconds=5,
                client=0) | more


@contextmanager
def free_port(address="127.0.0.1"):
    """A port that the kernel gives nobody else during the block. A server that sets SO_REUSEADDR may listen there."""
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind((address, 0))
        yield holder.getsockname()[1]


@pytest.fixture
def dead_port():
    """A port where nobody listens, nor comes to: it is taken."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


def listens(port, address="127.0.0.1") -> bool:
    with socket.socket() as client:
        return client.connect_ex((address, port)) == 0


def folder_of_ours(tmp_path):
    """A folder with parents that are ours alone up to /tmp, which is sticky."""
    made = tmp_path / "srv" / "labs"
    for folder in (made.parent, made):
        folder.mkdir(mode=0o755)
    return made
