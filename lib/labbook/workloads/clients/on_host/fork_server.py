"""The process that the programs of clients are forked from, so that each does without an interpreter's start.

    python -m labbook.workloads.clients.on_host.fork_server RUNNER

Its standard input is a Unix socket. For each program it gets the path of the results, with three file descriptors for
the program's input, output and log; it answers with the program's process id, and then with its exit code, the negative
number of the signal that ended it. What a program has imported, the next ones find imported. It ends when the socket is
closed. Standard library only.
"""

import importlib
import importlib.util
import json
import os
import socket
import struct
import sys
from contextlib import suppress

NUMBER = struct.Struct("<q")
PATH_BYTES = 4096
PIPE_BYTES = 65536      # what a pipe takes without a reader


def serve(channel: socket.socket, runner: str) -> None:
    """Fork programs of the module `runner`, one after the other, until the channel is closed."""
    importlib.import_module(runner)
    pid = None
    while True:
        path, descriptors, *_ = socket.recv_fds(channel, PATH_BYTES, 3)
        if pid is not None:     # not before: meanwhile its number is no other's, for whoever kills its clients
            os.waitpid(pid, 0)
        if not path:
            return
        reader, writer = os.pipe()
        pid = os.fork()
        if not pid:
            os.close(reader)
            _be_the_program(channel, runner, path.decode(), descriptors, writer)
        for descriptor in (*descriptors, writer):
            os.close(descriptor)
        channel.sendall(NUMBER.pack(pid))
        code = _code_of(pid)
        _import(_read(reader))
        channel.sendall(NUMBER.pack(code))


def _code_of(pid: int) -> int:
    """Wait for the program's end: its exit code. Clients that wait for the kernel may outlive it."""
    ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status


def _read(reader: int) -> dict:
    """What the program reports of its imports; {} if it did not get so far."""
    os.set_blocking(reader, False)
    with open(reader, "rb", buffering=0) as imported:
        return json.loads(imported.read(PIPE_BYTES) or "{}")


def _be_the_program(channel, runner, path, descriptors, writer):
    """Runs in the child, whose clients are processes of its own."""
    code = 1
    try:
        channel.close()
        os.setsid()
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
            os.close(descriptor)
        sys.argv = [runner, path]
        before = set(sys.modules)
        code = _run(runner)
        imported = {name: module is not None for name, module in sys.modules.items() if name not in before}
        if len(data := json.dumps(imported).encode()) <= PIPE_BYTES:    # the server reads it after our end
            os.write(writer, data)
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):
                stream.flush()
        os._exit(code)


def _run(runner: str) -> int:
    """Run the module as `python -m` does: the exit code."""
    code = importlib.util.find_spec(runner).loader.get_code(runner)
    try:
        exec(code, {"__name__": "__main__", "__package__": runner.rpartition(".")[0]})
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return 0


def _import(names: dict) -> None:
    """names: {module: whether it was imported; otherwise the program kept it from being imported}."""
    for name, was in names.items():
        if not was:
            sys.modules.setdefault(name, None)
    for name, was in names.items():
        if was:
            with suppress(Exception):
                importlib.import_module(name)


if __name__ == "__main__":
    serve(socket.socket(fileno=0), sys.argv[1])
