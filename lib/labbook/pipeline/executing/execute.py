"""Runs one notebook by papermill, in its own process so that `labbook run` stays light and in
control: `python -m labbook.pipeline.executing.execute JOB.json PARENT_PID`.

SIGUSR1 stops it: the running cell is interrupted and no further cell starts. Exit code 0 when all
cells ran, 1 with the job's "error" file written when one failed.
"""

import contextlib
import json
import os
import signal
import sys
import traceback
from pathlib import Path

from labbook.pipeline.executing.jupyter_kernel import die_with

ENGINE, SAVE_SECONDS = "labbook", 10
CLEAN_UP_SECONDS = 150  # for a study to take its lab down when its kernel ends


class Interrupted(Exception):
    """The driver asked for a stop."""


class Stop:
    """A requested stop; interrupts the kernel's running cell. `begun`: whether the first cell has."""

    def __init__(self):
        self.asked, self.begun, self.kernels = False, False, None

    def ask(self, *_):
        self.asked = True
        if not self.begun:
            # Nothing is up yet. An interrupted kernel that still starts would be waited for in vain; it
            # ends with this process.
            os._exit(1)
        provisioner = self.kernels and self.kernels.provisioner
        if provisioner and provisioner.pid:
            # To the kernel only, not to its process group as jupyter_client does: the kernel itself
            # ends what it started, such as a half-made lab.
            with contextlib.suppress(ProcessLookupError):
                os.kill(provisioner.pid, signal.SIGINT)

    def check(self, **_):
        self.begun = True
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
        with contextlib.suppress(OSError):      # the disk is full; the driver finds it so
            Path(job["error"]).write_text(json.dumps(_reported(error)))
        return 1
    return 0


def _execute(job: dict, stop: Stop) -> None:
    # For notebooks in S3 and HDFS papermill would import these, a third of its start; ours are files.
    sys.modules.update(boto3=None, pyarrow=None)
    import papermill

    papermill.engines.papermill_engines.register(ENGINE, _engine())
    papermill.execute_notebook(
        job["notebook"], job["output"], parameters=job["parameters"], kernel_name="python3",
        language="python", cwd=job["cwd"], progress_bar=False, start_timeout=120,
        kernel_manager_class=_kernel_manager(stop, Path(job["sockets"])),
        on_cell_start=stop.check, engine_name=ENGINE)


def _engine():
    """A papermill engine that saves the page at times and at its end: papermill's own saves it twice a cell, which is
    half of what a page takes that measures nothing."""
    from papermill.engines import NBClientEngine

    class Engine(NBClientEngine):
        @classmethod
        def execute_managed_notebook(cls, nb_man, kernel_name, **settings):
            save = nb_man.save

            def save_at_times():
                since = nb_man.now() - nb_man.last_save_time
                if nb_man.end_time or since.total_seconds() >= SAVE_SECONDS:
                    save()

            nb_man.save = save_at_times
            super().execute_managed_notebook(nb_man, kernel_name, **settings)

    return Engine


def _kernel_manager(stop: Stop, sockets: Path):
    """A class of kernel managers: a client shuts down cleanly only kernels of its own manager."""
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import AsyncKernelManager

    class Kernels(AsyncKernelManager):
        """Kernels of this interpreter, whatever kernels are installed. They end with this process."""

        kernel_spec = KernelSpec(
            argv=[sys.executable, "-m", "labbook.pipeline.executing.jupyter_kernel", "-f", "{connection_file}"],
            display_name="Python 3", language="python")

        def __init__(self, **settings):
            # ipc needs no port, and no warning about one. The sockets' names must be given, or
            # kernels in one working folder share them. jupyter_client sends SIGTERM after half
            # of the wait: that half is the time for the lab to come down.
            super().__init__(
                **settings, transport="ipc", ip=str(sockets / "s"),
                connection_file=str(sockets / "kernel.json"),
                shutdown_wait_time=2 * CLEAN_UP_SECONDS)
            stop.kernels = self

        async def _async_interrupt_kernel(self):
            """Do nothing before a shutdown: an interrupt would reach the kernel's children, too."""

    return Kernels


def _reported(error: Exception) -> dict:
    """Name, message and cell of an error; those of the cell where papermill's error has them."""
    return {"name": getattr(error, "ename", None) or type(error).__name__,
            "message": getattr(error, "evalue", None) or str(error),
            "cell": getattr(error, "exec_count", None)}


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
