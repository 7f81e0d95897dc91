"""One process, one thread, one answer a message."""

import importlib
import select
import socket
import sys


def serve(listener: socket.socket, greeting: bytes, answer) -> None:
    poll, connections = select.epoll(), {}
    door = listener.fileno()
    poll.register(door, select.EPOLLIN)
    while True:
        for number, _ in poll.poll():
            if number == door:
                connection = listener.accept()[0]
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                connections[connection.fileno()] = connection, connection.recv, connection.send
                connection.send(greeting)
                poll.register(connection.fileno(), select.EPOLLIN)
                continue
            connection, receive, send = connections[number]
            try:
                send(answer(receive(65536)))
            except (OSError, LookupError, ValueError):  # gone, or no message of ours
                poll.unregister(number)
                connections.pop(number)[0].close()


def values(value_bytes: int):
    """The value that belongs to a key."""
    return lambda key: key[:value_bytes].ljust(value_bytes, b".")


if __name__ == "__main__":
    protocol, address, port, value_bytes = sys.argv[1:]
    answers = importlib.import_module(f".{protocol}", __package__).answers
    serve(socket.create_server((address, int(port)), backlog=512),
          *answers(values(int(value_bytes))))
