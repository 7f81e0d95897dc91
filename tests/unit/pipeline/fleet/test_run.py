"""What a run of a fleet asks its pool for."""

from types import SimpleNamespace

import pytest

from labbook.pipeline.executing import pages
from labbook.pipeline.executing.driver import Outcome
from labbook.pipeline.fleet import plan, plans
from labbook.pipeline.executing.progress import beside
from labbook.pipeline.fleet.run import _note_progress, _Run
from labbook.pipeline.fleet.scheduler import Job, Machine, Point
from labbook.pipeline.running import asking, status
from labbook.pipeline.running.run import Options


@pytest.mark.parametrize("lab, point_s", [
    ("needs: {minutes: {full: 10}}\n", 30.0), ("sites: [a]\n", 60.0), (None, 60.0)])
def test_points_of_which_nothing_is_known_take_as_long_as_in_the_dry_run(book, lab, point_s):
    book.study("wan", full="{}")
    if lab:
        book.write("data/papers/wan/lab.yml", lab)
    point = {"key": "k", "setup": "u", "setup_s": None, "point_s": None, "guessed": False, "machine": None}
    story = SimpleNamespace(total=20, experiments={"e": {"total": 1, "done": 0, "hand_out": {
        "read": True, "repeats": [{"repeat": 1, "points": [point]}]}}})
    submitted = []

    def submit(batch):
        submitted.append(batch)
        batch.done.set()
        return batch

    run = _Run({}, Options(profile="full"), None, "rack")
    run._pool = SimpleNamespace(measured={}, submit=submit)
    assert run.measure("wan", {}, {}, story, None, book.root / ".wan.partial.ipynb") == 0
    (batch,), (planned, _) = submitted, plan.unmeasured("wan", story, "full", {})
    assert batch.jobs == planned and batch.jobs[0].points[0].point_s == point_s


@pytest.mark.parametrize("chosen, lab, expected", [
    (None, "needs: {minutes: {full: 10}}\n", (0.0, 30.0)), ({}, "needs: {minutes: {full: 10}}\n", (0.0, 30.0)),
    (None, None, (5.0, 2.0)), ({"clients": 9}, "needs: {minutes: {full: 10}}\n", (5.0, 2.0))])
def test_the_minutes_of_a_profile_count_more_than_points_of_other_parameters(book, chosen, lab, expected):
    """The full profile of a study that was published by shorter points took a third of its time in the plan."""
    book.study("wan", full="{}")
    if lab:
        book.write("data/papers/wan/lab.yml", lab)
    point = {"key": "k", "setup": "u", "setup_s": 5.0, "point_s": 2.0, "guessed": True, "machine": None}
    story = SimpleNamespace(total=20, experiments={"e": {"total": 1, "done": 0, "hand_out": {
        "read": True, "repeats": [{"repeat": 1, "points": [point]}]}}})
    (job,), _ = plans.of_profile("wan", story, "full", chosen)
    assert (job.points[0].setup_s, job.points[0].point_s) == expected


@pytest.mark.parametrize("came, state, ends", [
    ((), pages.OK, pages.FAILED), ((), pages.PAUSED, pages.FAILED), (("k",), pages.OK, pages.OK),
    (("k",), pages.PAUSED, pages.PAUSED), ((), pages.INTERRUPTED, pages.INTERRUPTED)])
def test_a_study_has_failed_where_a_job_did_of_which_a_point_is_missing(came, state, ends):
    """Once the time was up it had ended as done: the driver tries no point itself, and so saw no failure."""
    run = _Run({}, Options(profile="full"), None, "rack")
    run._pool = SimpleNamespace(measured={"wan": dict.fromkeys(came, "e")})
    run._failed = {"wan": [(Job("wan", "e", 2, (Point("k", "u", 0.0, 1.0),)), "1 point failed\nit said no")]}
    outcome = run._with_failures("wan", Outcome(state))
    assert outcome.state == ends
    if ends == pages.FAILED:
        assert outcome.message() == "wan: e repeat 2: 1 point failed: it said no"
    assert run._with_failures("cms", Outcome(state)).state == state


def test_a_study_that_another_run_measures_fails_alone(book, capsys):
    run = _Run({}, Options(profile="full"), None, "rack")
    with pages.only_me("wan"):
        run._study("wan", {}, SimpleNamespace(count=0))
    assert run._states == {"wan": pages.FAILED} and run._broken is None
    assert "wan: not started: wan is being run by another labbook" in capsys.readouterr().err


def test_what_machines_measure_is_seen_by_status_and_noted_after_a_kill(book):
    """There was no progress file meanwhile: a run of hours looked as if it had just begun, and a kill left no trace."""
    book.study("wan", "1")
    story = SimpleNamespace(board={}, experiments={"e": {"done": 1, "total": 4}, "f": {"done": 0, "total": 2}})
    with pages.only_me("wan") as partial:
        _note_progress(beside(partial), 100.0, "full", story, ["e", "f", "e"])
        row, = status.rows()
        assert (row["state"], row["profile"], row["points"]["done"], row["points"]["total"]) == ("running", "full", 4, 6)
    with pages.only_me("wan"):
        pass        # the next run notes what a killed one left
    row, = status.rows()
    assert (row["state"], row["points"]["done"]) == (pages.KILLED, 4)


@pytest.fixture
def run_of_three():
    """Three studies on four machines, of which one is lost and one is for one study."""
    machines = [SimpleNamespace(name=name, studies=("wan",) if name == "d" else None) for name in "abcd"]
    run = _Run(dict.fromkeys(("wan", "cms", "ceph")), Options(), SimpleNamespace(machines=machines), None)
    run._pool = SimpleNamespace(scheduler=SimpleNamespace(machines={
        name: Machine(name, f"id-{name}", lost=name == "c") for name in "abcd"}))
    return run


def test_a_study_plans_for_its_share_of_the_machines(run_of_three):
    """Each of several had planned for all of them."""
    assert run_of_three.workers("wan") == pytest.approx(2 / 3 + 1)
    assert run_of_three.workers("cms") == 1.0, "one at least"
    run_of_three._states = {"ceph": pages.OK, "cms": pages.OK}
    assert run_of_three.workers("wan") == 3


@pytest.mark.parametrize("seconds, is_limited", [(None, False), (500, True)])
def test_where_lab_yml_limits_the_time_the_first_repeats_go_first(run_of_three, monkeypatch, seconds, is_limited):
    monkeypatch.setattr(asking, "question", lambda study, options: asking.Question(study, "headline", seconds))
    assert run_of_three._is_limited == is_limited
