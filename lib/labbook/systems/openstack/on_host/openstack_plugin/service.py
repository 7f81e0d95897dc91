"""`python .../service.py NAME MODULE:FUNCTION WORD...`: run a service's own entry under NAME.

So no script that names one Python is needed, and the service finds its words where it looks for them.
A file, not `-m`: os-vif calls its tables of iptables after what was started. Before the entry is called,
and after what takes longest, it waits for what AWAIT names: paths of sockets, and ADDRESS:PORT.
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
    """The function, imported without a look for rubbish every few thousand objects: none is made there."""
    module, function = where.split(":")
    gc.disable()
    try:
        return getattr(importlib.import_module(module), function)
    finally:
        gc.freeze()
        gc.enable()


def await_all(there, seconds=SECONDS):
    """Until something listens at each of these; SystemExit says at which nothing does."""
    until = time.monotonic() + seconds
    for one in there:
        while not listens(one):
            if time.monotonic() > until:
                sys.exit(f"nothing listens at {one} after {seconds} s")
            time.sleep(0.05)


def listens(there) -> bool:
    address, _, port = there.rpartition(":")
    inet = not there.startswith("/")
    with socket.socket(socket.AF_INET if inet else socket.AF_UNIX) as line, suppress(OSError):
        line.connect((address, int(port)) if inet else there)
        return True
    return False


if __name__ == "__main__":
    sys.path.pop(0)     # this folder, whose names are no modules of their own
    name, where = sys.argv[1:3]
    sys.argv = [name, *sys.argv[3:]]
    run = entry(where)
    await_all(os.environ.pop("AWAIT", "").split())
    sys.exit(run())
