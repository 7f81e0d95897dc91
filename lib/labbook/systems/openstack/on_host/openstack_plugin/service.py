"""`python .../service.py NAME MODULE:FUNCTION ARGUMENT...`: run a service's entry point under NAME.

It replaces the installed script, which would need a certain Python, and sets sys.argv as that would. It is
run as a file, not by `-m`, since os-vif names its iptables chains after the program. After the import, which
takes longest, and before the call, it waits for what AWAIT lists: paths of sockets, and ADDRESS:PORT.
"""

import gc
import importlib
import os
import socket
import sys
import time
from contextlib import suppress

SECONDS = 120


def entry(where):
    """The function, imported without garbage collection, since imports make no garbage."""
    module, function = where.split(":")
    gc.disable()
    try:
        return getattr(importlib.import_module(module), function)
    finally:
        gc.freeze()
        gc.enable()


def await_all(endpoints, seconds=SECONDS):
    """Wait until something listens at each; SystemExit with the first where nothing does."""
    until = time.monotonic() + seconds
    for one in endpoints:
        while not listens(one):
            if time.monotonic() > until:
                sys.exit(f"nothing listens at {one} after {seconds} s")
            time.sleep(0.05)


def listens(endpoint) -> bool:
    address, _, port = endpoint.rpartition(":")
    inet = not endpoint.startswith("/")
    with socket.socket(socket.AF_INET if inet else socket.AF_UNIX) as connection, suppress(OSError):
        connection.connect((address, int(port)) if inet else endpoint)
        return True
    return False


if __name__ == "__main__":
    sys.path.pop(0)     # this folder: its files are not top-level modules
    name, where = sys.argv[1:3]
    sys.argv = [name, *sys.argv[3:]]
    run = entry(where)
    await_all(os.environ.pop("AWAIT", "").split())
    sys.exit(run())
