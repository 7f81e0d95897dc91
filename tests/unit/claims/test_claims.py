"""claims.yml: what it may hold, and what judging it leaves behind."""

import copy
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from study_stand_ins import CLAIMS, FakeLab, notebook

from labbook import paths
from labbook.claims import claims
from labbook.claims.verdict import COLOURS, needed_words
from labbook.errors import InputError


@pytest.fixture
def write(root):
    """Write claims.yml after a change to its first claim."""
    path = claims.path("demo")
    given = yaml.safe_load(path.read_text())

    def changed(change):
        data = copy.deepcopy(given)
        path.write_text(yaml.safe_dump(change(data[0]) or data))
        return path

    return changed


def test_claims_are_read(root):
    assert [c["id"] for c in claims.load("demo")] == ["slower"]
    claims.path("demo").unlink()
    assert claims.load("demo") == []


RULE = {
    "greater": {"of": {"a": 1}, "than": {"a": 2}, "where": {"x": {"at_least": 3}, "y": None}},
    "equal_within": {"of": {"a": 1}, "than": {"a": 2}, "margin": 1.1},
    "differs_over": {"along": "x", "margin": 1.2},
    "rises_by": {"along": "x", "low": 0.5, "unit": "ms a ms"},
    "scales_with": {"along": "x", "low": 0.8, "high": 1.25},
    "proportional": {"along": "x", "low": 0.8, "high": 1.25},
    "between": {"low": 1, "high": 2, "unit": "s"},
    "grows_with": {"along": "x", "margin": 1.0},
    "grows_alike": {"of": {"a": 1}, "than": {"a": 2}, "along": "x", "margin": 1.5},
    "grows_less": {"of": {"a": 1}, "than": {"a": 2}, "along": "x", "margin": 1.1},
    "above": {"value": 0.99, "unit": "of all"},
    "below": {"value": 10, "unit": "s", "where": {"x": 1}},
    "always": {"low": 1, "unit": "of all"},
    "sometimes": {"low": 1, "unit": "files"},
    "ratio_between": {"of": {"a": 1}, "than": {"a": 2}, "low": 1.02, "high": 1.05},
    "grows_slower": {"of": {"a": 1}, "than": {"a": 2}, "along": "x"},
    "crosses_near": {"of": {"a": 1}, "than": {"a": 2}, "along": "x", "at": 70, "within": 20},
    "not_testable": {"reason": "one core"},
}


def test_a_point_may_be_the_one_number_that_both_ends_are(write):
    write(lambda claim: claim.update(rule={"name": "always", "low": 1, "high": 1}))
    assert claims.load("demo")[0]["rule"]["high"] == 1


@pytest.mark.parametrize("name", claims.RULES)
def test_every_rule_can_be_written(write, name):
    write(lambda claim: claim.update(rule={"name": name, **RULE[name]}))
    assert claims.load("demo")[0]["rule"]["name"] == name


@pytest.mark.parametrize("change, parts", [
    (lambda c: c.update(metrik="x"), ["slower.metrik", "metric"]),
    (lambda c: c.pop("statement") and None, ["missing: statement"]),
    (lambda c: c.pop("metric") and None, ["missing: metric"]),
    (lambda c: c.update(id="Two Words"), ["Two Words.id"]),
    (lambda c: c.update(statement=""), ["slower.statement"]),
    (lambda c: c["paper"].update(vale=1), ["slower.paper.vale", "value"]),
    (lambda c: c["paper"].update(value="2x"), ["slower.paper.value", "number"]),
    (lambda c: c.update(paper={}), ["slower.paper"]),
    (lambda c: c["rule"].update(name="bigger"), ["slower.rule.name", "greater", "crosses_near"]),
    (lambda c: c["rule"].update(margine=2), ["slower.rule.margine", "margin"]),
    (lambda c: c["rule"].update(margin=0.5), ["slower.rule.margin", "1"]),
    (lambda c: c["rule"].update(margin="1.05"), ["slower.rule.margin", "number"]),
    (lambda c: c["rule"].pop("than") and None, ["slower.rule", "missing: than"]),
    (lambda c: c["rule"].update(of={}), ["slower.rule.of"]),
    (lambda c: c["rule"].update(of={"system": ["a"]}), ["slower.rule.of.system"]),
    (lambda c: c["rule"].update(of={"version": 1}), ["slower.rule.than", "version"]),
    (lambda c: c["rule"].update(where={"system": "a"}), ["slower.rule.where.system"]),
    (lambda c: c["rule"].update(where={"x": {"atleast": 1}}),
     ["slower.rule.where.x.atleast", "at_least"]),
    (lambda c: c.update(rule={"name": "not_testable"}), ["missing: reason"]),
    (lambda c: c.update(rule={"name": "equal_within", "of": {"a": 1}, "than": {"a": 2}}),
     ["missing: margin"]),
    (lambda c: c.update(rule={"name": "differs_over", "along": "x"}), ["slower.rule", "missing: margin", "a factor above 1"]),
    (lambda c: c.update(rule={"name": "differs_over", "along": "x", "margin": 1}), ["slower.rule.margin", "a factor above 1"]),
    (lambda c: c.update(rule={"name": "always", "unit": "s"}), ["slower.rule", "low, high"]),
    (lambda c: c.update(rule={"name": "always", "low": 2, "high": 1}), ["slower.rule.low", "up to 1"]),
    (lambda c: c.update(rule={"name": "between", "low": 2, "high": 2}), ["slower.rule.low", "below 2"]),
    (lambda c: c.update(rule={"name": "scales_with", "along": "x", "low": 1, "high": 0.5}), ["slower.rule.low", "below 0.5"]),
    (lambda c: c["rule"].update(where={"x": {}}), ["slower.rule.where.x", "at_least, at_most, or both"]),
    (lambda c: c["rule"].update(where={"x": {"at_least": 3, "at_most": 2}}), ["slower.rule.where.x.at_least", "2 at most"]),
    (lambda c: c.update(needs=[{"metric": "m", "at_least": 2, "at_most": 1.5, "otherwise": "w"}]),
     ["slower.needs.0.at_least", "1.5 at most"]),
    (lambda c: c.update(rule={"name": "sometimes"}), ["slower.rule", "low, high"]),
    (lambda c: c.update(rule={"name": "scales_with", "along": "x"}), ["slower.rule", "low, high"]),
    (lambda c: c.update(needs=[{"metric": "m", "otherwise": "w"}]), ["slower.needs.0", "at_least"]),
    (lambda c: c.update(needs=[{"metric": "m", "at_least": 1}]), ["missing: otherwise"]),
    (lambda c: c.update(needs=[]), ["slower.needs"]),
    (lambda c: c.update(owner="them"), ["slower.owner", "paper", "ours"]),
    (lambda c: c.update(headline="yes"), ["slower.headline"]),
    (lambda c: c.update(rule={"name": "always", "low": 1, "rate": 0}), ["slower.rule.rate", "0.5"]),
    (lambda c: c["rule"].update(symmetric="yes"), ["slower.rule.symmetric"]),
    (lambda c: c.update(rule={"name": "always", "low": 1, "rate": 0.04}), ["slower.rule.rate", "0.05 or more, or per: point"]),
    (lambda c: c["rule"].update(margin=float("inf")), ["slower.rule.margin", "a finite number"]),
    (lambda c: c.update(rule={"name": "above", "value": float("nan")}), ["slower.rule.value", "a finite number"]),
    (lambda c: c["rule"].update(where={"x": {"at_most": float("inf")}}), ["slower.rule.where.x.at_most", "a finite number"]),
    (lambda c: c.update(rule={"name": "grows_with", "along": "clients", "of": {"clients": 1}}),
     ["slower.rule.of.clients", "selects no arm"]),
    (lambda c: c.update(headline=["slowr"]), ["slower.headline", "did you mean 'slower'"]),
    (lambda c: [c, MATRIX | {"headline": ["slower"]}], ["{op}-slower-{size}.headline", "no claim 'slower'", "read-slower-4"]),
    (lambda c: c.update(paper={"value": float("nan")}), ["slower.paper.value", "a finite number"]),
    (lambda c: [c, c], ["slower: two claims have the same id"]),
    (lambda c: {"claims": [c]}, ["not of type array"]),
])
def test_what_a_claim_may_not_be_is_named(write, change, parts):
    path = write(change)
    with pytest.raises(InputError) as raised:
        claims.load("demo")
    for part in [str(path), *parts]:
        assert part in str(raised.value)


MATRIX = {
    "id": "{op}-slower-{size}", "section": "speed", "statement": "{op.verb} of {size} KB are slower",
    "for": {"op": {"read": {"verb": "Reads", "factor": 1.5}, "write": {"verb": "Writes", "factor": 2}},
            "size": [4, 64]},
    "source": "table 1", "paper": {"value": "{op.factor}", "unit": "times"}, "experiment": "speed",
    "metric": "{op}_ms", "rule": {"name": "greater", "of": {"system": "a", "size": "{size}"},
                                  "than": {"system": "b", "size": "{size}"}},
}


def test_an_entry_with_a_matrix_stands_for_a_claim_of_each_combination(write):
    write(lambda claim: [claim, MATRIX])
    found = claims.load("demo")
    assert [c["id"] for c in found] == ["slower", "read-slower-4", "read-slower-64",
                                        "write-slower-4", "write-slower-64"]
    last = found[-1]
    assert (last["statement"], last["metric"]) == ("Writes of 64 KB are slower", "write_ms")
    assert last["paper"]["value"] == 2 and last["rule"]["of"] == {"system": "a", "size": 64}
    assert "for" not in last and found[1]["paper"]["value"] == 1.5


def test_a_claim_is_the_papers_and_no_headline_unless_it_says_so(write):
    write(lambda claim: [claim, claim | {"id": "ours", "owner": "ours"}, claim | {"id": "main", "headline": True},
                         MATRIX | {"headline": ["read-slower-4", "write-slower-64"]}])
    found = claims.load("demo")
    assert {c["id"] for c in found if c["headline"]} == {"main", "read-slower-4", "write-slower-64"}
    assert {c["id"] for c in found if c["owner"] == "ours"} == {"ours"}
    assert {c["owner"] for c in found} == {"paper", "ours"}


def test_a_placeholder_may_be_a_whole_part_of_a_claim(write):
    needs = [{"metric": "cores", "at_least": 2, "otherwise": "one core"}]
    write(lambda claim: [claim | {"id": "slower-{n}", "needs": "{n.needs}",
                                  "for": {"n": {1: {"needs": needs}}}}])
    found, = claims.load("demo")
    assert found["id"] == "slower-1" and found["needs"] == needs


@pytest.mark.parametrize("change, parts", [
    ({"metric": "{operation}_ms"}, ["metric", "no value for {operation}", "{op}"]),
    ({"metric": "{op.verbs}_ms"}, ["did you mean 'op.verb'", "{op.factor}"]),
    ({"for": ["read"]}, ["slower-{size}.for", "not a matrix"]),
    ({"for": {"op": "read"}}, ["for.op", "[value, ...]"]),
    ({"for": {**MATRIX["for"], "place": ["here"]}}, ["no string of the claim uses {place}"]),
    ({"id": "{op}-slower"}, ["read-slower: two claims have the same id"]),
    ({"paper": {"value": "{op.verb}"}}, ["-slower-", ".paper.value", "number"]),
])
def test_what_is_wrong_with_a_matrix_is_named(write, change, parts):
    path = write(lambda claim: [claim, MATRIX | change])
    with pytest.raises(InputError) as raised:
        claims.load("demo")
    for part in [str(path), *parts]:
        assert part in str(raised.value)


def test_a_section_is_judged_and_shown_as_one_table(make, measure):
    first = CLAIMS[0]
    other = first | {"id": "elsewhere", "section": "later"}
    not_here = first | {"id": "cores", "rule": {"name": "not_testable", "reason": "one core"}}
    study, speed = make(repeats=6, claims=[first, other, not_here])
    measure(study, speed, slow_a)
    found = study.verdicts("speed")
    assert [v.id for v in found] == ["slower", "cores"]
    assert [v["id"] for v in claims.verdicts("demo")] == ["slower", "cores"]
    table = ElementTree.fromstring(found._repr_html_())
    rows = table.findall(".//tbody/tr")
    assert [row.get("id") for row in rows] == ["claim-slower", "claim-cores"]
    assert [th.get("scope") for th in table.iter("th")] == ["col"] * 4 + ["row"] * 2
    assert all(th.text for th in table.iter("th"))
    for row in rows:
        assert [td.get("data-label") for td in row.findall("td")] == ["Paper", "Here", "Verdict"]
        assert row.find(".//details/summary").get("aria-label").startswith("details of: a is <slower>")
    folded = "".join(rows[0].find(".//details").itertext())
    assert found[0].reason in folded and "table 1" in folded and found[0].conditions["cpu"] in folded
    assert "one core" in "".join(rows[1].findall("td")[1].itertext())
    with pytest.raises(InputError, match="section 'sped', did you mean 'speed'.*speed, later"):
        study.verdicts("sped")


def test_claims_that_no_run_measured_are_folded_below_the_others(make, measure):
    study, speed = make(repeats=6, claims=[CLAIMS[0], CLAIMS[0] | {"id": "second"}, CLAIMS[0] | {"id": "third"}])
    measure(study, speed, slow_a)
    found = study.verdicts("speed")
    found[1:] = [replace(one, verdict="not run", n=0, measured=None) for one in found[1:]]
    page = ElementTree.fromstring(f"<div>{found._repr_html_()}</div>")
    assert [row.get("id") for row in page.findall("./div//tbody/tr")] == ["claim-slower"]
    folded = page.find("./details")
    assert folded.find("summary").text == "2 claims here that no run has measured yet"
    assert [row.get("id") for row in folded.findall(".//tbody/tr")] == ["claim-second", "claim-third"]


def test_a_verdicts_label_has_its_colours_without_the_books_style_sheet(make, measure):
    study, speed = make(repeats=6)
    measure(study, speed, slow_a)
    for html in (study.judge("slower")._repr_html_(), study.verdicts("speed")._repr_html_()):
        style = ElementTree.fromstring(html).find(".//span[@class='verdict verdict-replicated']").get("style")
        assert style.startswith("color:var(--lb-good,#0b5f46);background:var(--lb-good-bg,#e2f4ed);")


def test_the_labels_colours_are_the_style_sheets():
    sheet = (Path(__file__).parents[3] / "book/_assets/css/labbook.css").read_text()
    for name, ink, paper in COLOURS.values():
        assert f"--lb-{name}: {ink}; --lb-{name}-bg: {paper};" in sheet


def test_a_rule_that_changed_after_the_data_says_so_on_the_page(make, measure):
    study, speed = make(repeats=6, claims=[CLAIMS[0] | {"changed": "after the data: margin 1.1 was 1.05"}])
    measure(study, speed, slow_a)
    for html in (study.judge("slower")._repr_html_(), study.verdicts("speed")._repr_html_()):
        assert "<dt>Changed</dt><dd>after the data: margin 1.1 was 1.05</dd>" in html


def test_a_verdict_on_a_modelled_disk_says_so_and_links_to_the_model(make, measure, monkeypatch):
    disk = {"limits": {"disk": {"size": 1 << 30, "model": "hdd_2010"}}}
    monkeypatch.setattr(FakeLab, "facts", lambda self: {"hosts": {"server": disk, "other": disk, "client": {}}})
    study, speed = make(repeats=6)
    measure(study, speed, slow_a)
    verdict = study.judge("slower")
    assert verdict.conditions["disk_models"] == ["hdd_2010"]
    for html in (verdict._repr_html_(), study.verdicts("speed")._repr_html_(), study.claims()._repr_html_()):
        assert 'on a modelled disk: <a href="../book/modelled_disks.html#hdd_2010">hdd_2010</a>' in html


def test_a_verdict_on_the_machine_s_own_disk_does_not(make, measure):
    study, speed = make(repeats=6)
    measure(study, speed, slow_a)
    assert "disk_models" not in study.judge("slower").conditions
    assert "modelled disk" not in study.verdicts("speed")._repr_html_()


def slow_a(point):
    return 0.02 if point.system == "a" else 0.01


def test_judging_says_what_was_measured_and_keeps_it(make, measure):
    study, speed = make(repeats=6)
    measure(study, speed, slow_a)
    study.complete()
    verdict = study.judge("slower")
    assert (verdict.verdict, verdict.unit) == ("replicated", "times")
    assert (verdict.measured, verdict.n, verdict.level) == (pytest.approx(2), 6, 0.95)
    stored, = json.loads(claims.verdicts_path("demo").read_text())
    for name in ("study", "id", "statement", "source", "paper", "measured", "low", "high", "level",
                 "n", "verdict", "reason", "profile", "environment", "conditions", "owner", "headline",
                 "run", "tendency", "repeats_needed"):
        assert stored[name] == getattr(verdict, name)
    assert stored["conditions"]["points"] == 24 and stored["profile"] == "quick"
    assert claims.board("demo")[0]["verdict"] == "replicated"
    assert paths.build_dir() in claims.verdicts_path("demo").parents


def test_a_verdict_says_what_was_checked_where_its_claim_does(make, measure):
    plain = CLAIMS[0]
    of_history = plain | {"id": "of-history", "checked": "every call & its answer"}
    study, speed = make(repeats=6, claims=[plain, of_history])
    measure(study, speed, slow_a)
    assert "Checked" not in study.judge("slower")._repr_html_()
    assert "every call &amp; its answer" in study.judge("of-history")._repr_html_()
    rows = ElementTree.fromstring(study.verdicts("speed")._repr_html_()).findall(".//tbody/tr")
    assert ["every call & its answer" in "".join(row.itertext()) for row in rows] == [False, True]


@pytest.mark.parametrize("one, words", [
    ({"verdict": "open", "n": 3, "repeats_needed": 12}, "after 12 repeats, if further ones are like these"),
    ({"verdict": "open", "n": 6, "repeats_needed": None},
     "after no number of repeats up to 60, if further ones are like these"),
    ({"verdict": "open", "n": 1, "repeats_needed": None}, ""),
    ({"verdict": "replicated", "n": 6, "repeats_needed": None}, "")])
def test_an_open_claim_says_when_a_verdict_is_expected(one, words):
    assert needed_words(one) == words


def test_when_a_verdict_is_expected_is_on_the_page(make, measure):
    study, speed = make(repeats=3)
    measure(study, speed, slow_a)
    for html in (study.judge("slower")._repr_html_(), study.verdicts("speed")._repr_html_()):
        assert "<dt>Verdict expected</dt><dd>after 6 repeats, if further ones are like these</dd>" in html


def test_a_verdict_is_shown_with_its_text_escaped(make, measure):
    study, speed = make(repeats=6)
    measure(study, speed, slow_a)
    html = study.judge("slower")._repr_html_()
    assert "a is &lt;slower&gt; than b" in html and "<slower>" not in html
    assert 'id="claim-slower"' in html and "verdict-replicated" in html
    assert "2 times (2 to 2 at a level of 95 %, 6 repeats)" in html and "table 1" in html
    board = study.claims()._repr_html_()
    assert "&lt;slower&gt;" in board and "<slower>" not in board and "replicated" in board


def test_the_board_has_every_claim_in_the_order_of_the_file(make, measure, root):
    first = yaml.safe_load(claims.path("demo").read_text())[0]
    late = first | {"id": "late", "rule": {"name": "not_testable", "reason": "one core"}}
    study, speed = make(repeats=6, claims=[late, first])
    measure(study, speed)
    assert [(c["id"], c["verdict"]) for c in study.claims()] == [("late", None), ("slower", None)]
    study.judge("slower")
    assert study.judge("late").verdict == "not testable here"
    assert [(c["id"], c["verdict"]) for c in study.claims()] == [
        ("late", "not testable here"), ("slower", "not replicated")]
    make(claims=[first])
    assert [c["id"] for c in claims.board("demo")] == ["slower"]


FILE = "demo/claims.yml: slower"


@pytest.mark.parametrize("change, message", [
    ({"experiment": "sped"}, f"{FILE}.experiment: no experiment 'sped'.*did you mean 'speed'"),
    ({"rule": {"name": "above", "value": 1, "where": {"systm": "a"}}},
     f"{FILE}.rule.where.systm: no parameter 'systm', did you mean 'system'.*system, clients"),
    ({"rule": {"name": "grows_with", "along": "client"}}, f"{FILE}.rule.along: no parameter"),
    ({"rule": {"name": "above", "value": 1, "where": {"clients": "1"}}},
     f"{FILE}.rule.where.clients: no point has clients '1'.*allowed: 1, 2"),
    ({"rule": {"name": "above", "value": 1, "of": {"system": 1}}},
     f"{FILE}.rule.of.system: no point has system 1"),
    ({"rule": {"name": "above", "value": 1, "where": {"system": {"at_least": 5}}}},
     f"{FILE}.rule.where.system: no point has system"),
    ({"rule": {"name": "above", "value": 1, "where": {"system": False}}},
     f"{FILE}.rule.where.system: no point has system False: YAML reads on, off, yes and no"),
    ({"rule": {"name": "grows_with", "along": "system"}},
     f"{FILE}.rule.along: grows_with follows a number, and system has other values: a, b"),
    ({"rule": {"name": "greater", "of": {"system": "a"}, "than": {"system": "a"}}},
     f"{FILE}.rule.than: both arms are the same points"),
])
def test_a_claim_is_checked_against_the_grid_before_the_first_point(make, labs, change, message):
    study, speed = make(claims=[CLAIMS[0] | change])
    with pytest.raises(InputError, match=message):
        list(speed.remaining())
    assert not labs.made


def test_a_metric_follows_numbers_only(make):
    _, speed = make(claims=[CLAIMS[0] | {"rule": {"name": "grows_with", "along": "clients"}}],
                    setup={"system": ["a", "b"]}, vary={"clients": [None, 2]})
    with pytest.raises(InputError, match="follows a number, and clients has other values: None "):
        list(speed.remaining())


def test_misspelt_words_are_found_and_words_of_the_full_profile_are_not_misspelt(make):
    rule = {"name": "above", "value": 1, "where": {"pattern": "sequental"}}
    _, speed = make(claims=[CLAIMS[0] | {"rule": rule}], vary={"pattern": ["sequential", "hot"]})
    with pytest.raises(InputError, match="did you mean 'sequential'"):
        list(speed.remaining())
    (paths.papers("demo") / "full.yml").write_text("speed: {patterns: [sequental]}\n")
    assert list(speed.remaining())


def test_a_word_of_the_notebooks_own_values_may_be_left_out_of_a_run(make):
    rule = {"name": "above", "value": 1, "where": {"scenario": "create_and_list_users"}}
    _, speed = make(claims=[CLAIMS[0] | {"rule": rule}], vary={"scenario": ["create_user"]})
    with pytest.raises(InputError, match="did you mean 'create_user'"):
        list(speed.remaining())
    cell = {"cell_type": "code", "metadata": {"tags": ["parameters"]},
            "source": "speed = dict(scenario=['create_user', 'create_and_list_users'])"}
    paths.notebook("demo").write_text(json.dumps({"nbformat": 4, "cells": [cell]}))
    assert list(speed.remaining())


def test_an_experiment_may_be_declared_after_the_first_has_run(make, measure, root):
    later = CLAIMS[0] | {"id": "later", "experiment": "late"}
    study, speed = make(claims=[*CLAIMS, later])
    with pytest.raises(InputError, match="later.experiment: no experiment 'late'"):
        list(speed.remaining())
    notebook(root, "demo", "study.experiment('late', vary=dict(clients=[1]))")
    assert measure(study, speed)
    with pytest.raises(InputError, match="later.experiment: no experiment 'late'"):
        study.complete()
    late = study.experiment("late", setup={"system": ["a", "b"]})
    measure(study, late)
    study.complete()


@pytest.mark.parametrize("metric", ["mean_s", "outcom"])
def test_metrics_are_checked_after_the_first_record(make, measure, metric):
    study, speed = make(claims=[CLAIMS[0] | {"metric": metric}])
    with pytest.raises(InputError, match=f"slower.metric: no metric '{metric}' was recorded, did you "
                                         "mean.*mean_ms"):
        measure(study, speed, metrics={"outcome": "right"})
    assert len(speed.summary()) == 1, "it is kept, and measuring goes on once claims.yml is right"


@pytest.mark.parametrize("value, kind", [("right", "text"), ([1, 2], "a list")])
@pytest.mark.parametrize("wrong, key", [
    ({"metric": "outcome"}, "slower.metric"),
    ({"rule": CLAIMS[0]["rule"] | {"baseline": {"metric": "outcome"}}}, "slower.rule.baseline.metric"),
    ({"needs": [{"metric": "outcome", "at_least": 1, "otherwise": "no"}]}, "slower.needs.0.metric"),
])
def test_a_claim_on_what_is_no_number_is_named_after_the_first_record(make, measure, value, kind, wrong, key):
    """It was said not to be recorded, or ended the verdict with a TypeError, when all had been measured."""
    study, speed = make(claims=[CLAIMS[0] | wrong])
    with pytest.raises(InputError, match=f"{key}: the metric 'outcome' is {kind}.*mean_ms"):
        measure(study, speed, metrics={"outcome": value})


def test_a_metric_that_other_points_have_is_no_mistake(make, measure, root):
    notebook(root, "demo", "more = {'seen': 1}")
    study, speed = make(claims=[CLAIMS[0] | {"metric": "seen"}])
    assert len(measure(study, speed)) == 4


def test_a_run_without_any_point_of_a_claim_may_lack_its_metric(make, measure, root):
    notebook(root, "demo", "clients = [1, 2, 3]")
    of_three = CLAIMS[0]["rule"] | {"where": {"clients": 3}}
    study, speed = make(claims=[CLAIMS[0] | {"metric": "only_of_three", "rule": of_three}])
    assert measure(study, speed)
    assert study.judge("slower").verdict == "not run"


def test_a_metric_that_this_place_cannot_record_is_not_run(make, measure, root):
    """Such as one that a lab on this machine has, and hosts of one's own have not."""
    study, speed = make(claims=[CLAIMS[0] | {"metric": "only_here"}])
    notebook(root, "demo", "metrics = {'only_here': 1} if local else {}")
    assert measure(study, speed)
    found = study.judge("slower")
    assert (found.verdict, found.reason) == ("not run", "no point of this run has only here")


def test_what_cannot_be_judged_is_named(make, measure):
    study, speed = make()
    measure(study, speed, metrics={"outcome": "right"})
    study, speed = make(claims=[CLAIMS[0] | {"metric": "outcome"}])
    with pytest.raises(InputError, match="no metric 'outcome' with numbers was recorded.*mean_ms"):
        study.judge("slower")
    with pytest.raises(InputError, match="did you mean 'slower'"):
        study.judge("slowr")


def test_points_limited_by_clients_are_judged_by_no_rule(make, measure):
    study, speed = make(repeats=6)
    measure(study, speed, slow_a, metrics={"client_limited": 1})
    verdict = study.judge("slower")
    assert (verdict.verdict, verdict.reason) == (
        "not testable here", "the clients were the limit in every setting that could be compared")
    assert verdict.measured is None and "Here" not in verdict._repr_html_()


def test_without_records_nothing_is_judged(make):
    study, speed = make()
    assert study.judge("slower").reason == (
        "nothing was measured; to measure it: labbook run demo --until-decided --claims slower")


def test_the_words_of_the_full_profile(root):
    file = paths.papers("demo") / "full.yml"
    file.write_text("repeats: 3\nops: [read, write]\nplace: memory\nsizes: [1, 2]\n")
    assert claims.full_values("demo") == {"read", "write", "memory"}
    file.unlink()
    assert claims.full_values("demo") == set()


def test_reading_claims_stays_light(root):
    code = ("import sys; from labbook.claims import claims; claims.board('demo'); "
            "print([m for m in ('pandas', 'numpy', 'pyarrow', 'scipy') if m in sys.modules])")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("measured, unit, expected", [
    (1.0312, "times", "1.031 times (1.000 to 2.5 in"), (1.0312, "s", "1.03 s (1 to 2.5 in")])
def test_ratios_near_one_are_written_to_a_thousandth(measured, unit, expected):
    from labbook.claims.verdict import ours

    one = {"measured": measured, "low": 1.0, "high": 2.5, "level": 0.75, "n": 3, "unit": unit}
    assert ours(one).startswith(expected)


@pytest.mark.parametrize("measured, low, high, unit, expected", [
    (2.0, 1.5, None, "times", "2 times (at least 1.5 at a level of 95 %, 6 repeats)"),
    (2.0, None, 2.5, "times", "2 times (at most 2.5 at a level of 95 %, 6 repeats)"),
    (2.0, None, None, "s", "2 s (no bound on either side at a level of 95 %, 6 repeats)"),
    (1.0, 0.905, None, "of all repeats", "100 % of all repeats (at least 90.5 % at a level of 95 %, 6 repeats)"),
    (0, None, 0.0949, "of all", "0 % of all (at most 9.49 % at a level of 95 %, 6 repeats)"),
    (None, None, None, "clients", "no crossing in the measured range of clients (6 repeats)"),
    (None, 40, None, "clients", "no crossing in the measured range of clients (at least 40 at"),
    (None, 3, None, "times", "no growth to compare with (at least 3 at")])
def test_what_has_no_end_is_written_in_words(measured, low, high, unit, expected):
    from labbook.claims.verdict import brief, ours

    one = {"measured": measured, "low": low, "high": high, "level": 0.95, "n": 6, "unit": unit}
    assert ours(one).startswith(expected)
    assert brief(one) == expected.partition(" at a level")[0].removesuffix(" at").removesuffix(")") + ")"


def test_too_few_repeats_have_their_range_and_no_level():
    from labbook.claims.verdict import brief, ours

    one = {"measured": 2.0, "low": 1.8, "high": 2.2, "level": 0.75, "n": 3, "unit": "times"}
    assert ours(one) == "2 times (1.8 to 2.2 in 3 repeats)" and brief(one) == "2 times (1.8 to 2.2)"


def test_a_damaged_file_of_verdicts_is_as_none(root):
    claims.store("demo", {"id": "slower", "verdict": "open"})
    claims.verdicts_path("demo").write_text('[{"id": "slo')
    assert claims.verdicts("demo") == []
    claims.store("demo", {"id": "slower", "verdict": "replicated"})
    assert [one["verdict"] for one in claims.verdicts("demo")] == ["replicated"]
