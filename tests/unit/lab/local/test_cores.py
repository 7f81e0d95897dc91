"""Which cores a lab gets for itself, and the message when none is left."""

import os

import pytest

from labbook.lab import kernel
from labbook.lab.local import cores


def other(lab, *has, share=False, **more):
    return {"lab": lab, "study": "demo", "uid": 0, "pid": os.getpid(), "cores": list(has),
            "share_cores": share, "keep": False, **more}


def test_cores_of_other_labs_are_not_given():
    assert cores.choose(2, [], False, range(4)) == [0, 1]
    assert cores.choose(2, [other("x", 0, 2)], False, range(4)) == [1, 3]
    assert cores.choose(0, [other("x", 0, 1)], False, range(2)) == []


@pytest.mark.parametrize("siblings, count, held, given", [
    (((0, 1), (2, 3)), 2, [], [0, 2]), (((0, 2), (1, 3)), 2, [], [0, 1]), (((0, 1), (2, 3)), 3, [], [0, 1, 2]),
    (((0, 1), (2, 3)), 1, [0], [2]), (((0, 1), (2, 3)), 2, [0], [1, 2])])
def test_threads_of_one_core_are_given_out_last(monkeypatch, siblings, count, held, given):
    """A client and its server had been two threads of one core."""
    monkeypatch.setattr(cores, "threads", lambda cpu: next({*pair} for pair in siblings if cpu in pair))
    assert cores.choose(count, [other("x", *held)], False, range(4)) == given


@pytest.mark.parametrize("text, found", [("3\n", {3}), ("0-1\n", {0, 1}), ("0,4\n", {0, 4}), ("0-1,8-9\n", {0, 1, 8, 9})])
def test_threads_of_a_core_are_read_from_the_kernel(tmp_path, text, found):
    (tmp_path / "cpu3/topology").mkdir(parents=True)
    (tmp_path / "cpu3/topology/thread_siblings_list").write_text(text)
    assert cores.threads(3, tmp_path) == found and cores.threads(7, tmp_path) == {7}
    assert 0 in cores.threads(0)


def test_a_lab_that_finds_none_left_is_told_who_has_them_and_what_to_do():
    with pytest.raises(ValueError) as error:
        cores.choose(2, [other("x", 0)], False, range(2))
    assert "asks for 2 cores of its own, and only core 1 is free" in str(error.value)
    assert "lab x (demo) of user root has core 0" in str(error.value)
    assert f"wait for its process {os.getpid()}" in str(error.value) and cores.SHARE in str(error.value)
    for more, remedy in (({"keep": True}, "stays up until `labbook down x`"),
                         ({"pid": 2**30}, "its process has ended: `labbook down x` frees it")):
        with pytest.raises(ValueError, match=remedy):
            cores.choose(1, [other("x", 0, 1, **more)], False, range(2))


def test_more_than_the_machine_has_is_another_matter():
    with pytest.raises(ValueError, match="ask for 3 cores, this machine has 2"):
        cores.choose(3, [], True, range(2))


def test_labs_share_only_if_both_may():
    held = [other("x", 0, share=True), other("y", 1)]
    assert cores.choose(1, held, True, range(2)) == [0]
    with pytest.raises(ValueError, match="lab x .*; lab y"):
        cores.choose(1, held, False, range(2))
    with pytest.raises(ValueError, match="only core 0 is free: lab y"):
        cores.choose(2, held, True, range(2))


def test_of_shared_cores_the_least_used_come_first():
    held = [other("x", 0, 1, share=True), other("y", 1, 2, share=True)]
    assert cores.choose(2, held, True, range(4)) == [0, 3]
    assert kernel.start_time(os.getpid())
