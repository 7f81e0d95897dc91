"""The connection to a crew's controller: directly on a host of the lab's own, else through SSH."""

import json
import socket
import uuid

from labbook.errors import LabError
from labbook.lab.ssh.tunnel import tunnel

START_SECONDS = 60
CONTROLLER = "crew-controller"
LOOPBACK = "127.0.0.1"
FILES = "crew/profile/security/ipcontroller-{}.json"  # below the host's root
CONTROLLER_FILE = "crew/profile/ipcontroller_config.py"
ENGINE_CHANNELS = ("registration", "control", "mux", "task", "iopub", "hb_ping", "hb_pong")
CLIENT_CHANNELS = ("control", "mux", "task", "iopub", "notification", "broadcast")
NOWHERE = 1  # a port of a service that nobody runs
PORTS = len(ENGINE_CHANNELS) + len(CLIENT_CHANNELS) + 1
# Free on all of the host's addresses, since engines and clients may use different ones.
FREE_PORTS = f"""import socket
s = [socket.socket() for _ in range({PORTS})]
for c in s: c.bind(("", 0))
print(*(c.getsockname()[1] for c in s))"""


class Connection:
    """`far`: the host is a user's own, of which only SSH can be reached.

    `meeting`: the addresses at which the controller listens to engines and to the driver;
    `client`: ipyparallel's, None while the connection is closed.
    """

    def __init__(self, host):
        self._host, self.far = host, host.is_remote
        self.meeting = (host.address, LOOPBACK) if self.far else (host.control_address,) * 2
        self.client, self._tunnels = None, []

    def open(self) -> None:
        """LabError when the host cannot be reached, SystemFailure when the controller has ended."""
        import ipyparallel

        host = self._host
        connection = json.loads(host.get(FILES.format("client")))
        host.wait_for(lambda: self._listens(connection["registration"]),
                      "the controller to listen", START_SECONDS, host.process(CONTROLLER))
        try:
            if self.far:
                connection = through(connection, self._lead)
            self.client = ipyparallel.Client(connection, timeout=START_SECONDS)
        except ipyparallel.TimeoutError:
            self.close()
            raise LabError(f"{host.name}: the controller of the clients does not answer") from None
        except BaseException:
            self.close()
            raise

    def broken(self) -> bool:
        """Whether a message under way may have been lost."""
        return any(led.lost for led in self._tunnels)

    def close(self) -> None:
        if self.client is not None:
            self.client.close(linger=0)  # does not wait for what could not be sent
            self.client = None
        while self._tunnels:
            self._tunnels.pop().close()

    def _lead(self, port) -> int:
        self._tunnels.append(tunnel(self._host, LOOPBACK, port))
        return self._tunnels[-1].port

    def _listens(self, port) -> bool:
        try:
            if self.far:
                self._host.dial(LOOPBACK, port).close()
            else:
                socket.create_connection((self.meeting[1], port), timeout=1).close()
            return True
        except OSError:
            return False


def connection_files(engines: str, clients: str, ports: list[int]) -> dict[str, str]:
    """{path: text} of the files that the controller reads, written before it starts: those of engines
    and clients with ports and keys, as ipcontroller --reuse does, and its own with its secret key.

    `engines` and `clients` are the addresses at which it listens to either. All traffic is encrypted
    and authenticated by CURVE: without the public key, which only these files have, nobody gets an
    answer.
    """
    import zmq

    public, secret = zmq.curve_keypair()
    shared = {"key": uuid.uuid4().hex, "curve_serverkey": public.decode(), "ssh": "", "pack": "json",
              "unpack": "json", "signature_scheme": "hmac-sha256"}
    ports = iter(ports)
    engine = {channel: next(ports) for channel in ENGINE_CHANNELS}
    client = {channel: next(ports) for channel in CLIENT_CHANNELS}
    client |= {"registration": engine["registration"], "task_scheme": "none"}
    engine |= {"broadcast": [next(ports)]}
    return {FILES.format("engine"): json.dumps(shared | _at(engines) | engine),
            FILES.format("client"): json.dumps(shared | _at(clients) | client),
            CONTROLLER_FILE: f"c.IPController.curve_publickey = {public}\n"
                             f"c.IPController.curve_secretkey = {secret}\n"
                             "c.IPController.enable_curve = True\n"}


def through(connection: dict, lead) -> dict:
    """The client's connection with each of its ports forwarded: `lead(port)` gives the local one.

    Without task farming nothing listens at `task`, which a client tries again and again.
    """
    channels = {"registration", *CLIENT_CHANNELS} - {"task"}
    led = {channel: lead(connection[channel]) for channel in sorted(channels)}
    return connection | _at(LOOPBACK) | led | {"task": NOWHERE}


def _at(address):
    return {"location": address, "interface": f"tcp://{address}"}
