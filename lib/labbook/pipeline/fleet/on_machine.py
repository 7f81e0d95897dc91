"""What an engine does on a machine of a fleet: say what is there, start a job, hand over what it has measured.

A job is measured by a process of its own (see worker.py), so an engine answers at once, and may die and come
back meanwhile. Each call is a sign of life of whoever drives the fleet: without one for a while the job stops.
"""

import fcntl
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

from labbook import paths
from labbook.atomic_files import open_lock, write_whole
from labbook.errors import InputError, LabbookError

NAME = "LABBOOK_MACHINE"            # in an engine's environment: the machine's name in the fleet
BATCH_BYTES = 8 * 2**20             # of records an answer, or one record
JOB_ID = re.compile(r"[0-9a-f]{16}")
KEPT = 3                            # folders of jobs that have ended
SWEEP = "from labbook.pipeline.executing.driver import sweep_labs; sweep_labs()"
RUNNING, ENDED, KILLED, UNKNOWN = "running", "ended", "killed", "unknown"
_workers = {}                       # job -> process, of this engine, which no one else can wait for


def who() -> dict:
    """{name (None on an engine of a cluster that is not ours), id, host, pid, checkout}."""
    from labbook.study.records import provenance

    return {"name": os.environ.get(NAME), "id": provenance.machine_id(), "host": platform.node(), "pid": os.getpid(),
            "checkout": str(paths.checkout())}


def about(studies) -> dict:
    """{machine (see provenance.machine), free_bytes (for records), studies: {name: {code, versions} or {error}}}."""
    from labbook.study.records import provenance
    from labbook.study.records.fingerprint import fingerprint

    _import_all()
    found = {}
    for study in studies:
        try:
            of = fingerprint(study)
            found[study] = {"code": of.code, "versions": of.versions}
        except (LabbookError, OSError) as error:
            found[study] = {"error": str(error)}
    return {"machine": provenance.machine(), "studies": found, "free_bytes": shutil.disk_usage(_place()).free}


def _import_all() -> None:
    """All that answers about a job need: on a busy machine it takes long to import, and a job's first answer must
    not."""
    from labbook.pipeline.executing import progress         # noqa: F401
    from labbook.study.records import provenance, record

    with suppress(LabbookError):
        record.Records(paths.records_dir() / provenance.place(paths.checkout() / paths.LOCAL)).files("0" * 20)


def start(job: dict) -> str | None:
    """Begin a job (see worker.py) in a process of its own; None, or why not: another one is under way here.

    The same job again, after a lost answer, is one job. Of several drivers' jobs at the same moment one begins.
    """
    folder = _folder(job["id"])
    with _only_me():
        if _is_begun(folder):
            beat(job["id"])
            return None
        if other := under_way():
            return f"it measures {other} still"
        _forget_old()
        folder.mkdir(exist_ok=True)
        beat(job["id"])
        _spawn(job, folder)
    return None


@contextmanager
def _only_me():
    """Meanwhile no other engine of this machine begins a job."""
    _fleet().mkdir(parents=True, exist_ok=True)
    with open_lock(_fleet() / "lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _is_begun(folder: Path) -> bool:
    """Whether a job is written down; without that it never began."""
    return (folder / "job.json").is_file()


def _spawn(job, folder):
    """Begin the job's process. It is given its lock, which it holds from its first moment to its last."""
    noted = job | {"before": {key: _identity(records.path(key)) for _, key, records in _each(job)}}
    with open_lock(folder / "lock") as lock, open(folder / "log", "w") as log:
        fcntl.flock(lock, fcntl.LOCK_EX)
        write_whole(folder / "job.json", lambda file: file.write(json.dumps(noted).encode()))
        _workers[job["id"]] = subprocess.Popen(
            [sys.executable, "-m", "labbook.pipeline.fleet.worker", str(folder), str(lock.fileno())],
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
            pass_fds=[lock.fileno()], cwd=paths.checkout())


def poll(id: str, have: dict) -> dict:
    """How a job is going, with what it has measured since: {state (running, ended, killed, unknown), outcome (of the
    notebook, see pages), error (None: it ended well), point, done, total, left_s, note, records: [{experiment, key, at
    (its identity), files: {name: bytes}}], failures: [{experiment, key, failure, trace}], more: whether there are more
    records}.

    have: {key: identity} of the records that are home. A record that was there before the job may be of earlier code,
    to be measured again: it comes once the job has ended well without that.
    """
    folder = _folder(id)
    if not _is_begun(folder):
        return {"state": UNKNOWN, "records": [], "failures": [], "more": False}
    beat(id)
    running = _is_alive(id)         # first: what it measured last is there once it has ended
    job = json.loads((folder / "job.json").read_text())
    found = {"state": RUNNING, "outcome": None, "error": None} if running else _ending(folder)
    is_well = found["state"] == ENDED and not found["error"]
    records, more = _records(job, have, {} if is_well else job.get("before", {}))
    return {**found, "records": records, "more": more,
            "failures": [] if running or more else _failures(job, job.get("before", {})), **_progress(job, folder)}


def stop(id: str) -> None:
    """Have a job end: its lab is taken down, the point under way is lost."""
    folder = _folder(id)
    if folder.is_dir():
        (folder / "stop").touch()
        beat(id)


def beat(id: str) -> None:
    """Note a sign of life of the driver."""
    (_folder(id) / "heartbeat").touch()


def clean() -> list[str]:
    """Take down what killed runs left on this machine, unless a job is under way; the lines that it printed. A lab
    that `labbook up` keeps stays."""
    if under_way():
        return []
    done = subprocess.run([sys.executable, "-c", SWEEP], text=True, capture_output=True, stdin=subprocess.DEVNULL,
                          cwd=paths.checkout())
    return [line for line in done.stderr.splitlines() if line.strip()]


def _place() -> Path:
    folder = paths.records_dir()
    return next(path for path in (folder, *folder.parents) if path.is_dir())


def _fleet() -> Path:
    from labbook.study.records import provenance

    return paths.build_dir() / "fleet" / provenance.machine_id()


def _folder(id: str) -> Path:
    if not JOB_ID.fullmatch(id):
        raise InputError(f"{id!r} is no id of a job", allowed="16 hex digits")
    return _fleet() / id


def under_way() -> str | None:
    """Id of the job that this machine measures, whoever gave it."""
    return next((folder.name for folder in _jobs() if _is_alive(folder.name)), None)


def _jobs() -> list[Path]:
    return sorted((path for path in _fleet().glob("*") if JOB_ID.fullmatch(path.name)),
                  key=lambda path: path.stat().st_mtime)


def _forget_old():
    for folder in _jobs()[:-KEPT]:
        shutil.rmtree(folder, ignore_errors=True)


def _is_alive(id: str) -> bool:
    """Whether the job's process runs: it holds a lock."""
    worker = _workers.get(id)
    if worker is not None and worker.poll() is None:
        return True
    try:
        with open(_folder(id) / "lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return False
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False


def _ending(folder: Path) -> dict:
    """State, outcome and error of a job whose process has ended."""
    try:
        ending = json.loads((folder / "state.json").read_text())
        return {"state": ENDED, "outcome": ending["state"], "error": ending["error"]}
    except (OSError, ValueError):
        tail = (folder / "log").read_text(errors="replace")[-500:].strip() if (folder / "log").exists() else ""
        return {"state": KILLED, "outcome": None, "error": f"its process was killed{': ' if tail else ''}{tail}"}


def partial(folder: Path, study: str) -> Path:
    """Where a job writes its notebook: checkouts on a shared disk serve several machines, so it is the job's own."""
    return folder / f".{study}.partial.ipynb"


def _progress(job, folder) -> dict:
    from labbook.pipeline.executing.progress import RunState, beside

    story = RunState(beside(partial(folder, job["study"])))
    story.read_on()
    return {"point": story.point, "done": story.done, "total": story.total, "left_s": story.seconds_left(),
            "note": story.note}


def _each(job):
    """(experiment, key, its Records) of each point of a job."""
    from labbook.study.records import provenance
    from labbook.study.records.record import Records

    place = provenance.place(paths.checkout() / job["environment"])
    for experiment, keys in job["points"].items():
        records = Records(paths.records_dir() / place / job["study"] / experiment)
        for key in keys:
            yield experiment, key, records


def _records(job, have, before) -> tuple[list, bool]:
    """Records of a job that are neither home nor as they were `before` it, and whether there are more."""
    found, size = [], 0
    for experiment, key, records in _each(job):
        at = _identity(records.path(key))
        if at is None or at in (have.get(key), before.get(key)):
            continue
        if size > BATCH_BYTES:
            return found, True
        try:
            files = records.files(key)
        except FileNotFoundError:       # it is being measured again: the next poll has it
            continue
        if files and at == _identity(records.path(key)):
            size += sum(map(len, files.values()))
            found.append({"experiment": experiment, "key": key, "at": at, "files": files})
    return found, False


def _identity(path: Path) -> list | None:
    try:
        found = path.stat()
        return [found.st_ino, found.st_size, found.st_mtime_ns]
    except FileNotFoundError:
        return None


def _failures(job, before) -> list:
    """Failure records of the points that have no record, or the one of `before` the job."""
    return [{"experiment": experiment, "key": key, **failure} for experiment, key, records in _each(job)
            if (failure := records.failure_files(key)) and _identity(records.path(key)) in (None, before.get(key))]


def seconds_since_beat(folder: Path) -> float:
    """Since the driver's last sign of life."""
    try:
        return time.time() - (folder / "heartbeat").stat().st_mtime
    except OSError:
        return float("inf")
