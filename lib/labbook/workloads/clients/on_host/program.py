"""A program of clients as its engine has it: forked by a fork server, fed and read through pipes, waited for
and killed."""

import os
import select
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from labbook.workloads.clients.on_host import fork_server

FORK_SECONDS = 60       # for a fork server to start, and to fork
KILLED_SECONDS = 10     # for a program that was killed to be gone

_servers = {}           # {runner: its fork server}


def start(runner: str, out: Path, log) -> "Program":
    """The module `runner` as a program. out: the path of its results; log: an open file. OSError or EOFError
    when it cannot be forked. A server that was killed meanwhile is replaced."""
    try:
        return Program(runner, out, log)
    except (OSError, EOFError):
        return Program(runner, out, log)


class ForkServer:
    """The process that forks the programs of one `runner`; it ends with this one."""

    def __init__(self, runner: str):
        self.channel, other = socket.socketpair()
        with other:
            self.process = subprocess.Popen([sys.executable, "-m", fork_server.__name__, runner], stdin=other,
                                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                            start_new_session=True)

    def number(self, seconds: float) -> int | None:
        """The next number that it sends; None when there is none within `seconds`. EOFError when it ended."""
        if not select.select([self.channel], [], [], max(0, seconds))[0]:
            return None
        if not (data := self.channel.recv(fork_server.NUMBER.size, socket.MSG_WAITALL)):
            raise EOFError
        return fork_server.NUMBER.unpack(data)[0]

    def end(self) -> None:
        self.channel.close()
        self.process.kill()
        self.process.wait()


class Program:
    """A host's clients at work. `input`, `output`: binary files, its ends of the pipes; `code`: its exit code,
    once it has ended."""

    def __init__(self, runner: str, out: Path, log):
        """OSError or EOFError when it cannot be forked."""
        self.code, self._runner = None, runner
        ours, theirs = _pipe_to(), _pipe_from()
        self.input, self.output = ours[0], theirs[0]
        try:
            self._server = _servers.get(runner) or _servers.setdefault(runner, ForkServer(runner))
            socket.send_fds(self._server.channel, [str(out).encode()], [ours[1], theirs[1], log.fileno()])
            self.pid = self._server.number(FORK_SECONDS)
            if self.pid is None:
                raise EOFError
        except (OSError, EOFError):
            self.close()
            self.forget()
            raise
        finally:
            os.close(ours[1])
            os.close(theirs[1])

    def ended(self, seconds: float) -> bool:
        """Close its input and wait up to `seconds` for its end; what it prints until then is dropped."""
        self.input.close()
        until, open_ends = time.monotonic() + seconds, [self._server.channel, self.output]
        while ready := select.select(open_ends, [], [], max(0, until - time.monotonic()))[0]:
            if self._server.channel in ready:   # it has ended, or its server has
                return self._has_ended(0)
            if not self.output.read(65536):     # its clients have ended: the server says so next
                open_ends.pop()
        return False

    def kill(self) -> None:
        """End it and its clients, which may live though the program does not."""
        if self.code is None:   # not waited for, so its number is no other's
            self._kill_group()
            if not self._has_ended(KILLED_SECONDS):     # it waits for the kernel: nobody waits for it
                self.forget()
                self.code = -signal.SIGKILL

    def close(self) -> None:
        for pipe in (self.input, self.output):
            pipe.close()

    def forget(self) -> None:
        """Have the next program forked by another server."""
        if (server := _servers.pop(self._runner, None)) is not None:
            server.end()

    def _has_ended(self, seconds) -> bool:
        try:
            self.code = self._server.number(seconds)
        except (OSError, EOFError):
            self._kill_group()
            self.forget()
            self.code = 1
        return self.code is not None

    def _kill_group(self):
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)


def _pipe_to():
    """(our end of a pipe, a binary file; the descriptor of the other end), for us to write."""
    read, write = os.pipe()
    return open(write, "wb", buffering=0), read


def _pipe_from():
    read, write = os.pipe()
    return open(read, "rb", buffering=0), write
