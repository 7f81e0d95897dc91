"""Published summaries give the same figures and verdicts without a lab."""

import json

import pandas as pd
import pytest

from labbook.errors import InputError
from labbook.pipeline import publish
from labbook.study.fingerprint import Fingerprint


@pytest.fixture
def full(make, measure, monkeypatch):
    """A complete full run, and beside it points of another profile."""
    monkeypatch.setenv("LABBOOK_PROFILE", "quick")
    study, speed = make()
    measure(study, speed)
    study.complete()
    monkeypatch.setenv("LABBOOK_PROFILE", "full")
    study, speed = make(repeats=3, setup={"system": ["a", "b"]}, vary={"clients": [2, 70]})
    measure(study, speed, lambda p: 0.02 if p.system == "a" else 0.01,
            metrics={"over": [1.5, 2]}, facts={"version": "1"})
    study.complete()
    return study, speed


def test_published_and_fresh_summaries_agree(full, make, measure, labs, root, monkeypatch):
    study, speed = full
    fresh, verdict = speed.summary(), study.judge("slower")
    file, about = publish.export(study)
    assert file == root / "data/published/demo/speed.parquet" and file.stat().st_size < 30_000
    monkeypatch.setenv("LABBOOK_PUBLISHED", "1")
    monkeypatch.setenv("LABBOOK_RECORDS", "/nonexistent")
    study, speed = make()   # the notebook's own parameters do not matter
    before = len(labs.made)
    assert measure(study, speed) == []
    study.complete()
    now = speed.summary()
    assert [list(v) for v in now.pop("over").dropna()] == list(fresh.pop("over").dropna())
    pd.testing.assert_frame_equal(now, fresh, check_dtype=False)
    again = study.judge("slower")
    assert (again.measured, again.low, again.high) == (verdict.measured, verdict.low, verdict.high)
    assert again.profile == "full" and again.conditions == verdict.conditions
    assert len(labs.made) == before


def test_published_summaries_are_stale_when_the_code_has_changed_until_carried_over(
        full, make, root, monkeypatch):
    publish.export(full[0])
    monkeypatch.setenv("LABBOOK_PUBLISHED", "1")
    study, speed = make()
    assert not speed.summary()["stale"].any() and "stale_because" not in study.conditions()
    today = Fingerprint("new", study.fingerprint.versions)
    monkeypatch.setattr("labbook.study.study.fingerprint", lambda name: today)
    study, speed = make()
    assert speed.summary()["stale"].all() and study.conditions()["stale_because"] == ["code"]
    file, = publish.carry_over("demo", "moved, not changed")
    assert json.loads(file.read_text()) == {
        "code": "new", "versions": today.versions, "why": "moved, not changed"}
    study, speed = make()
    assert not speed.summary()["stale"].any() and study.conditions()["stale"] == 0
    file.unlink()
    assert speed.summary()["stale"].all(), "nothing says for which code they stand"
    with pytest.raises(InputError, match="no study 'other'"):
        publish.carry_over("other", "why")


def test_only_what_the_profile_stood_on_is_published(full):
    frame = pd.read_parquet(publish.export(full[0])[0])
    assert len(frame) == 12 and set(frame["clients"]) == {2, 70}
    assert frame["facts"].str.contains("version").sum() == 12 - 2, "two points are of the quick run"
    frame = pd.read_parquet(publish.export(full[0], "quick")[0])
    assert set(frame["clients"]) == {1, 2}


def test_nothing_to_publish_is_said(make, measure):
    study, speed = make()
    with pytest.raises(InputError, match="no complete run"):
        publish.export(study)
    measure(study, speed)
    study.complete()
    study.records("speed").path(speed.points()[0].key).unlink()
    with pytest.raises(InputError, match="1 of its 4 points"):
        publish.export(study, "quick")


def test_nothing_published_is_said(make, monkeypatch):
    monkeypatch.setenv("LABBOOK_PUBLISHED", "1")
    _, speed = make()
    with pytest.raises(InputError, match="nothing is published"):
        speed.summary()


def test_an_experiment_that_was_left_out_is_published_as_such(make, measure, monkeypatch):
    study, speed = make(repeats=0)
    study.complete()
    publish.export(study, "quick")
    monkeypatch.setenv("LABBOOK_PUBLISHED", "1")
    study, speed = make()
    assert not len(speed.summary()) and study.conditions(speed) == {}
    assert study.judge("slower").reason == "nothing was measured"
