"""Pass commands on to the monitor: a Unix socket before one open librados connection.

The `ceph` program needs a third of a second of CPU time for each command, the proxy a few ms. It speaks
the protocol of admin sockets. A refused command is answered by {"refused": number, "why": text}.
"""

import json
import os
import socket
import threading
from contextlib import closing, suppress

from admin_protocol import answer, question

CONNECT_S, COMMAND_S = 30, 60


def main(conf, path):
    import rados  # Debian's, for Debian's Python

    cluster = rados.Rados(conffile=conf, rados_id="admin")
    cluster.connect(timeout=CONNECT_S)
    with suppress(FileNotFoundError):
        os.unlink(path)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    os.chmod(path, 0o600)
    listener.listen(64)
    while True:
        connection = listener.accept()[0]
        threading.Thread(target=_serve, args=(cluster, connection), daemon=True).start()


def _serve(cluster, connection):
    with closing(connection), suppress(OSError, ValueError):
        answer(connection, mon_answer(cluster, question(connection)))


def mon_answer(cluster, command: dict) -> bytes:
    """Run a command; its key `input` holds what the command reads, such as a CRUSH map."""
    data = command.pop("input", "").encode()
    code, out, why = cluster.mon_command(json.dumps(command), data, timeout=COMMAND_S)
    return json.dumps({"refused": code, "why": why}).encode() if code else out
