"""Labs that have cores for themselves, and all labs taken down, beside no others: run by test_cores.py, in a mount
namespace where /run/labbook is empty. Its argument is a folder for the hosts' folders."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from small_labs import describe, new_id

from labbook.errors import LabError
from labbook.lab import Environment, Lab
from labbook.lab.local.cores import SHARE

# Other labs are not seen from here, and take addresses from the lower half of the usual range.
HERE = Environment("local", state=sys.argv[1], range="198.19.0.0/16")
ALL = sorted(os.sched_getaffinity(0))


def up(count, lab_id=None):
    return Lab.up(describe({"h1": {"cores": count}, "h2": {}}), HERE, lab_id or new_id())


def refusal(count) -> str:
    lab_id = new_id()
    try:
        up(count, lab_id).down()
    except LabError as error:
        assert not Path("/run/labbook", lab_id).exists() and not Path(HERE.state, lab_id).exists()
        return str(error)
    raise AssertionError(f"{count} cores were given")


def own(lab):
    return set(lab.host("h1").cores)


def two_have_cores_of_their_own_and_a_third_is_told_who_has_them():
    first, second = up(len(ALL) - 1), up(1)
    with second:
        with first:
            assert own(first) | own(second) == set(ALL) and not own(first) & own(second)
            assert first.facts()["shared_cores"] == second.facts()["shared_cores"] == []
            assert first.host("h2").run("nproc").stdout == f"{len(ALL)}\n"     # as ever
            message = refusal(1)
            assert first.id in message and second.id in message and f"wait for its process {os.getpid()}" in message
        with up(1) as third:
            assert own(third) < own(first) or own(third) == own(first)


def labs_share_only_if_both_may():
    with up(len(ALL)) as alone:
        os.environ[SHARE] = "1"
        assert alone.id in refusal(1)
    with up(len(ALL)) as first, up(1) as second:
        assert first.facts()["shared_cores"] == ALL and second.facts()["shared_cores"] == sorted(own(second))
        del os.environ[SHARE]
        assert first.id in refusal(1)


def a_killed_lab_has_its_cores_until_it_is_swept():
    lab_id = new_id()
    child = subprocess.run([sys.executable, __file__, HERE.state, "and die", lab_id])
    assert child.returncode == -signal.SIGKILL
    assert f"its process has ended: `labbook down {lab_id}` frees it" in refusal(len(ALL))
    assert list(Lab.sweep()) == [lab_id]
    up(len(ALL)).down()


def all_that_nobody_uses_goes_down():
    with Lab.up(describe({"h1": {}}), HERE, new_id()) as used:
        kept = Lab.up(describe({"h1": {}}), HERE, new_id(), keep=True)
        assert list(Lab.sweep()) == []
        done = subprocess.run([sys.executable, "-m", "labbook.cli", "down", "--all"], capture_output=True, text=True)
        assert done.returncode == 1 and done.stdout == f"lab {kept.id} is down\n", done.stderr
        assert f"lab {used.id} (" in done.stderr and "is in use and stays up" in done.stderr
        assert [lab.id for lab in Lab.list()] == [used.id] and used.host("h1").run("echo up").stdout == "up\n"
        assert not Path("/run/labbook", kept.id).exists()


if sys.argv[2:]:
    up(1, sys.argv[3])
    os.kill(os.getpid(), signal.SIGKILL)
try:
    two_have_cores_of_their_own_and_a_third_is_told_who_has_them()
    labs_share_only_if_both_may()
    a_killed_lab_has_its_cores_until_it_is_swept()
    all_that_nobody_uses_goes_down()
finally:
    Lab.sweep(everything=True)
