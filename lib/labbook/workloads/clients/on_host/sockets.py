"""Sockets of clients: blocking, with waits that the kernel ends."""

import socket
import struct


def connected(address, call_seconds: float) -> socket.socket:
    """A blocking socket whose waits the kernel ends: Python's own costs a `poll` a call."""
    connection = socket.create_connection(address, timeout=call_seconds)
    connection.settimeout(None)
    limit_waits(connection, call_seconds)
    return connection


def limit_waits(connection: socket.socket, call_seconds: float) -> None:
    limit = struct.pack("@ll", int(call_seconds), int(call_seconds % 1 * 1e6))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
