"""Who measures what, in lines for a user."""

import io
import os
from types import SimpleNamespace

from labbook.pipeline.fleet import shown
from labbook.pipeline.fleet.scheduler import Job, Point, Scheduler


def pool():
    of = Scheduler()
    of.add([Job("s", "e", repeat, (Point(f"p{repeat}", "u", 0.0, 60.0),)) for repeat in (1, 2, 3)])
    for name in ("a", "b", "c"):
        of.join(name, name)
    of.next("a")
    of.put_aside("c", "its disk is full")
    of.lose("b")
    answer = {"done": 2, "total": 5, "left_s": 90.0}
    return SimpleNamespace(scheduler=of, talks={
        name: SimpleNamespace(status=answer if name == "a" else {}) for name in "abc"})


def test_each_machine_has_a_line():
    assert shown.machines(pool()) == ["a: s: e repeat 1, 2 of 5 points, about 1 min 30 s", "b: lost",
                                      "c: set aside: its disk is full"]


def test_the_state_is_one_line_with_the_time_left():
    assert shown.state(pool(), 60.0).startswith("1 of 3 machines measure, 1 lost, 1 set aside  2 jobs wait  about 1 min left")


def test_without_a_machine_no_time_is_reported():
    of = pool()
    of.scheduler.lose("a")
    assert shown.state(of, shown.left_s(of)) == "0 of 3 machines measure, 2 lost, 1 set aside  3 jobs wait"


def test_a_reader_of_stderr_that_ends_is_no_error(monkeypatch):
    there, here = os.pipe()
    with open(here, "w") as stream:
        monkeypatch.setattr("sys.stderr", stream)
        display = shown.Shown()
        os.close(there)
        display.say("m1 is lost")
        display.say("m2 is lost")


def test_programs_get_the_same():
    assert [(row["machine"], row["state"], row["done"]) for row in shown.rows(pool())] == [
        ("a", "measures", 2), ("b", "lost", None), ("c", "aside", None)]


def test_where_there_is_no_terminal_a_state_is_shown_once_a_minute():
    now, stream = [0.0], io.StringIO()
    one = shown.Shown(stream, lambda: now[0])
    for now[0] in (1.0, 61.0, 62.0):
        one.show(pool())
    assert stream.getvalue().count("machines measure") == 1


def test_what_is_left_is_simulated_once_in_some_seconds_for_all_who_show_it(monkeypatch):
    now, simulated = [0.0], []
    monkeypatch.setattr(shown, "simulate", lambda *_, **__: simulated.append(now[0]) or SimpleNamespace(seconds=60.0))
    one = shown.Shown(io.StringIO(), lambda: now[0])
    for now[0] in (0.0, 0.5, 1.0, 2.0, 4.0, 61.0, 61.5):
        one.show(pool())
        assert one.left_s(pool()) == 60.0
    assert simulated == [0.0, 61.0]
