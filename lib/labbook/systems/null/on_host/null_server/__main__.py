"""Serve one protocol: one process, one thread, one answer to each message."""

import hashlib
import importlib
import resource
import select
import socket
import sys

MOST_BYTES = 65536  # received at once
# Noise of random values, the same as the clients make (workloads/keyvalue/wire/pairs.py).
NOISE_PLACES, NOISE_STRIDE = 1 << 22, 2654435761


def serve(listener: socket.socket, greeting: bytes, answer, size_of=None) -> None:
    """Answer all connections, for ever. `greeting`, `answer` and `size_of` are a protocol's; without
    `size_of`, what one read receives is one message."""
    poll, connections, incomplete = select.epoll(), {}, {}
    accepting = listener.fileno()
    poll.register(accepting, select.EPOLLIN)
    while True:
        for number, _ in poll.poll():
            if number == accepting:
                if connection := accepted(listener, greeting):
                    connections[connection.fileno()] = connection, connection.recv, connection.sendall
                    poll.register(connection.fileno(), select.EPOLLIN)
                continue
            connection, receive, send = connections[number]
            try:
                message = receive(MOST_BYTES)
                if size_of and (number in incomplete or size_of(message) != len(message)):
                    messages, rest = divided(incomplete.pop(number, b""), message, size_of)
                    if rest:
                        incomplete[number] = rest
                    send(b"".join([bytes(answer(each)) for each in messages]))
                else:
                    send(answer(message))
            except (OSError, LookupError, ValueError):  # the client is gone, or sent no valid message
                poll.unregister(number)
                incomplete.pop(number, None)
                connections.pop(number)[0].close()


def accepted(listener: socket.socket, greeting: bytes) -> socket.socket | None:
    """A new connection that has been greeted; None where the client is gone again."""
    try:
        connection = listener.accept()[0]
    except ConnectionError:
        return None
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.send(greeting)
    except OSError:
        connection.close()
        return None
    return connection


def divided(incomplete: bytes, received: bytes, size_of) -> tuple[list[bytes], bytes]:
    """The messages that are complete now, and the beginning of the next one."""
    if not received:
        raise ConnectionError("the client closed the connection")
    left, messages = incomplete + received, []
    while (size := size_of(left)) is not None and size <= len(left):
        messages.append(left[:size])
        left = left[size:]
    return messages, left


def dots(value_bytes: int):
    """The function from a key to its value: the key, cut or padded with dots."""
    return lambda key: key[:value_bytes].ljust(value_bytes, b".")


def random(value_bytes: int):
    """The same with random bytes, which cannot be compressed, after the key."""
    noise = hashlib.shake_128(b"labbook").digest(NOISE_PLACES + value_bytes)

    def value_of(key: bytes) -> bytes:
        begin = int(key[3:]) * NOISE_STRIDE % NOISE_PLACES
        return key + noise[begin:begin + value_bytes - len(key)]

    return value_of


if __name__ == "__main__":
    protocol, address, port, value_bytes, *values = sys.argv[1:]
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    module = importlib.import_module(f".{protocol}", __package__)
    value_of = {"dots": dots, "random": random}[values[0] if values else "dots"]
    serve(socket.create_server((address, int(port)), backlog=512),
          *module.answers(value_of(int(value_bytes))), getattr(module, "size_of", None))
