"""Passes questions on to the monitor: one connection of librados, kept open, behind a Unix socket.

The `ceph` command needs a third of a second of one core for each question; this one does it in a
few ms. It speaks as admin sockets do. A refusal of the monitor's is {"refused": number, "why": text}.
"""

import json
import os
import socket
import threading
from contextlib import closing, suppress

from asking import answer, question

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
        asked = question(connection)
        answer(connection, told(cluster, asked))


def told(cluster, asked: dict) -> bytes:
    """`input`: the command's input, such as a CRUSH map's text."""
    given = asked.pop("input", "").encode()
    code, out, why = cluster.mon_command(json.dumps(asked), given, timeout=COMMAND_S)
    return json.dumps({"refused": code, "why": why}).encode() if code else out
