"""A privileged helper that stands by while a lab is measured.

A request takes it some 13 ms, and 66 ms one that is started for it, or more with sudo. It has no more
rights than these: it answers what this process writes into its pipe, and ends when the pipe is closed, so
also when this process is killed.
"""

import json
import os
import select
import subprocess
import threading
import time
from contextlib import suppress

from labbook.errors import LabError

PART_BYTES = 65536
END_SECONDS = 5     # for one whose input was closed


class Standing:
    """`command`: starts the helper, with root.serve. A fork of this process starts its own."""

    def __init__(self, command: list[str]):
        self._command, self._process, self._of, self._lock = command, None, None, threading.RLock()

    def ask(self, request: dict, seconds: float) -> dict | None:
        """Its answer; None when it cannot be started or has ended. LabError when it does not answer within
        `seconds`. Ctrl-C takes effect after the answer."""
        with self._lock:
            if not self._is_up() and not self._start():
                return None
            try:
                os.write(self._process.stdin.fileno(), json.dumps(request).encode() + b"\n")
                line = self._line(time.monotonic() + seconds)
            except BrokenPipeError:
                line = b""
            except BaseException:
                self.close()    # an answer that nobody read would be taken for the next one
                raise
            if not line:
                self.close()
                return None
            return json.loads(line)

    def close(self) -> None:
        """End the helper, if it is up."""
        with self._lock:
            process, self._process = self._process, None
            if process is None or self._of != os.getpid():
                return
            process.stdin.close()
            try:
                process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                with suppress(PermissionError):  # under sudo it runs as root, and is left to end
                    process.kill()
            process.stdout.close()

    def _is_up(self) -> bool:
        return self._process is not None and self._of == os.getpid() and self._process.poll() is None

    def _start(self) -> bool:
        self.close()
        try:
            self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                             stderr=subprocess.DEVNULL, start_new_session=True)
        except FileNotFoundError:
            return False
        self._of = os.getpid()
        return True

    def _line(self, until: float) -> bytes:
        """The helper's next line; b"" when it has ended."""
        line, interrupted = b"", False
        while not line.endswith(b"\n"):
            try:
                out = self._process.stdout.fileno()
                if not select.select([out], [], [], max(0, until - time.monotonic()))[0]:
                    raise LabError("the privileged helper did not answer in time",
                                   remedy="See `ps` for what it waits for, then try again")
                if not (part := os.read(out, PART_BYTES)):
                    line = b""
                    break
                line += part
            except KeyboardInterrupt:
                interrupted = True
        if interrupted:
            raise KeyboardInterrupt
        return line
