"""Runs one notebook in another process: reports progress, passes on interrupts, returns the outcome."""

import contextlib
import errno
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from labbook import paths
from labbook.atomic_files import UNFINISHED, disk_error, disk_errors, remove_unfinished
from labbook.errors import LabError, in_words
from labbook.pipeline.executing import pages
from labbook.pipeline.executing.execute import CLEAN_UP_SECONDS
from labbook.pipeline.executing.progress import RunState, beside

LABS = (Path("/run/labbook"), paths.ssh_labs_dir())  # state folders of labs
_LOOK_SECONDS = 0.2
LEAST_FREE_BYTES = 2**20    # less than a page needs
KERNEL_SECONDS = 5  # for the kernel to end with its driver
KILLED_SECONDS = 10     # to end after SIGKILL; what waits in the kernel does not


@dataclass(frozen=True)
class Outcome:
    """`error`: {name, message, cell, log} when the state is failed."""

    state: str
    error: dict | None = None

    def message(self) -> str:
        """What went wrong, and where its log is."""
        return in_words(self.error["name"], (self.error["message"] or "").strip()) + log_of(self.error)


def log_of(error: dict) -> str:
    """The line that names an error's log; empty where a machine of a fleet has it."""
    return f"\n  log: {error['log']}" if error["log"] else ""


class Interrupts:
    """Context that counts Ctrl-C, SIGTERM and SIGHUP (the end of an SSH session, unless `nohup` has it ignored)
    instead of raising KeyboardInterrupt. `doing`: what the first of them makes this process do.

    Within it, whoever reads stderr may end at any moment, as `tee` does upon the same Ctrl-C.
    """

    def __init__(self, doing="stopping, and taking down what is up"):
        self.count, self.signal = 0, signal.SIGINT
        self._doing = doing

    def __enter__(self):
        hang_up = [signal.SIGHUP] * (signal.getsignal(signal.SIGHUP) != signal.SIG_IGN)
        self._before = {s: signal.signal(s, self._take) for s in (signal.SIGINT, signal.SIGTERM, *hang_up)}
        self._stderr, sys.stderr = sys.stderr, Unbroken(sys.stderr)
        return self

    def __exit__(self, *_):
        sys.stderr = self._stderr
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _take(self, number, _frame):
        self.count += 1
        self.signal = number
        message = f"{self._doing} (press again to stop at once)" if self.count == 1 else "stopping at once"
        with contextlib.suppress(OSError):
            os.write(2, f"\nlabbook: {message}\n".encode())  # print is not safe in a signal handler


class Unbroken:
    """A stream that goes on into nothing once its reader has ended, or its terminal has hung up."""

    def __init__(self, stream):
        self._stream = stream

    def __getattr__(self, name):
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        with self._into_nothing():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with self._into_nothing():
            self._stream.flush()

    @contextlib.contextmanager
    def _into_nothing(self):
        try:
            yield
        except OSError as error:
            if error.errno not in (errno.EPIPE, errno.EIO):
                raise
            with open(os.devnull, "wb") as nothing:     # what is in the buffer goes there, too
                os.dup2(nothing.fileno(), self._stream.fileno())


class Driver:
    """Executes a study's notebook with `parameters` to the file `partial`. `known`: for whoever reads the
    progress file, `board`, the state of an ask, and `since` (epoch s), when its first round began; or `totals`, how
    much there is to do."""

    def __init__(self, study: str, parameters: dict, partial: Path, variables: dict, **known):
        self.study, self.partial = study, Path(partial)
        self.log = paths.build_dir() / "logs" / f"{study}.log"
        self._job = self.partial.with_name(f".{study}.job.json")
        self._error = self.partial.with_name(f".{study}.error.json")
        self._progress = beside(self.partial)
        self._scratch = self.partial.with_name(f".{study}.scratch")     # the kernel's temporary files
        self.story = RunState(self._progress)
        self._parameters, self._variables, self._known = parameters, variables, known

    def run(self, interrupts: Interrupts, show=lambda story: None) -> Outcome:
        """Run the notebook, and clean up after an interrupt. Errors of the notebook are in the
        outcome."""
        sockets = _own_folder(self.study)
        try:
            self._scratch.mkdir(mode=0o700, exist_ok=True)      # a kernel that was stuck may have left files
            self._write_job(sockets)
            child = self._start()
            self._watch(child, interrupts, show)
            self.story.read_on()
            self._end_kernel()
            return self._outcome(child.returncode, interrupts)
        finally:
            for file in (self._job, self._error, self._progress):
                file.unlink(missing_ok=True)
            for folder in (self._scratch, sockets):
                shutil.rmtree(folder, ignore_errors=True)
            (paths.build_dir() / "logs" / f"{self.study}.sockets").unlink(missing_ok=True)

    def _write_job(self, sockets):
        with disk_errors(self.log):
            self.log.parent.mkdir(parents=True, exist_ok=True)
        job = {"notebook": str(paths.notebook(self.study)), "output": str(self.partial),
               "parameters": self._parameters, "cwd": str(paths.checkout()),
               "error": str(self._error), "sockets": str(sockets)}
        with disk_errors(self._job):
            self._job.write_text(json.dumps(job))
        begin = {"event": "begin", "at_s": time.time(), "plan": "LABBOOK_PLAN" in self._variables,
                 "profile": self._variables.get("LABBOOK_PROFILE"), **self._known}
        with disk_errors(self._progress):
            self._progress.write_text(json.dumps(begin) + "\n")

    def _start(self):
        command = [sys.executable, "-m", "labbook.pipeline.executing.execute", str(self._job),
                   str(os.getpid())]
        inherited = {k: v for k, v in os.environ.items()
                if k not in ("LABBOOK_PUBLISHED", "LABBOOK_REMEASURE", "LABBOOK_UNTIL", "LABBOOK_OVERTIME",
                             "LABBOOK_PLAN", "LABBOOK_PROFILE", "LABBOOK_ASK", "LABBOOK_POINTS", "LABBOOK_FLEET")}
        environment = {**inherited, **self._variables, "LABBOOK_PROGRESS": str(self._progress),
                       "PYDEVD_DISABLE_FILE_VALIDATION": "1",
                       "TMPDIR": str(self._scratch)}    # a killed kernel's are found and removed
        with open(self.log, "w") as log:
            # A new session: the terminal's Ctrl-C reaches this process, which passes it on.
            return subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log,
                                    stderr=subprocess.STDOUT, start_new_session=True)

    def _watch(self, child, interrupts, show):
        interrupted_s = None
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(_LOOK_SECONDS)
                return
            self.story.read_on()
            show(self.story)
            if interrupts.count and interrupted_s is None:
                interrupted_s = time.monotonic()
                child.send_signal(signal.SIGUSR1)
            late = interrupted_s is not None and time.monotonic() - interrupted_s > CLEAN_UP_SECONDS
            if interrupts.count > 1 or late:
                child.kill()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(KILLED_SECONDS)
                    return
                _say_stuck(f"process {child.pid} of {self.study}")
                return

    def _end_kernel(self):
        """Wait until the kernel has ended with its driver, and else kill it: it would keep its lab."""
        pid = self.story.kernel_pid
        if not pid or _ends(pid, KERNEL_SECONDS):
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        if not _ends(pid, KILLED_SECONDS):
            _say_stuck(f"the kernel of {self.study}, process {pid},")

    def _outcome(self, code: int, interrupts) -> Outcome:
        error = self._reported()
        if error and error["name"] == "Stopped":
            return Outcome(pages.PAUSED)
        if interrupts.count:
            return Outcome(pages.INTERRUPTED)
        if error:
            return Outcome(pages.FAILED, error)
        if code:
            full = _is_almost_full(self.partial.parent)
            return self._failed("LabError", str(full)) if full else self._failed(
                "KernelDied", f"the notebook's process ended with code {code}")
        if not self.story.complete:
            return self._failed("Incomplete", "the notebook ended before study.complete() was "
                                "reached")
        if _marked_failed(self.partial):
            return self._failed("NotebookError", "the notebook stopped early: papermill marked it as failed")
        return Outcome(pages.OK)

    def _reported(self) -> dict | None:
        try:
            return {**json.loads(self._error.read_text()), "log": _relative(self.log)}
        except (FileNotFoundError, ValueError):     # a full disk leaves it empty
            return None

    def _failed(self, name, message) -> Outcome:
        return Outcome(pages.FAILED, {"name": name, "message": message, "cell": None,
                                      "log": _relative(self.log)})


def look(study: str, chosen: dict, partial: Path, variables: dict, interrupts: Interrupts) -> tuple[Outcome, RunState]:
    """Execute a notebook in plan mode, with the arguments of a Driver: nothing is measured, no page stays, and it stops
    at study.complete(), which is the outcome "paused". The story has what there is to measure."""
    driver = Driver(study, chosen, partial, variables | {"LABBOOK_PLAN": "1"})
    outcome = driver.run(interrupts)
    driver.partial.unlink(missing_ok=True)
    return outcome, driver.story


def _is_almost_full(folder: Path) -> LabError | None:
    """The error of a full disk if a folder's has no room for a page."""
    if shutil.disk_usage(folder).free > LEAST_FREE_BYTES:
        return None
    return disk_error(folder / "page", OSError(errno.ENOSPC, "No space left on device"))


def _own_folder(study: str) -> Path:
    """An empty folder for the kernel's sockets, whose paths must be short, with a name that nobody
    can take before. A note has it, so that a run removes what a killed run left. The caller holds the
    study's lock."""
    note = paths.build_dir() / "logs" / f"{study}.sockets"
    _remove_noted(note)
    folder = Path(tempfile.mkdtemp(prefix="labbook-", dir=_runtime_dir()))
    try:
        with disk_errors(note):
            note.parent.mkdir(parents=True, exist_ok=True)
            note.write_text(str(folder))
    except LabError:
        folder.rmdir()
        raise
    return folder


def _remove_noted(note: Path) -> None:
    with contextlib.suppress(OSError):
        folder = Path(note.read_text())
        found = folder.lstat()
        if folder.name.startswith("labbook-") and stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid():
            shutil.rmtree(folder, ignore_errors=True)
        note.unlink(missing_ok=True)        # another command may sweep, too


def sweep_sockets() -> None:
    """Remove the sockets of killed runs of this checkout's studies."""
    for note in (paths.build_dir() / "logs").glob("*.sockets"):
        with pages.unless_running(note.stem) as idle:
            if idle:
                _remove_noted(note)


def sweep_records() -> None:
    """Remove what killed commands left half written: records of all studies, and notes on them below build/."""
    remove_unfinished(paths.records_dir().rglob(f"{UNFINISHED}*"))
    for folder in (".", "*", "published/*"):
        remove_unfinished(paths.build_dir().glob(f"{folder}/{UNFINISHED}*"))


def _runtime_dir() -> str | None:
    """The user's own folder for sockets, if there is one."""
    place = os.environ.get("XDG_RUNTIME_DIR", "")
    with contextlib.suppress(OSError):
        found = os.stat(place)
        if found.st_uid == os.getuid() and stat.S_IMODE(found.st_mode) == 0o700:
            return place
    return None


def _ends(pid: int, seconds: float) -> bool:
    """Whether a kernel ends in that time."""
    deadline = time.monotonic() + seconds
    while _is_kernel(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _say_stuck(who: str) -> None:
    print(f"labbook: {who} does not end {KILLED_SECONDS} s after SIGKILL: it waits in the kernel, and "
          "keeps its lab until it ends. `labbook down` then takes that down", file=sys.stderr)


def sweep_labs() -> None:
    """Take down labs whose driver was killed, and remove what it left on the user's own clouds, its
    sockets and its partial records. Imports the lab library only if there is anything to remove.

    What cannot be removed now is reported, not raised: an unreachable host need not stop a study.
    """
    sweep_sockets()
    sweep_records()
    if labs_left() or _rests_left():
        from labbook.lab import Lab

        try:
            Lab.sweep()
        except LabError as error:
            print(f"labbook: {error}", file=sys.stderr)
    if clouds_left():
        from labbook.systems.cloud import user_cloud

        try:
            user_cloud.sweep()
        except LabError as error:
            print(f"labbook: {error}", file=sys.stderr)


def labs_left() -> bool:
    return any(folder.is_dir() for place in LABS for folder in place.glob("[a-z0-9]*"))


def _rests_left() -> bool:
    """Whether a killed command left a lab's state half deleted, or a folder of the cache half made."""
    halves = [*(place.glob(".gone-*") for place in LABS), (paths.cache_dir() / "artifacts/.drafts").glob("*")]
    return any(any(each) for each in halves)


def clouds_left() -> bool:
    """Whether the journal lists resources on a cloud of the user's own."""
    return paths.clouds_dir().is_dir() and any(paths.clouds_dir().iterdir())


def _marked_failed(executed: Path) -> bool:
    metadata = json.loads(executed.read_text(encoding="utf-8")).get("metadata", {})
    return bool(metadata.get("papermill", {}).get("exception"))


def _is_kernel(pid: int) -> bool:
    """Whether a process is alive and is a kernel of labbook, not another process with its pid."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return b"labbook.pipeline.executing.jupyter_kernel" in command  # a zombie has no command line


def _relative(path: Path) -> str:
    root = paths.checkout()
    return str(path.relative_to(root) if path.is_relative_to(root) else path)
