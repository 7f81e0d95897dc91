"""What a run of a fleet asks its pool for."""

from types import SimpleNamespace

import pytest

from labbook.pipeline.executing import pages
from labbook.pipeline.fleet import plan
from labbook.pipeline.fleet.run import _Run
from labbook.pipeline.running.run import Options


@pytest.mark.parametrize("lab, point_s", [
    ("needs: {minutes: {full: 10}}\n", 30.0), ("sites: [a]\n", 60.0), (None, 60.0)])
def test_points_of_which_nothing_is_known_take_as_long_as_in_the_dry_run(book, lab, point_s):
    if lab:
        book.write("data/papers/wan/lab.yml", lab)
    point = {"key": "k", "setup": "u", "setup_s": None, "point_s": None, "machine": None}
    story = SimpleNamespace(total=20, experiments={"e": {"total": 1, "done": 0, "hand_out": {
        "read": True, "repeats": [{"repeat": 1, "points": [point]}]}}})
    submitted = []

    def submit(batch):
        submitted.append(batch)
        batch.done.set()
        return batch

    run = _Run({}, Options(profile="full"), None, "rack")
    run._pool = SimpleNamespace(measured={}, submit=submit)
    run.measure("wan", {}, {}, story, None)
    (batch,), (planned, _) = submitted, plan.unmeasured("wan", story, "full")
    assert batch.jobs == planned and batch.jobs[0].points[0].point_s == point_s


def test_a_study_that_another_run_measures_fails_alone(book, capsys):
    run = _Run({}, Options(profile="full"), None, "rack")
    with pages.only_me("wan"):
        run._study("wan", {}, SimpleNamespace(count=0))
    assert run._states == {"wan": pages.FAILED} and run._broken is None
    assert "wan: not started: wan is being run by another labbook" in capsys.readouterr().err
