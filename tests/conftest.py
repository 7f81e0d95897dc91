"""Lab tests need root, and must leave the machine as they found it."""

import fcntl
import os
import re
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest
from traces_left import instances

HERE = Path(__file__).parent
BUILDS_THE_BOOK = HERE / "book/test_accessible.py"
DEATHS = HERE / "lab/test_registers.py"
RECORDS, STATE = Path("/run/labbook"), Path("/var/lib/labbook")
FOREIGN = Path("/var/tmp/labbook-foreign")   # tests/lab/foreign.py
ENDING_S = 10   # processes that were killed take a moment to go

# A run in a shell's background ignores SIGINT, and so would all that tests start, and send it to.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _needs_lab(item) -> bool:
    return (HERE / "lab") in Path(item.fspath).parents


def _privileged() -> bool:
    if os.geteuid() == 0:
        return True
    return bool(shutil.which("sudo")) and not subprocess.run(
        ["sudo", "-n", "true"], capture_output=True).returncode


def pytest_collection_modifyitems(items):
    """Files that measure a whole page take minutes, and so does the death of nodes that must be noticed; they come
    first: else workers wait for the last one. So does the first that builds the book: else those of tests/book
    that follow at once wait for it."""
    items.sort(key=lambda item: not (_needs_lab(item) and Path(item.fspath).stem.endswith("_page")
                                     or Path(item.fspath) in (BUILDS_THE_BOOK, DEATHS)))


def pytest_runtest_setup(item):
    """Skip lab tests without root; where they are required (make test), that is a failure."""
    if _needs_lab(item) and not _privileged():
        why = "labs need root or passwordless sudo: `labbook doctor` says what is missing"
        if os.environ.get("LABBOOK_REQUIRE_LAB"):
            pytest.fail(why, pytrace=False)
        pytest.skip(why)


@pytest.fixture(scope="session", autouse=True)
def cores_are_shared():
    """Tests' labs run several at a time, and measure nothing that is kept."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LABBOOK_SHARE_CORES", "1")
        yield


@pytest.fixture(scope="session", autouse=True)
def nothing_left_over(request):
    """After the lab tests the machine has no namespace, link, mount, ... that it had not before."""
    if not any(map(_needs_lab, request.session.items)) or not _privileged():
        yield
        return
    before = things()
    yield
    until = time.monotonic() + ENDING_S
    while (left := _of_no_other(things() - before)) and time.monotonic() < until:
        time.sleep(0.2)
    assert not left, "lab tests left behind:\n" + "\n".join(sorted(left))


def things() -> set[str]:
    """All that a lab is made of, as far as this machine has it."""
    return {
        *(f"link {path.name}" for path in Path("/sys/class/net").glob("lb-*")),
        *(f"foreign host's {path}" for place in FOREIGN.glob("??????") for path in
          (place, *Path("/sys/fs/cgroup").glob(f"*/foreign-{place.name}"))),
        *(f"link {path.name}" for path in Path("/sys/class/net").glob("fh-*")),
        *(f"network namespace {path.name}" for path in Path("/run/netns").glob("*")),
        *(f"record {path}" for path in RECORDS.glob("[!.]*/")),     # locks stay
        *(f"folder {path}" for path in STATE.glob("[!.]*/")),   # kernel features may be tried meanwhile
        *(f"loop device on {file}" for file in _backing_files()),
        *(f"mount {line.split()[4]}" for line in Path("/proc/self/mountinfo").open()
          if "labbook" in line),
        *(f"cgroup {path}" for depth in ("labbook-*", "*/labbook-*")
          for path in Path("/sys/fs/cgroup").glob(depth)),
        *(f"process {words}" for words in map(_command, Path("/proc").glob("[0-9]*"))
          if f"{RECORDS}/" in words),
        *(f"route {line}" for line in _routes() if "lb-" in line),
        *(f"trace {name}" for name in instances()),
    }


def _backing_files():
    for path in Path("/sys/block").glob("loop*/loop/backing_file"):
        with suppress(OSError):     # others detach theirs meanwhile
            yield path.read_text().strip()


def _command(process: Path) -> str:
    try:
        return (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def _routes():
    return subprocess.run(["ip", "-4", "route"], text=True, capture_output=True).stdout.splitlines()


def _of_no_other(left: set[str]) -> set[str]:
    """Without what belongs to labs that another living process has."""
    others = [lab.name for lab in RECORDS.glob("*/") if _owned_by_another(lab)]
    names = [re.compile(rf"(lb-|labbook[-/]){re.escape(lab)}\b") for lab in others]
    for place in FOREIGN.glob("??????"):
        if _owned_by_another(place):
            names += [re.compile(rf"(fh-|foreign[-/]){place.name}\b"), re.compile("on /home/op/")]
    return {thing for thing in left if not any(name.search(thing) for name in names)}


def _owned_by_another(lab: Path) -> bool:
    try:
        with open(lab / "owner.lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return False
    except BlockingIOError:
        return (lab / "owner.lock").read_text().strip() != str(os.getpid())
    except OSError:
        return False
