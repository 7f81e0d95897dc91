"""The driver's own folder and its waits; its runs are in test_run.py."""

import fcntl
import os

import pytest

from labbook import paths
from labbook.commands import lab as lab_commands
from labbook.pipeline.executing import driver, pages


@pytest.fixture
def place(book, tmp_path, monkeypatch):
    """An empty folder for the user's sockets."""
    place = tmp_path / "runtime"
    place.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(place))
    return place


def test_the_folder_of_sockets_is_the_users_alone_and_goes_with_the_next_run(place):
    first = driver._own_folder("cms")
    assert first.parent == place and first.stat().st_mode & 0o777 == 0o700
    (first / "socket").touch()      # of a run that was killed
    other = driver._own_folder("wan")
    second = driver._own_folder("cms")
    assert first != second and set(place.iterdir()) == {other, second}


def test_what_others_put_where_the_folder_was_is_left_alone(place, tmp_path):
    folder = driver._own_folder("cms")
    folder.rmdir()
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious/file").touch()
    folder.symlink_to(tmp_path / "precious")
    assert driver._own_folder("cms") != folder and (tmp_path / "precious/file").exists()


def test_a_runtime_folder_that_others_may_enter_is_not_used(place):
    place.chmod(0o755)
    folder = driver._own_folder("cms")
    try:
        assert folder.parent != place
    finally:
        folder.rmdir()


def test_a_kernel_that_does_not_even_end_upon_sigkill_is_named_and_left(book, monkeypatch, capsys):
    made = driver.Driver("cms", {}, book.root / "partial.ipynb", {})
    killed = []
    monkeypatch.setattr(type(made.story), "kernel_pid", 4711, raising=False)
    made.story.kernel_pid = 4711
    monkeypatch.setattr(driver, "_is_kernel", lambda pid: True)
    monkeypatch.setattr(driver, "KERNEL_SECONDS", 0.05)
    monkeypatch.setattr(driver, "KILLED_SECONDS", 0.05)
    monkeypatch.setattr(os, "kill", lambda *what: killed.append(what))
    made._end_kernel()
    assert killed == [(4711, 9)]
    assert "the kernel of cms, process 4711, does not end 0.05 s after SIGKILL" in capsys.readouterr().err


def test_sockets_of_a_killed_run_go_with_the_next_command(place):
    folder = driver._own_folder("cms")
    (folder / "socket").touch()
    driver.sweep_sockets()
    assert not folder.exists()


def test_sockets_of_a_run_under_way_stay(place):
    folder = driver._own_folder("cms")
    pages._lock("cms").parent.mkdir(parents=True, exist_ok=True)
    with open(pages._lock("cms"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        driver.sweep_sockets()
        assert folder.exists()
    driver.sweep_sockets()
    assert not folder.exists()


def test_partial_records_of_a_killed_run_go_with_down_whichever_study_they_are_of(book):
    folder = paths.records_dir() / "machine/cms/clients"
    folder.mkdir(parents=True)
    (partial := folder / ".tmp-4711-key.parquet").touch()
    with open(written := folder / ".tmp-4712-key.parquet", "wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        lab_commands._files_down()
        assert not partial.exists() and written.exists()


def test_notes_that_a_killed_command_left_half_written_go_too(book):
    left = [paths.build_dir() / place / ".tmp-4711-cms.json" for place in (".", "pages", "totals", "published/cms")]
    for path in left:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    driver.sweep_records()
    assert not any(path.exists() for path in left)


def test_what_is_said_to_a_terminal_that_has_hung_up_goes_nowhere():
    """A write to it fails with EIO, which would end the run without its clean-up."""
    ours, theirs = os.openpty()
    stream = driver.Unbroken(os.fdopen(theirs, "w", buffering=1))
    print("seen", file=stream)
    os.close(ours)
    for _ in range(3):
        print("unseen", file=stream, flush=True)
    stream.close()


def test_a_look_tells_what_there_is_to_measure_and_leaves_no_page(book):
    book.study("cms", "import os\nassert os.environ['LABBOOK_PLAN'] == '1'",
               "from labbook.pipeline.executing.progress import append_event\n"
               "append_event(event='plan', experiment='response', done=1, total=4)",
               "from labbook.errors import Stopped\nraise Stopped('only the plan was asked for')")
    with pages.only_me("cms") as partial, driver.Interrupts() as interrupts:
        outcome, story = driver.look("cms", {}, partial, {}, interrupts)
        assert outcome.state == pages.PAUSED and (story.done, story.total) == (1, 4)
        assert not partial.exists()


def test_temporary_files_of_a_killed_kernel_go_with_the_next_run(book):
    scratch = driver.Driver("cms", {}, pages.partial("cms"), {})._scratch
    scratch.mkdir(parents=True)
    (scratch / "tmpabc.raw").touch()
    with pages.only_me("cms"):
        assert not scratch.exists()
