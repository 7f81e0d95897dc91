"""What is known of each claim: by the last run here, and by each published set."""

import json

import pytest
from published_stand_ins import HERE

from labbook.claims import claims, rules
from labbook.claims.verdict import published_words
from labbook.pipeline.publishing import outcomes, publish
from labbook.study.publication import published_verdicts


@pytest.fixture
def published_study(make, measure):
    """A study of which six repeats are published, and nothing has been judged here since."""
    study, speed = make(repeats=6)
    measure(study, speed, lambda point: 0.02 if point.system == "a" else 0.01)
    study.complete()
    publish.export(study, "quick")
    return study


def test_what_a_run_did_not_measure_has_the_published_verdict(published_study, make):
    one, = outcomes.of_study("demo")
    assert (one["verdict"], one["run"], one["from_set"]) == (rules.REPLICATED, "published", HERE)
    assert one["machines"] == {HERE: rules.REPLICATED} and one["compared"] == "a / b, mean time (ms)"
    study, _ = make(setup={"system": ["a"]})
    judged = study.judge("slower")
    claims.store("demo", vars(judged) | {"verdict": rules.NOT_RUN, "measured": None, "n": 0})
    one, = outcomes.of_study("demo")
    assert one["verdict"] == rules.REPLICATED and one["from_set"] == HERE


def test_a_run_that_measured_has_its_own_verdict(published_study):
    claims.store("demo", vars(published_study.judge("slower")) | {"verdict": rules.OPEN})
    one, = outcomes.of_study("demo")
    assert (one["verdict"], one["run"], one["from_set"]) == (rules.OPEN, "quick", None)
    assert (one["beside"]["verdict"], one["beside"]["set"]) == (rules.REPLICATED, HERE)


@pytest.mark.parametrize("own, published, expected", [
    (rules.REPLICATED, rules.REPLICATED, "agrees"), (rules.NOT_REPLICATED, rules.REPLICATED, "disagrees"),
    (rules.OPEN, rules.REPLICATED, "not decided here"), (rules.REPLICATED, rules.OPEN, "decided here only"),
    (rules.OPEN, rules.OPEN, "open in both"), (rules.NOT_TESTABLE, rules.NOT_TESTABLE, "agrees"),
    (rules.OPEN, rules.NOT_TESTABLE, "decided in neither")])
def test_a_row_says_whether_the_published_verdict_agrees(own, published, expected):
    assert outcomes.agreement(own, published) == expected


def test_the_page_of_a_run_that_measured_nothing_shows_the_published_verdict(published_study, make, monkeypatch, root):
    monkeypatch.setenv("LABBOOK_RECORDS", str(root / "none"))
    study, _ = make()
    judged = study.judge("slower")
    assert judged.verdict == rules.NOT_RUN and judged.published["verdict"] == rules.REPLICATED
    html = judged._repr_html_()
    assert "not run" in html and "replicated, 20" in html
    assert judged.published["link"] == published_verdicts.address("demo", HERE)
    assert "." not in published_verdicts.anchor("demo", HERE)
    from labbook.claims.verdict import Verdicts

    assert judged.published["link"] in Verdicts("speed", [judged])._repr_html_()


@pytest.mark.parametrize("machines, expected", [
    ({}, ""), ({"x": "open"}, "1 machine"), ({"x": "replicated", "y": "replicated"}, "2 machines: replicated"),
    ({"x": "open", "y": "replicated", "z": "replicated"}, "3 machines: 2 replicated, 1 open")])
def test_a_row_says_on_how_many_machines_and_how(machines, expected):
    assert outcomes.machines_words(machines) == expected


def test_counts_are_in_order_and_verdicts_of_earlier_versions_are_open():
    rows = [{"verdict": word} for word in ("not run", "too noisy", "replicated", None, "open")]
    assert outcomes.counts(rows) == {"replicated": 1, "open": 2, "not run": 1, "not judged yet": 1}


def test_the_table_for_people_has_headline_claims_first(published_study):
    one, = outcomes.of_study("demo")
    rows = [one | {"id": "later", "verdict": "open", "tendency": {"verdict": "replicated", "level": 0.75},
                   "from_set": None}, one | {"id": "first", "headline": True, "owner": "ours"}]
    text = outcomes.table(rows)
    assert text.startswith("demo: 1 replicated, 1 open\n *+  replicated (published)")
    assert text.index("first") < text.index("later") and "tendency: replicated (75 %)" in text
    assert outcomes.table([]) == "no such claims"


def test_the_table_says_what_would_measure_a_claim_that_was_not_run(published_study):
    one, = outcomes.of_study("demo")
    why = "nothing was measured; to measure it: labbook run demo -p crowd.repeats 6"
    assert why in outcomes.table([one | {"verdict": "not run", "reason": why, "n": 0}])


def test_the_summary_counts_by_study_and_verdict_and_has_the_headline_claims(published_study):
    one, = outcomes.of_study("demo")
    rows = [one | {"headline": True}, one | {"id": "plain", "headline": False},
            one | {"study": "other", "verdict": "open", "headline": False}]
    text = outcomes.summary(rows)
    assert text.startswith("claims  replicated  open  all\n"
                           "demo    2           -     2\nother   -           1     1\nall     2           1     3\n")
    assert "headline claims\n\ndemo: 1 replicated" in text and "plain" not in text


def test_the_table_says_what_stands_on_a_modelled_disk(published_study):
    one, = outcomes.of_study("demo")
    assert "modelled disk" not in outcomes.table([one])
    modelled = one["conditions"] | {"disk_models": ["hdd_2010"]}
    assert ", on a modelled disk (hdd_2010)" in outcomes.table([one | {"conditions": modelled}])
    assert "on a modelled disk (hdd_2010)" in published_words(one | {"conditions": modelled})


def test_the_command_filters_and_gives_data_to_programs(published_study, capsys):
    from labbook.cli import main

    (published_study.folder.parents[2] / "_toc.yml").write_text("root: book/index\n")
    assert main(["claims", "--json", "--verdict", "replicated"]) == 0
    one, = json.loads(capsys.readouterr().out)
    assert {"owner", "headline", "run", "tendency", "verdict", "measured", "conditions"} <= set(one)
    assert main(["claims", "--study", "demo", "--owner", "ours"]) == 0
    assert capsys.readouterr().out == "no such claims\n"


def test_a_verdict_that_was_chosen_of_several_sets_has_several_chances_to_be_wrong(published_study, monkeypatch):
    row, = outcomes.of_study("demo")
    once = outcomes.expected_wrong([row])
    assert once == rules.expected_wrong([row]) > 0
    alone = published_verdicts.by_machine("demo")[HERE]
    other = {"slower": alone["slower"] | {"verdict": rules.OPEN}}
    unmeasured = {"slower": alone["slower"] | {"verdict": rules.NOT_RUN, "n": 0}}
    monkeypatch.setattr(published_verdicts, "by_machine", lambda study: {"arm": other, HERE: alone, "vax": unmeasured})
    assert outcomes.expected_wrong(outcomes.of_study("demo")) == pytest.approx(2 * once)
    claims.store("demo", vars(published_study.judge("slower")))
    assert outcomes.expected_wrong(outcomes.of_study("demo")) == once, "that of a run here was not chosen"
