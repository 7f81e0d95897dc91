"""The SSH host keys of a cloud's servers, as their consoles show them.

A console's output comes through the cloud's API, whose certificate and login are checked, and not
from whoever answers at a server's address. cloud-init prints the keys at the end of a first boot.
"""

import re
import time

from labbook.errors import SystemFailure

BLOCK = re.compile(r"-----BEGIN SSH HOST KEY KEYS-----(.*?)-----END SSH HOST KEY KEYS-----", re.S)
KEY = re.compile(r"\b(?:ssh-ed25519|ecdsa-sha2-nistp\d+|ssh-rsa) AAAA[0-9A-Za-z+/]+=*")
SECONDS, INTERVAL_S = 300, 2    # EC2 may show a console minutes late


def parse(console: str) -> list[str]:
    """The public keys of the last complete block in a console's output; none without one."""
    blocks = BLOCK.findall(console)
    return KEY.findall(blocks[-1]) if blocks else []


def await_keys(console, server, seconds: float = SECONDS, interval: float = INTERVAL_S) -> list[str]:
    """The server's host keys, once `console(server)` shows them; SystemFailure if it does not."""
    until = time.monotonic() + seconds
    while True:
        output = console(server)
        keys = parse(output)
        if keys:
            return keys
        if time.monotonic() > until:
            raise SystemFailure(
                f"{server.name}: its console shows no SSH host keys after {seconds:g} s, and labbook "
                "logs in to no server whose key it does not know: its image must print them, as "
                "cloud-init does", log=output[-2000:])
        time.sleep(interval)
