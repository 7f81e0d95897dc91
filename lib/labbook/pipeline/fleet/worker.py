"""A job on a machine of a fleet, as a process of its own: `python -m labbook.pipeline.fleet.worker FOLDER LOCK`.

LOCK is the descriptor of FOLDER/lock, which is locked: the kernel lets go of it when the process ends, however.
FOLDER/job.json: {id, study, parameters, environment, variables (of the kernel), points: {experiment: [keys]},
seconds (in which it may begin points, or None), patience_s (without a sign of life of the driver, which has
crashed then, or is cut off), before ({key: identity, or None} of the records before the job)}. The notebook is
executed as by `labbook run`, but for these points alone. FOLDER/state.json says at the end how it went: {state, error}.
"""

import contextlib
import json
import os
import signal
import sys
import time
from pathlib import Path

from labbook import paths
from labbook.atomic_files import write_whole
from labbook.errors import LabbookError
from labbook.pipeline.executing import pages
from labbook.pipeline.executing.driver import Driver, sweep_labs
from labbook.pipeline.fleet import on_machine


class Orders:
    """In place of Interrupts: a job is stopped by its driver, by a signal, or when the driver is gone."""

    signal = signal.SIGINT

    def __init__(self, folder: Path, patience_s: float):
        self.folder, self._signals, self._patience_s = folder, 0, patience_s
        self.why = None

    def __enter__(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._take)
        return self

    def __exit__(self, *_):
        pass

    def _take(self, *_):
        self._signals += 1

    @property
    def count(self) -> int:
        if self.why is None and (self.folder / "stop").exists():
            self.why = "stopped"
        if self.why is None and on_machine.seconds_since_beat(self.folder) > self._patience_s:
            self.why = f"the driver was not heard of for {self._patience_s:g} s"
        if self.why is None and self._signals:
            self.why = "ended by a signal"
        return max(self._signals, int(self.why is not None))


def main(folder: str, lock: str) -> int:
    os.set_inheritable(int(lock), False)    # what the job starts must not keep it
    folder = Path(folder)
    job = json.loads((folder / "job.json").read_text())
    with Orders(folder, job["patience_s"]) as orders:
        state, error = _measure(job, orders)
        with contextlib.suppress(LabbookError):     # a full disk; then it counts as killed
            text = json.dumps({"state": state, "error": error})
            write_whole(folder / "state.json", lambda file: file.write(text.encode()))
    return int(error is not None)


def _measure(job: dict, orders: Orders) -> tuple[str, str | None]:
    """(state, why it did not end well)."""
    variables = job["variables"] | {"LABBOOK_ROOT": str(paths.checkout()), "LABBOOK_POINTS": json.dumps(job["points"])}
    if job.get("seconds") is not None:
        variables["LABBOOK_UNTIL"] = repr(time.time() + job["seconds"])
    try:
        sweep_labs()            # what an earlier job or run left when this machine was lost
        partial = on_machine.partial(orders.folder, job["study"])
        outcome = Driver(job["study"], job["parameters"], partial, variables).run(orders)
        partial.unlink(missing_ok=True)
        sweep_labs()
    except LabbookError as error:
        return pages.FAILED, str(error)
    if outcome.state == pages.PAUSED:       # study.complete() stops there once all points are measured
        return pages.OK, None
    if outcome.state == pages.INTERRUPTED:
        return outcome.state, orders.why or "interrupted"
    return outcome.state, outcome.message() if outcome.error else "the notebook ended before study.complete()"


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
