"""Deadlines for what may wait for the kernel without end.

A process that waits inside the kernel, such as for a disk or a file system that does not answer, does
not even end upon SIGKILL. So a process whose time is up is killed and left behind, never waited for.
Runs as root, with the standard library alone.
"""

import json
import os
import select
import signal
import subprocess
import time
from contextlib import contextmanager, suppress

STANDARD_LIBRARY = os.path.dirname(os.__file__)
SECONDS = 30    # for a command; each takes hundredths of a second


class Overdue(OSError):
    """It did not end in time."""


def run(*command, input: str = "", seconds: float = SECONDS, name: str = "") -> str:
    """Output of a command; OSError with what it printed when it fails, Overdue when its time is up.

    `name` stands for the command in messages.
    """
    name = name or _short(command)
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        output, complaint = process.communicate(input, timeout=seconds)
    except subprocess.TimeoutExpired:
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        raise Overdue(f"{name}: did not end within {seconds:g} s (process {process.pid})") from None
    if process.returncode:
        raise OSError(f"{name}: {(complaint or output).strip()}")
    return output


def to_its_end(command: list[str], request: str, seconds: float) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of a command that must not be left half way: Ctrl-C takes effect after its end.

    FileNotFoundError without such a command, Overdue when its time is up.
    """
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        try:
            output, complaint = process.communicate(request, timeout=seconds)
        except KeyboardInterrupt:
            process.communicate(timeout=seconds)
            raise
    except subprocess.TimeoutExpired:
        with suppress(PermissionError):  # under sudo it runs as root, and is left to end
            process.kill()
        raise Overdue(f"{_short(command)}: did not end within {seconds:g} s (process {process.pid})") from None
    return process.returncode, output, complaint


def _short(command) -> str:
    line = " ".join(" ".join(command).split())
    return line if len(line) <= 100 else f"{line[:97]}..."


@contextmanager
def limit(seconds: float, what: str):
    """Raise Overdue in this process, which has one thread, when the block takes longer than `seconds`,
    and again each second after."""
    def up(_number, frame):
        while frame.f_back and frame.f_code.co_filename.startswith(STANDARD_LIBRARY):
            frame = frame.f_back
        raise Overdue(f"{what} did not end within {seconds:g} s: it was in {frame.f_code.co_name}, "
                      f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}")

    before = signal.signal(signal.SIGALRM, up)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def each(action, items, seconds: float, until: float) -> list[tuple]:
    """Call `action(item)` for each of `items` in a child process, each for `seconds` at most.

    Once one is overdue, those after it have a tenth of that. Nothing is begun after `until`
    (time.monotonic()). Returns [(item, message)] of those that raised OSError or were not done.
    """
    left, problems = list(items), []
    while left:
        if time.monotonic() > until:
            return problems + [(item, "not tried: the time was up") for item in left]
        count, found = _some(action, left, min(seconds, max(0.1, until - time.monotonic())))
        if count < len(left):     # the child is stuck at this one, or ended
            seconds = min(seconds, max(1.0, seconds / 10))
        problems += found
        left = left[count:]
    return problems


def _some(action, items, seconds):
    """(how many of `items` were tried, problems): all, or up to the first that is overdue."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        _work(action, items, write)
    os.close(write)
    messages, why = _messages(read, len(items), seconds)
    os.close(read)
    _end(child)
    problems = [(item, message) for item, message in zip(items, messages) if message]
    if len(messages) == len(items):
        return len(items), problems
    stuck = items[len(messages)]
    return len(messages) + 1, [*problems, (stuck, f"{why} (process {child})")]


def _messages(read, count, seconds):
    """The child's message about each item (None: done), and why no more came."""
    data = b""
    while data.count(b"\n") < count:
        if not select.select([read], (), (), seconds)[0]:
            return _lines(data), f"did not end within {seconds:g} s"
        new = os.read(read, 65536)
        if not new:
            return _lines(data), "the process that was at it ended"
        data += new
    return _lines(data), ""


def _lines(data):
    return [json.loads(line) for line in data.split(b"\n")[:-1]]


def _work(action, items, write):
    """Runs in the child. It keeps nothing open of its parent's, which may go on without it: neither
    its locks nor the pipe to who asked."""
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(nothing, number)
        os.closerange(3, write)
        os.closerange(write + 1, 1 << 20)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        for item in items:
            message = None
            try:
                action(item)
            except (OSError, subprocess.SubprocessError) as error:
                message = str(error)
            os.write(write, json.dumps(message).encode() + b"\n")
        os._exit(0)
    finally:
        os._exit(1)


def _end(child):
    """Kill the child with what it has started, and collect it if it ends soon."""
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    for _ in range(50):
        if os.waitpid(child, os.WNOHANG)[0]:
            return
        time.sleep(0.01)
