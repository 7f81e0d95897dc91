"""lib/bootstrap.sh, beside another run of it."""

import fcntl
import os
import shutil
import subprocess

import pytest

from labbook import paths


@pytest.fixture
def checkout(tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "build").mkdir()
    shutil.copy(paths.checkout() / "lib/bootstrap.sh", tmp_path / "lib")
    return tmp_path


def bootstrap(checkout, **variables):
    return subprocess.run(["lib/bootstrap.sh"], cwd=checkout, env=os.environ | variables, text=True,
                          capture_output=True, timeout=60)


def test_one_that_never_ends_is_named_and_not_waited_for(checkout):
    with open(checkout / "build/bootstrap.lock", "w") as lock:
        lock.write("4711\n")
        lock.flush()
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = bootstrap(checkout, LABBOOK_BOOTSTRAP_SECONDS="0.1")
    assert done.returncode == 1 and "process 4711 has been making .venv for too long" in done.stderr
    assert not (checkout / ".venv").exists()


def test_what_it_left_is_no_obstacle(checkout):
    """The lock goes with its holder, whatever the file says."""
    (checkout / "build/bootstrap.lock").write_text("4711\n")
    done = bootstrap(checkout, PYTHON="no-such-python")
    assert done.returncode and "4711" not in done.stderr
    assert (checkout / "build/bootstrap.lock").read_text() != "4711\n"
