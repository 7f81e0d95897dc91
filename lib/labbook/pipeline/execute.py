"""Runs one notebook by papermill, in a process of its own so that the press stays light and in
command: `python -m labbook.pipeline.execute JOB.json PARENT_PID`.

SIGUSR1 asks it to stop: the running cell is interrupted and no further cell starts. Exit code 0
when papermill is content, 1 with the job's "error" file written when it is not.
"""

import contextlib
import json
import os
import signal
import sys
import traceback
from pathlib import Path

from labbook.pipeline.kernel import die_with

CLEAN_UP_SECONDS = 150  # what a study may take to bring its lab down when its kernel ends


class Interrupted(Exception):
    """The press asked to stop."""


class Stop:
    """Remembers that a stop was asked for, and passes it on to the kernel's running cell."""

    def __init__(self):
        self.asked, self.kernels = False, None

    def ask(self, *_):
        self.asked = True
        provisioner = self.kernels and self.kernels.provisioner
        if provisioner and provisioner.pid:
            # To the kernel alone, not to its group as jupyter_client does: what the kernel
            # started, such as a half made lab, is the kernel's to end.
            with contextlib.suppress(ProcessLookupError):
                os.kill(provisioner.pid, signal.SIGINT)

    def check(self, **_):
        if self.asked:
            raise Interrupted


def main(job_file: str, parent: str) -> int:
    die_with(int(parent))
    stop = Stop()
    signal.signal(signal.SIGUSR1, stop.ask)
    job = json.loads(Path(job_file).read_text())
    try:
        _execute(job, stop)
    except Interrupted:
        return 1
    except Exception as error:
        traceback.print_exc()
        Path(job["error"]).write_text(json.dumps(_told(error)))
        return 1
    return 0


def _execute(job: dict, stop: Stop) -> None:
    import papermill

    papermill.execute_notebook(
        job["notebook"], job["output"], parameters=job["parameters"], kernel_name="python3",
        language="python", cwd=job["cwd"], progress_bar=False, start_timeout=120,
        kernel_manager_class=_kernel_manager(stop, Path(job["sockets"])),
        on_cell_start=stop.check)


def _kernel_manager(stop: Stop, sockets: Path):
    """A class of managers: a client ends in good order only the kernels of its own manager."""
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import AsyncKernelManager

    class Kernels(AsyncKernelManager):
        """Kernels of this interpreter, whatever kernels are installed, that end with us."""

        kernel_spec = KernelSpec(
            argv=[sys.executable, "-m", "labbook.pipeline.kernel", "-f", "{connection_file}"],
            display_name="Python 3", language="python")

        def __init__(self, **settings):
            # ipc: no port of the machine, and no warning about one. Its sockets' names must be
            # given, or kernels in one working folder meet at the same ones. After half of the wait
            # comes SIGTERM: it is the time that a lab has to come down.
            super().__init__(
                **settings, transport="ipc", ip=str(sockets / "s"),
                connection_file=str(sockets / "kernel.json"),
                shutdown_wait_time=2 * CLEAN_UP_SECONDS)
            stop.kernels = self

        async def _async_interrupt_kernel(self):
            """Not before a shutdown: it would reach all that the kernel has started, too."""

    return Kernels


def _told(error: Exception) -> dict:
    """What went wrong, for the page and the message: papermill's error names the cell's."""
    return {"name": getattr(error, "ename", None) or type(error).__name__,
            "message": getattr(error, "evalue", None) or str(error),
            "cell": getattr(error, "exec_count", None)}


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
