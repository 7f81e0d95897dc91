import fcntl
import json
import time

import pytest

from labbook.errors import LabbookError
from labbook.pipeline.executing import pages, progress
from labbook.pipeline.running import status
from labbook.pipeline.sources import keys

NOTE = {"state": "ok", "profile": "quick", "parameters": {}, "published": False, "seconds": 200,
        "started": "2026-01-02T03:04:05+00:00", "points": {"done": 4, "total": 4}}


def put(book, study, **note):
    page = book.write(f"build/pages/.{study}.partial.ipynb", "{}")
    pages.accept(study, page, {**NOTE, "study": study, "key": keys.page_key(study, {}), **note})


def states():
    return {row["study"]: row["state"] for row in status.rows()}


def test_states_of_pages(book):
    for study in ("a", "b", "c", "d", "e"):
        book.study(study, "1")
    put(book, "a")
    put(book, "b", state="failed", error={"name": "E", "message": "m", "log": "l"})
    put(book, "c")
    put(book, "d", stopped={"state": "paused", "points": {"done": 1, "total": 4}})
    book.write("data/papers/c/full.yml", "repeats: 99\n")
    assert states() == {"a": "ok", "b": "failed", "c": "out of date", "d": "paused",
                        "e": "never run"}


def test_a_run_that_goes_on_is_reported_with_how_far_it_is(book):
    book.study("a", "1")
    put(book, "a", state="failed", error={"name": "E", "message": "m", "log": "l"})
    with pages.only_me("a") as partial:
        progress.beside(partial).write_text("".join(json.dumps(event) + "\n" for event in (
            {"event": "begin", "at_s": time.time() - 100, "profile": "full"},
            {"event": "done", "experiment": "x", "done": 3, "total": 9, "seconds": 10})))
        row, = status.rows()
        with pytest.raises(LabbookError, match="another labbook"), pages.only_me("a"):
            pass
    assert (row["state"], row["profile"], row["error"]) == ("running", "full", None)
    assert row["points"] == {"done": 3, "total": 9, "measured": 1, "failed": 0} and 100 <= row["seconds"] < 130
    assert row["seconds_left"] == 60
    assert "3/9" in status.table([row]) and ", about 1 min left" in status.table([row])
    assert states() == {"a": "killed"}      # the lock is free and nobody removed the progress file


def killed_after_seven_points(book, study, **begin):
    progress.beside(pages.partial(study)).write_text("".join(json.dumps(event) + "\n" for event in (
        {"event": "begin", "at_s": time.time() - 100, "profile": "full", **begin},
        {"event": "done", "experiment": "x", "done": 7, "total": 24, "seconds": 10})))


def test_a_killed_run_is_reported_with_how_far_it_came_until_another_one_ends(book):
    book.study("a", "1")
    put(book, "a")
    killed_after_seven_points(book, "a")
    for _ in "before", "after another run has cleared it away":
        row, = status.rows()
        assert row["state"] == "killed" and "killed after 7 of 24 points" in status.table([row])
        assert not pages.is_current("a", keys.page_key("a", {}))
        with pages.only_me("a") as partial:
            assert not progress.beside(partial).exists()
    put(book, "a")
    assert states() == {"a": "ok"}


def test_of_a_run_that_did_not_finish_nothing_is_of_an_earlier_one(book):
    """An earlier run's error, profile, claims and lab time had stood beside the later run's points."""
    book.study("a", "1")
    earlier = {"state": "failed", "error": {"name": "E", "message": "m", "log": "l"}, "profile": "quick",
               "board": {"decided": 2, "asked": 3}, "lab_time": {"points_s": 90.0, "set_up_s": 9.0}}
    put(book, "a", **earlier)
    killed_after_seven_points(book, "a")
    row, = status.rows()
    assert (row["state"], row["profile"], row["error"], row["board"]) == ("killed", "full", None, None)
    assert row["lab_time"] == {"points_s": 10.0, "set_up_s": 0.0}
    put(book, "a", **earlier, stopped={"state": "paused", "points": {"done": 1, "total": 4}})   # by an earlier version
    progress.beside(pages.partial("a")).unlink()
    row, = status.rows()
    assert [row[name] for name in ("state", "profile", "error", "board", "lab_time")] == ["paused", None, None, None, None]


def test_the_time_of_an_ask_is_that_since_its_first_round(book):
    book.study("a", "1")
    put(book, "a")
    with pages.only_me("a") as partial:
        progress.beside(partial).write_text(json.dumps(
            {"event": "begin", "at_s": time.time() - 8, "since": time.time() - 3600, "profile": "quick"}) + "\n")
        row, = status.rows()
    assert 3600 <= row["seconds"] < 3630
    killed_after_seven_points(book, "a", since=time.time() - 900)
    row, = status.rows()
    assert row["seconds"] >= 899


def test_a_killed_dry_run_is_no_run(book):
    book.study("a", "1")
    put(book, "a")
    killed_after_seven_points(book, "a", plan=True)
    assert states() == {"a": "ok"}


def test_whether_a_run_is_under_way_can_be_asked_while_another_begins(book, monkeypatch):
    book.study("a", "1")
    with pages.only_me("a"):
        pass
    looking = open(pages.page("a").with_name(".a.lock"))
    fcntl.flock(looking, fcntl.LOCK_EX)
    monkeypatch.setattr(time, "sleep", lambda _: looking.close())
    with pages.only_me("a"):
        assert pages.is_running("a")


def test_a_study_whose_parameters_can_no_longer_be_read_is_out_of_date(book):
    notebook = book.study("a", "1")
    put(book, "a")
    notebook.write_text(notebook.read_text().replace("repeats = 2", "repeats = len([])"))
    assert states() == {"a": "out of date"}


def test_the_table_and_the_file(book):
    book.study("a", "1")
    put(book, "a")
    assert "4/4" in status.table(status.write())
    assert "3 min 20 s" in status.table(status.rows())
    assert json.loads((book.root / "build/status.json").read_text())[0]["study"] == "a"


def test_a_story_is_read_on_from_where_it_stopped_and_never_half_a_line(tmp_path):
    file = tmp_path / "progress"
    story = progress.RunState(file)
    assert not story.read_on()
    file.write_text('{"event": "plan", "experiment": "x", "done": 1, "total": 4}\n{"event": "do')
    assert story.read_on() and (story.done, story.total) == (1, 4)
    assert story.seconds_left() is None
    with file.open("a") as more:
        more.write('ne", "experiment": "x", "done": 2, "total": 4, "seconds": 10}\n'
                   '{"event": "failed", "experiment": "x", "done": 2, "total": 4, "seconds": 20}\n'
                   '{"event": "complete"}\n')
    story.read_on()
    assert (story.done, story.measured, story.failed, story.complete) == (2, 1, 1, True)
    assert story.seconds_left() == 20, "two points are left; one that fails at once does not make them shorter"


def test_a_point_that_failed_and_then_succeeded_is_no_failed_point(book):
    story = run_state(book, *({"event": event, "experiment": "x", "point": f"x: repeat {repeat}", "seconds": 1}
                              for event, repeat in (("failed", 1), ("failed", 2), ("failed", 2), ("done", 1))))
    assert story.failed == 1 and len(story.failures) == 3 and story.seconds_of_point("x") == 1


def test_durations_in_and_out():
    assert [progress.parse_duration(t) for t in ("40m", "1h30m", "90s")] == [2400, 5400, 90]
    for wrong in ("", "40", "m", "1d"):
        try:
            progress.parse_duration(wrong)
        except ValueError:
            continue
        raise AssertionError(wrong)
    assert [progress.duration(s) for s in (42, 60, 200, 3600 * 4 + 300)] == [
        "42 s", "1 min", "3 min 20 s", "4 h 05 min"]


class Terminal:
    def __init__(self):
        self.printed = ""

    def isatty(self):
        return True

    def write(self, text):
        self.printed += text

    def flush(self):
        pass


def test_a_bar_on_a_terminal_tells_points_and_time_left_and_fits_the_line(tmp_path, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    story = progress.RunState(tmp_path / "none")
    story.experiments = {"x": {"done": 2, "total": 4}}
    story.measured, story._took = 2, {"x": [2, 120]}
    terminal = Terminal()
    bar = progress.Bar("cms", terminal)
    assert "2/4 points" in bar.line(story) and "about 2 min left" in bar.line(story)
    bar.show(story)
    assert len(terminal.printed.replace("\r\033[K", "")) <= 59


def test_without_a_terminal_there_is_a_line_at_the_start_one_a_minute_and_one_at_the_end(
        tmp_path, capsys, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    story, bar = progress.RunState(tmp_path / "none"), progress.Bar("cms")
    story.experiments = {"x": {"done": 2, "total": 4}}
    for _ in range(70):
        bar.show(story)
        now[0] += 1
    bar.end("done")
    assert capsys.readouterr().err == (
        "cms: started\ncms  2/4 points  1 min\ncms: done (1 min 10 s)\n")


def test_the_first_failure_of_each_kind_is_reported_at_once(tmp_path, capsys):
    story, bar = progress.RunState(tmp_path / "none"), progress.Bar("cms")
    for failure in (("a=1", "TypeError: no"), ("a=2", "TypeError: no"), ("a=3", "LabError: gone")):
        story.failures.append(failure)
        bar.show(story)
    assert capsys.readouterr().err == (
        "cms: started\ncms: a=1 failed: TypeError: no\ncms: a=3 failed: LabError: gone\n")
    story.failures += [("b", f"ValueError: {number}") for number in range(20)]
    bar.end("failed", story)
    assert len(capsys.readouterr().err.splitlines()) == progress.REASONS - 2 + 1


def run_state(book, *events):
    file = book.write("build/pages/.a.progress", "".join(json.dumps(event) + "\n" for event in events))
    story = progress.RunState(file)
    story.read_on()
    return story


def test_totals_that_are_known_before_are_shown_from_the_start(book):
    known = {"experiments": {"x": {"done": 1, "total": 5, "seconds_before": 10.0},
                             "y": {"done": 0, "total": 10, "seconds_before": None}}, "point_s": 2.0}
    begin = {"event": "begin", "at_s": time.time(), "totals": known}
    story = run_state(book, begin)
    assert (story.done, story.total, story.seconds_left()) == (1, 15, 4 * 10 + 10 * 2)
    story = run_state(book, begin, {"event": "done", "experiment": "x", "done": 2, "total": 5, "seconds": 30})
    assert (story.done, story.total) == (2, 15)
    assert story.seconds_left() == 3 * 10 + 10 * 30, "one point, which had the set-up, says nothing about x yet"


def test_what_a_plan_found_is_known_before_the_first_point(book):
    story = run_state(book, {"event": "begin", "at_s": time.time()},
                      {"event": "plan", "experiment": "x", "done": 2, "total": 4, "seconds": 12.0})
    assert story.seconds_left() == 12


@pytest.mark.parametrize("since, left", [(0, 1440), (180, 1260), (9000, 960), (-60, 1440)])
def test_what_the_point_under_way_has_taken_is_not_left(book, since, left):
    """Of points of eight minutes "about 24 min left" had stood still for eight minutes."""
    plan = {"event": "plan", "experiment": "x", "done": 0, "total": 3, "seconds": 1440.0}
    start = {"event": "start", "experiment": "x", "done": 0, "total": 3, "time": time.time() - since}
    story = run_state(book, {"event": "begin", "at_s": time.time()}, plan, start)
    assert story.seconds_left() == pytest.approx(left, abs=5)
    ended = {"event": "done", "experiment": "x", "done": 1, "total": 3, "seconds": 480}
    story = run_state(book, {"event": "begin", "at_s": time.time()}, plan, start, ended)
    assert story.seconds_left() == 960


def test_one_point_corrects_an_estimate_from_points_of_other_parameters(book):
    """A run of points of 10 minutes had shown two minutes until its fifth."""
    plan = {"event": "plan", "experiment": "x", "done": 0, "total": 4, "seconds": 12.0, "guessed": True}
    first = {"event": "done", "experiment": "x", "done": 1, "total": 4, "seconds": 600}
    begin = {"event": "begin", "at_s": time.time()}
    assert run_state(book, begin, plan).seconds_left() == 12
    assert run_state(book, begin, plan, first).seconds_left() == 1800
    assert run_state(book, begin, plan | {"guessed": False}, first).seconds_left() == 9


def test_of_a_run_that_is_under_way_nothing_is_of_the_run_before(book):
    book.study("a", "1")
    put(book, "a", lab_time={"points_s": 90.0, "set_up_s": 9.0})
    with pages.only_me("a"):
        row, = status.rows()
    assert (row["state"], row["lab_time"], row["why"]) == ("running", {"points_s": 0.0, "set_up_s": 0.0}, [])


def test_who_looks_whether_a_study_runs_is_no_run_to_others_who_look(book):
    book.study("a", "1")
    with pages.only_me("a"):
        pass        # its lock is there
    with pages.unless_running("a") as first, pages.unless_running("a") as second:
        assert (first, second) == (True, True)
        with pytest.raises(pages.Busy), pages.only_me("a"):
            pass


def test_a_page_that_is_out_of_date_says_why(book):
    for study in "ab":
        book.study(study, "1")
        put(book, study, parts=keys.parts(study, {}))
    book.write("data/papers/a/full.yml", "repeats: 99\n")
    book.write("../records/here/a/x/1.parquet", "more")
    rows = {row["study"]: row for row in status.rows()}
    assert status.state_words(rows["a"]) == "out of date: the paper's data, records changed"
    assert (rows["b"]["state"], rows["b"]["why"]) == ("ok", [])
    book.study("b", "2")
    assert status.state_words(status.rows()[1]) == "out of date: the notebook changed"


def test_how_much_of_the_labs_time_was_measuring_is_reported():
    row = {"lab_time": {"points_s": 200.0, "set_up_s": 50.0}}
    assert status.lab_time_words(row) == (
        "measuring took 2 min 30 s of the lab's 3 min 20 s (75%), set-ups the rest")
    assert status.lab_time_words({"lab_time": {"points_s": 0.0, "set_up_s": 0.0}}) is None
    assert status.lab_time_words({}) is None
