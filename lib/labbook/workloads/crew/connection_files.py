"""A crew's connection files: ports and keys, written before its controller starts."""

import json
import uuid

FILES = "crew/profile/security/ipcontroller-{}.json"  # below the host's root
ENGINE_CHANNELS = ("registration", "control", "mux", "task", "iopub", "hb_ping", "hb_pong")
CLIENT_CHANNELS = ("control", "mux", "task", "iopub", "notification", "broadcast")
NOWHERE = 1  # a port of a service that nobody runs
PORTS = len(ENGINE_CHANNELS) + len(CLIENT_CHANNELS) + 1
# Free on all of the host's addresses, since engines and clients may come to different ones.
FREE_PORTS = f"""import socket
s = [socket.socket() for _ in range({PORTS})]
for c in s: c.bind(("", 0))
print(*(c.getsockname()[1] for c in s))"""


def connection_files(engines: str, clients: str, ports: list[int]) -> dict[str, str]:
    """The texts of the controller's two files, as ipcontroller --reuse reads them.

    `engines` and `clients` are the addresses at which it listens to either.
    """
    shared = {"key": uuid.uuid4().hex, "curve_serverkey": None, "ssh": "", "pack": "json",
              "unpack": "json", "signature_scheme": "hmac-sha256"}
    ports = iter(ports)
    engine = {channel: next(ports) for channel in ENGINE_CHANNELS}
    client = {channel: next(ports) for channel in CLIENT_CHANNELS}
    client |= {"registration": engine["registration"], "task_scheme": "none"}
    engine |= {"broadcast": [next(ports)]}
    return {"engine": json.dumps(shared | _at(engines) | engine),
            "client": json.dumps(shared | _at(clients) | client)}


def through(connection: dict, way) -> dict:
    """The client's connection with each of its ports led through `way(port)`, a port here.

    Without task farming nothing listens at `task`, which a client tries again and again.
    """
    channels = {"registration", *CLIENT_CHANNELS} - {"task"}
    led = {channel: way(connection[channel]) for channel in sorted(channels)}
    return connection | _at("127.0.0.1") | led | {"task": NOWHERE}


def _at(address):
    return {"location": address, "interface": f"tcp://{address}"}
