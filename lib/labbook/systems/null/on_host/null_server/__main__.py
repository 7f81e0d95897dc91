"""One process, one thread, one answer a message."""

import hashlib
import importlib
import select
import socket
import sys

MOST_BYTES = 65536  # asked for at once
# Random values, as the clients make them (workloads/pairs.py).
NOISE_PLACES, NOISE_STRIDE = 1 << 22, 2654435761


def serve(listener: socket.socket, greeting: bytes, answer, size_of=None) -> None:
    """`size_of(received)`: how long the message is that has begun, None when that has not come yet.
    Without it, what comes with one read is a message."""
    poll, connections, begun = select.epoll(), {}, {}
    door = listener.fileno()
    poll.register(door, select.EPOLLIN)
    while True:
        for number, _ in poll.poll():
            if number == door:
                connection = listener.accept()[0]
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                connections[connection.fileno()] = connection, connection.recv, connection.sendall
                connection.send(greeting)
                poll.register(connection.fileno(), select.EPOLLIN)
                continue
            connection, receive, send = connections[number]
            try:
                message = receive(MOST_BYTES)
                if size_of and (number in begun or size_of(message) != len(message)):
                    messages, rest = divided(begun.pop(number, b""), message, size_of)
                    if rest:
                        begun[number] = rest
                    send(b"".join([bytes(answer(each)) for each in messages]))
                else:
                    send(answer(message))
            except (OSError, LookupError, ValueError):  # gone, or no message of ours
                poll.unregister(number)
                begun.pop(number, None)
                connections.pop(number)[0].close()


def divided(begun: bytes, received: bytes, size_of) -> tuple[list[bytes], bytes]:
    """The messages that are whole now, and what has come of the next."""
    if not received:
        raise ConnectionError("the client closed the connection")
    left, messages = begun + received, []
    while (size := size_of(left)) is not None and size <= len(left):
        messages.append(left[:size])
        left = left[size:]
    return messages, left


def dots(value_bytes: int):
    """The value that belongs to a key."""
    return lambda key: key[:value_bytes].ljust(value_bytes, b".")


def random(value_bytes: int):
    """The same, of bytes that nothing makes smaller."""
    noise = hashlib.shake_128(b"labbook").digest(NOISE_PLACES + value_bytes)

    def value_of(key: bytes) -> bytes:
        begin = int(key[3:]) * NOISE_STRIDE % NOISE_PLACES
        return key + noise[begin:begin + value_bytes - len(key)]

    return value_of


if __name__ == "__main__":
    protocol, address, port, value_bytes, *values = sys.argv[1:]
    module = importlib.import_module(f".{protocol}", __package__)
    value_of = {"dots": dots, "random": random}[values[0] if values else "dots"]
    serve(socket.create_server((address, int(port)), backlog=512),
          *module.answers(value_of(int(value_bytes))), getattr(module, "size_of", None))
