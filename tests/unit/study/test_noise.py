"""The reference loop: how fast the machine was, before and after a point."""

import pytest

from labbook.study import noise
from labbook.study.records import provenance


def test_the_reference_loop_is_the_shortest_of_several(monkeypatch):
    """The others were interrupted by what else ran."""
    took = iter([0.03, 0.02, *[0.05] * (noise.LOOPS - 2)])
    monkeypatch.setattr(noise, "_loop_s", took.__next__)
    assert noise.reference_loop() == pytest.approx(20)
    assert list(took) == []


def test_a_points_reference_loops_are_those_after_its_set_up_and_in_the_end(make, monkeypatch):
    """A first one, as the point begins, is of the time before its set-up."""
    study, speed = make(setup={"system": ["a"]}, vary={"clients": [1]})
    point, = speed.points()
    monkeypatch.setattr(noise, "reference_loop", iter([10.0, 20.0, 25.0]).__next__)
    with study.attempt(point) as attempt:
        attempt.setup(lambda lab: "a server")
        attempt.record(metrics={"rate_per_s": 5})
    found = study.records("speed").meta(point.key)["provenance"]["during"]["reference_loop"]
    assert found == {"before_ms": 20, "after_ms": 25, "off": pytest.approx(0.25)}


def test_a_machine_that_became_faster_is_off_as_well(monkeypatch):
    monkeypatch.setattr(noise, "reference_loop", iter([25.0, 20.0]).__next__)
    found = provenance.during(provenance.before())["reference_loop"]
    assert found == {"before_ms": 25, "after_ms": 20, "off": pytest.approx(0.25)}
