"""Starts the notebook's kernel: `python -m labbook.pipeline.executing.jupyter_kernel -f CONNECTION_FILE`.

A kernel whose driver was killed must end at once, because a measurement that continues unnoticed
spoils the next one. ipykernel itself notices after a second or more.
"""

import atexit
import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def die_with(parent_pid: int) -> None:
    """Have the operating system kill this process when the process `parent_pid` ends (Linux)."""
    try:
        prctl = ctypes.CDLL(None, use_errno=True).prctl
    except AttributeError:
        return  # not Linux, so there are no labs
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent_pid:
        os._exit(1)  # it ended before the line above


def main() -> None:
    from labbook.pipeline.executing import progress

    if parent := os.environ.get("JPY_PARENT_PID"):
        die_with(int(parent))
    progress.append_event(event="kernel", pid=os.getpid())
    if sys.path[0] in ("", os.getcwd()):
        del sys.path[0]  # as ipykernel_launcher does; the notebook gets it back
    from ipykernel.kernelapp import IPKernelApp

    app = IPKernelApp.instance()
    app.initialize()
    atexit.register(_leave)
    app.start()


def _leave() -> None:
    """End the process after the notebook's exit handlers, such as taking its lab down, and before
    ipykernel's: on a busy machine its close() joins a thread that waits for one already closed
    (7.4.0: IPKernelApp.close, the control thread's last status), and the kernel never ends."""
    os._exit(0)


if __name__ == "__main__":
    main()
