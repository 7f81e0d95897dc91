"""A ring of Cassandra nodes on loopback addresses by ccm's library, as its command does it: prints the seconds.

    python ccm_ring.py FOLDER INSTALLED NODES

Run on a lab's host with ccm's packages alone. INSTALLED is laid out as Cassandra's tarball is.
"""

import os
import signal
import sys
import time
from contextlib import suppress

from ccmlib.cluster import Cluster


def main(folder: str, installed: str, nodes: str) -> None:
    os.makedirs(folder, exist_ok=True)
    began = time.monotonic()
    cluster = Cluster(folder, "ring", install_dir=installed, verbose=False)
    cluster.populate(int(nodes))
    try:
        started = cluster.start(wait_for_binary_proto=True, wait_other_notice=True, allow_root=True, timeout=600)
        seconds = time.monotonic() - began
        if not started or not all(node.is_running() for node in cluster.nodelist()):
            sys.exit("ccm did not bring the ring up")
        print(seconds)
    finally:
        for node in cluster.nodelist():
            with suppress(OSError, TypeError):
                os.kill(node.pid, signal.SIGKILL)


if __name__ == "__main__":
    main(*sys.argv[1:])
