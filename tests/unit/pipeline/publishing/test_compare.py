"""Two runs side by side: verdicts that changed, and measures that moved."""

import json

import pytest
from published_stand_ins import HERE, OTHER

from labbook.claims import claims
from labbook.errors import InputError
from labbook.pipeline.publishing import compare, compare_words


def verdict(word="replicated", measured=2.0, low=1.8, high=2.2, level=0.95, n=6, unit="times", name="slower"):
    return {"study": "demo", "id": name, "statement": "s", "verdict": word, "measured": measured, "low": low,
            "high": high, "level": level, "n": n, "unit": unit, "conditions": {}}


@pytest.mark.parametrize("a, b, change", [
    ("replicated", "replicated", compare.AGREE), ("replicated", "not replicated", compare.REVERSED),
    ("open", "replicated", compare.DECIDED_NOW), ("not replicated", "open", compare.OPEN_NOW),
    ("open", "open", compare.OPEN), ("not testable here", "replicated", compare.DECIDED_NOW)])
def test_what_became_of_a_verdict(a, b, change):
    assert compare.change(a, b) == change


def test_a_move_is_a_ratio_whose_interval_both_intervals_allow():
    moved = compare.move(verdict(), verdict(measured=4.0, low=3.6, high=4.4))
    assert (moved.value, round(moved.low, 3), round(moved.high, 3)) == (2.0, 1.636, 2.444)
    assert moved.level == pytest.approx(0.9) and moved.is_clear()
    assert moved.words() == "2 times (1.64 to 2.44, 90 %)"
    assert not compare.move(verdict(), verdict(measured=2.1, low=1.9, high=2.3)).is_clear()


def test_a_range_of_few_repeats_is_no_clear_move():
    one = compare.move(verdict(), {**verdict(measured=4.0, low=4.0, high=4.0), "level": 0.0})
    assert one.value == 2.0 and not one.is_clear()


def test_a_move_of_values_that_are_not_above_0_is_a_difference():
    a = verdict(measured=0.0, low=-1.0, high=1.0, unit="s")
    moved = compare.move(a, verdict(measured=5.0, low=4.0, high=None, unit="s"))
    assert (moved.value, moved.low, moved.high) == (5.0, 3.0, None) and moved.is_clear()
    assert moved.words() == "5 s (3 to unbounded, 90 %)"
    assert compare.move(a, verdict()) is None, "another unit"
    assert compare.move(a, verdict(measured=None)) is None


def test_only_claims_that_both_measured_are_compared():
    a = {"demo": {"slower": verdict(), "gone": verdict(name="gone"), "empty": verdict(n=0, name="empty")}}
    b = {"demo": {"slower": verdict("not replicated"), "empty": verdict(name="empty")}}
    pair, = compare.pairs(a, b)
    assert (pair.id, pair.change) == ("slower", compare.REVERSED)
    assert compare.agreement([pair]) == "1 claim measured in both; 1 decided in both, 0 of them alike (0 %)"
    text = compare_words.table([pair], "old", "new")
    assert "replicated -> not replicated" in text and "No measure moved" in text


@pytest.fixture
def sides(root):
    """A path for each shape of file that verdicts are in."""
    (root / "_toc.yml").write_text("root: book/index\n")
    claims.store("demo", verdict())
    other = root / "other"
    (other / "demo" / "epyc").mkdir(parents=True)
    (other / "demo" / "epyc" / "claims.json").write_text(
        json.dumps({"of": "x", "claims": [verdict("not replicated", 0.5, 0.4, 0.6)]}))
    (other / "demo" / "epyc" / "run.json").write_text("{}")
    return root, other


def test_two_runs_without_a_claim_in_common_say_so():
    assert "No claim is measured in both" in compare_words.table([], "quick", "published")


def test_a_side_is_a_run_a_published_set_a_file_or_a_folder(sides):
    root, other = sides
    here = compare.load("quick", ["demo"])
    assert here["demo"]["slower"]["verdict"] == "replicated"
    assert compare.load(str(root / "build/claims"), ["demo"]) == here
    claims.store("demo", verdict() | {"run": "published"})
    assert compare.load("quick", ["demo"]) == {"demo": {}}, "a page of published sets is no run"
    for path in (other, other / "demo/epyc/claims.json"):
        assert compare.load(str(path), ["demo"])["demo"]["slower"]["verdict"] == "not replicated"
    (other / "demo" / "arm").mkdir()
    (other / "demo" / "arm" / "claims.json").write_text(json.dumps([verdict(n=0)]))
    assert compare.load(str(other), ["demo"])["demo"]["slower"]["n"] == 6, "the one that measured more"
    assert compare.load(str(other), ["another"]) == {} and compare.load("published", ["demo"]) == {}


@pytest.mark.parametrize("side, repeats", [("published", 3), (f"published:{HERE}", 3), (f"published:{OTHER}", 1)])
def test_a_published_side_is_the_set_that_pages_show_first_or_that_of_a_machine(two_sets, side, repeats):
    assert compare.load(side, ["demo"])["demo"]["slower"]["n"] == repeats


@pytest.mark.parametrize("name, message", [
    ("gone", "quick, published"), ("published:vax", "no published set of the machine 'vax'"),
    ("_toc.yml", "not a file of verdicts"), ("environments", "no verdicts in this folder")])
def test_a_side_that_is_none_is_an_input_error(sides, name, message, monkeypatch):
    monkeypatch.chdir(sides[0])
    with pytest.raises(InputError, match=message):
        compare.load(name, ["demo"])


def test_the_command_fails_if_a_decided_verdict_turned_round(sides, capsys):
    from labbook.cli import main

    _, other = sides
    assert main(["compare", "quick", str(other)]) == 1
    assert "1 claim measured in both" in capsys.readouterr().out
    assert main(["compare", "quick", "quick", "--json"]) == 0
    one, = json.loads(capsys.readouterr().out)
    assert (one["change"], one["moved"], one["move"]["value"]) == ("agree", False, 1.0)
