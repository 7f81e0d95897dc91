"""lib/bootstrap.sh, beside another run of it."""

import fcntl
import os
import re
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


def test_one_that_waits_says_for_whom(checkout):
    with open(checkout / "build/bootstrap.lock", "w") as lock:
        lock.write("4711\n")
        lock.flush()
        fcntl.flock(lock, fcntl.LOCK_EX)
        waiting = subprocess.Popen(["lib/bootstrap.sh"], cwd=checkout, env=os.environ | {"PYTHON": "no-such-python"},
                                   text=True, stderr=subprocess.PIPE)
        assert waiting.stderr.readline() == "labbook: waiting for process 4711, which is making .venv\n"
    assert "no Python 3.11 or newer" in waiting.communicate(timeout=60)[1]


def test_what_it_left_is_no_obstacle(checkout):
    """The lock goes with its holder, whatever the file says."""
    (checkout / "build/bootstrap.lock").write_text("4711\n")
    done = bootstrap(checkout, PYTHON="no-such-python")
    assert done.returncode and "4711" not in done.stderr
    assert (checkout / "build/bootstrap.lock").read_text() != "4711\n"


def test_where_uv_cannot_its_message_is_found(checkout):
    uv = checkout / ".venv/bin/uv"
    uv.parent.mkdir(parents=True)
    uv.write_text('#!/bin/sh\necho "no route to the index" >&2\nexit 2\n')
    uv.chmod(0o755)
    script = (checkout / "lib/bootstrap.sh").read_text()
    functions = re.findall(r"^(?:say|fail)\(\)[^\n]*$|^by_uv\(\) \{$.*?^\}$", script, re.M | re.S)
    done = subprocess.run(["sh", "-c", "\n".join(["venv=.venv", *functions, "by_uv"])], cwd=checkout, text=True,
                          capture_output=True)
    assert done.returncode == 1 and "build/uv.log" in done.stderr and "going on with pip" in done.stderr
    assert (checkout / "build/uv.log").read_text() == "no route to the index\n"


def test_a_python_is_found_in_a_folder_with_a_space_in_its_name(checkout):
    python = checkout / "my python/python3"
    python.parent.mkdir()
    python.write_text('#!/bin/sh\n[ "$1" != -m ]\n')      # it has what is asked for, and makes no environment
    python.chmod(0o755)
    done = bootstrap(checkout, PYTHON=str(python))
    assert done.returncode == 1 and f"labbook: {python} could not make .venv" in done.stderr


def environment(checkout, library) -> None:
    """A .venv that is up to date, whose Python loads that library."""
    python = checkout / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\ncase "$2" in *labbook*) echo {library}/__init__.py;; esac\n')
    python.chmod(0o755)
    for name in ("pyproject.toml", "constraints.txt", "constraints-test.txt", "constraints-lab.txt", "lib/bootstrap.txt"):
        (checkout / name).write_text("")
    key = re.search(r"^key=\$\((.*)\)$", (checkout / "lib/bootstrap.sh").read_text(), re.M)[1]
    digest = subprocess.run(["sh", "-c", key], cwd=checkout, text=True, capture_output=True, check=True).stdout.strip()
    (checkout / ".venv/labbook.stamp").write_text(f"{digest} \n{(checkout / '.venv').resolve()}\n")


def test_one_that_is_up_to_date_is_left_alone(checkout):
    environment(checkout, checkout.resolve() / "lib/labbook")
    done = bootstrap(checkout, PYTHON="no-such-python")
    assert done.returncode == 0 and done.stderr == ""


PYTHON = """#!/bin/sh
case "$*" in
    *labbook*) echo {library}/__init__.py;;
    *" install "*) [ ! -e breaks ] || echo > .venv/other; echo "no route to the index" >&2; exit 1;;
    *" list "*) echo pip==1; [ ! -e .venv/other ] || echo other==1;;
    *" config list") case "$*" in *--quiet*) ;; *) echo ":env:.index-url='https://mirror.example/simple'";; esac;;
esac
"""


def changed_environment(checkout) -> None:
    """A .venv that works and is not up to date, in which nothing can be installed."""
    environment(checkout, checkout.resolve() / "lib/labbook")
    (checkout / ".venv/bin/python").write_text(PYTHON.format(library=checkout.resolve() / "lib/labbook"))
    (checkout / "pyproject.toml").write_text("another pin")


def test_one_that_cannot_be_brought_up_to_date_is_as_it_was(checkout):
    changed_environment(checkout)
    for _ in range(2):
        done = bootstrap(checkout, PYTHON="no-such-python")
        assert done.returncode == 1 and done.stderr.endswith("labbook: .venv is as it was\n")
    assert "no route to the index" in done.stderr and not (checkout / ".venv/labbook.making").exists()


def test_one_that_is_half_changed_is_made_again(checkout):
    changed_environment(checkout)
    (checkout / "breaks").touch()
    assert "as it was" not in bootstrap(checkout, PYTHON="no-such-python").stderr
    assert "no Python 3.11 or newer" in bootstrap(checkout, PYTHON="no-such-python").stderr


def test_an_index_of_the_users_own_is_seen(checkout):
    changed_environment(checkout)
    function = re.search(r"^own_index\(\) .*$", (checkout / "lib/bootstrap.sh").read_text(), re.M)[0]
    assert subprocess.run(["sh", "-c", f"venv=.venv pip='.venv/bin/python -m pip --quiet'\n{function}\nown_index"],
                          cwd=checkout).returncode == 0


def test_one_that_was_copied_is_made_again(checkout, tmp_path_factory):
    environment(checkout, checkout.resolve() / "lib/labbook")
    copy = tmp_path_factory.mktemp("copy") / "labbook"
    shutil.copytree(checkout, copy, symlinks=True)
    done = bootstrap(copy, PYTHON="no-such-python")
    assert done.returncode == 1 and "no Python 3.11 or newer among no-such-python" in done.stderr


def test_one_that_loads_another_checkouts_library_is_made_again(checkout, tmp_path):
    environment(checkout, tmp_path / "elsewhere/lib/labbook")
    done = bootstrap(checkout, PYTHON="no-such-python")
    assert done.returncode == 1 and "no Python 3.11 or newer" in done.stderr


def test_one_that_is_lent_by_a_link_stays(checkout, tmp_path):
    environment(checkout, tmp_path / "elsewhere/lib/labbook")
    (checkout / ".venv").rename(tmp_path / "lent")
    (checkout / ".venv").symlink_to(tmp_path / "lent")
    stamp = tmp_path / "lent/labbook.stamp"
    stamp.write_text(f"{stamp.read_text().split()[0]} \n{(tmp_path / 'lent').resolve()}\n")
    assert bootstrap(checkout, PYTHON="no-such-python").returncode == 0
