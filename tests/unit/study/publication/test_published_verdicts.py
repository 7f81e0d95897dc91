"""Verdicts on published sets are by the points of one kind of machine, and by today's rules."""

import json

import pytest
from published_stand_ins import HERE, OTHER

from labbook.claims import rules
from labbook.pipeline.publishing import outcomes, publish
from labbook.study.publication import published_verdicts
from labbook.study.records.fingerprint import Fingerprint


def test_a_page_of_several_sets_has_the_verdict_of_one_set_alone(two_sets, make, monkeypatch):
    """Of the first that decides; each is by the points of one machine, though the page draws points of both."""
    monkeypatch.setenv("LABBOOK_PUBLISHED", "1")
    study, speed = make()
    assert len(speed.summary()) == 14
    sets = published_verdicts.by_machine("demo")
    judged = study.judge("slower")
    alone = sets[HERE]["slower"]
    assert {name: value for name, value in vars(judged).items() if name in alone} == alone
    assert judged.n == 3, "not of the other machine's repeats, too"
    sets[OTHER]["slower"] |= {"verdict": rules.REPLICATED, "n": 6, "reason": "six repeats"}
    monkeypatch.setattr(published_verdicts, "by_machine", lambda study: sets)
    judged = make()[0].judge("slower")
    assert judged.verdict == rules.REPLICATED and judged.run == "published"
    assert judged.reason == f"six repeats; measured on {published_verdicts.words('demo', OTHER)}"
    row, = outcomes.of_study("demo")
    assert row["machines"] == {HERE: rules.OPEN, OTHER: rules.REPLICATED}, "and no third one"
    sets[OTHER]["slower"] |= {"verdict": rules.NOT_TESTABLE, "n": 0}
    sets[HERE]["slower"] |= {"verdict": rules.NOT_RUN, "n": 0}
    assert make()[0].judge("slower").verdict == rules.NOT_TESTABLE


def test_verdicts_on_a_set_are_judged_anew_when_a_rule_has_changed(full, root):
    publish.export(full[0])
    file = published_verdicts.claims_path("demo", HERE)
    before, text = published_verdicts.verdicts("demo", HERE)[0], file.read_text()
    claims = root / "data/papers/demo/claims.yml"
    claims.write_text(claims.read_text().replace("than b", "than B"))
    after, = published_verdicts.verdicts("demo", HERE)
    assert after["statement"] != before["statement"] and file.read_text() == text
    assert publish.judge("demo") == [file] and json.loads(file.read_text())["claims"] == [after]


def test_a_verdict_and_its_page_say_alike_that_points_are_by_earlier_code(full, make, monkeypatch):
    publish.export(full[0])
    monkeypatch.setenv("LABBOOK_PUBLISHED", "1")
    study, _ = make()
    assert study.conditions()["stale"] == study.judge("slower").conditions["stale"] == 0
    monkeypatch.setattr("labbook.study.study.fingerprint", lambda name: Fingerprint("new", {}))
    study, _ = make()
    of_page, of_verdict = study.conditions(), study.judge("slower").conditions
    assert of_page == of_verdict and (of_verdict["stale"], of_verdict["stale_because"]) == (12, ["code"])
    stored, = json.loads(published_verdicts.claims_path("demo", HERE).read_text())["claims"]
    assert stored["conditions"]["stale"] == 0, "what is published does not depend on who reads it"


def one_of(verdict, n, stale=0):
    return {"one": {"id": "one", "verdict": verdict, "n": n, "conditions": {"points": 6, "stale": stale} if n else {}}}


@pytest.mark.parametrize("first, second, stands_of", [
    (one_of("open", 1), one_of("open", 6), "b"), (one_of("open", 6), one_of("open", 1), "a"),
    (one_of("replicated", 6), one_of("not replicated", 30), "a"), (one_of("open", 30), one_of("replicated", 6), "b"),
    (one_of("replicated", 6, stale=6), one_of("not replicated", 6), "b"), (one_of("open", 9, stale=6), one_of("open", 6), "b"),
    (one_of("replicated", 6, stale=5), one_of("not replicated", 6), "a"), (one_of("replicated", 6, stale=6), one_of("open", 9), "a"),
    (one_of("not testable here", 0), one_of("open", 1), "b"), (one_of("not run", 0), one_of("not testable here", 0), "b")])
def test_a_set_that_decides_stands_before_others_and_points_of_today_before_earlier_ones(first, second, stands_of):
    assert published_verdicts.stands({"a": first, "b": second})["one"]["set"] == stands_of
