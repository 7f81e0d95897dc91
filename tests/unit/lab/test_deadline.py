"""What does not end is left behind, named, and the rest is done."""

import os
import re
import time

import pytest
import runners

from labbook.lab import deadline

LATER = 1e9     # of the monotonic clock
SLEEP = 60


def test_the_error_of_a_command_that_fails_has_its_output():
    assert deadline.run("cat", input="text") == "text"
    with pytest.raises(OSError, match="^sh -c echo no >&2; exit 3: no$"):
        deadline.run("sh", "-c", "echo no >&2; exit 3")


def test_a_command_whose_time_is_up_is_left_with_all_that_it_started(tmp_path):
    with pytest.raises(deadline.Overdue, match=r"^the long one: did not end within 0.2 s \(process \d+\)") as overdue:
        deadline.run("sh", "-c", f"sleep {SLEEP}; touch {tmp_path}/done", seconds=0.2, name="the long one")
    runners.await_end(int(re.search(r"process (\d+)", str(overdue.value))[1]))
    assert not (tmp_path / "done").exists()


def test_a_block_that_takes_too_long_says_where_it_was():
    with pytest.raises(deadline.Overdue, match="the work did not end within 0.1 s: it was in wait_long, test_deadline"):
        with deadline.limit(0.1, "the work"):
            wait_long()


def wait_long():
    time.sleep(SLEEP)


def test_each_is_tried_and_what_is_stuck_or_fails_is_named(tmp_path):
    def act(name):
        if name == "stuck":
            time.sleep(SLEEP)
        if name == "fails":
            raise OSError("not me")
        if name == "dies":
            os._exit(3)
        (tmp_path / name).touch()

    items = ["a", "stuck", "b", "fails", "dies", "c"]
    problems = dict(deadline.each(act, items, 1, LATER))
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b", "c"}
    assert problems.keys() == {"stuck", "fails", "dies"} and problems["fails"] == "not me"
    assert "did not end within 1 s (process " in problems["stuck"]
    assert "ended" in problems["dies"]


def test_nothing_is_begun_when_the_time_is_up(tmp_path):
    problems = deadline.each(lambda name: (tmp_path / name).touch(), ["a", "b"], 1, time.monotonic() - 1)
    assert [name for name, _ in problems] == ["a", "b"] and not list(tmp_path.iterdir())


def test_nothing_at_all_is_nothing_to_do():
    assert deadline.each(print, [], 1, LATER) == []
