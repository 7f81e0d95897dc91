"""How a verdict is written in sentences and tables of a page."""

from dataclasses import asdict, replace

import pytest
from study_stand_ins import CLAIMS

from labbook.claims import rules
from labbook.claims.verdict import Verdicts, ours, three_digits
from labbook.figures.numbers import number


@pytest.fixture
def judged(make, measure):
    """A verdict on a claim with six repeats, and one on another claim of that experiment, which has no points."""
    of_three = CLAIMS[0]["rule"] | {"where": {"clients": 3}}
    study, speed = make(repeats=6, claims=[CLAIMS[0], CLAIMS[0] | {"id": "of-three", "rule": of_three}])
    measure(study, speed, lambda p: 0.02 if p.system == "a" else 0.01)
    return study.judge("slower"), study.judge("of-three")


def test_a_sentence_has_the_published_verdict_and_its_number_where_the_run_measured_nothing(judged):
    measured, missing = judged
    assert measured.stands == "replicated" and measured.value == measured.ours
    assert missing.stands == "not run" and missing.value == ""
    published = asdict(measured) | {"verdict": rules.OPEN}
    missing = replace(missing, published=published)
    assert missing.stands == "open (published run)"
    assert missing.value == "2 times (2 to 2 at a level of 95 %, 6 repeats, published run)"
    one_repeat = replace(missing, published=published | {"n": 1})
    assert one_repeat.value == "2 times (one repeat, published run)"
    no_number = replace(missing, published=published | {"verdict": rules.NOT_TESTABLE, "n": 0})
    assert no_number.stands == "not testable here (published run)" and no_number.value == ""


def test_what_was_not_run_names_no_machine_nor_disk_though_its_experiment_has_points(judged):
    measured, missing = judged
    assert missing.verdict == rules.NOT_RUN and missing.conditions["points"] > 0
    missing = replace(missing, conditions=missing.conditions | {"disk_models": ["hdd_2010"]})
    measured = replace(measured, conditions=measured.conditions | {"disk_models": ["hdd_2010"]})
    assert "<dt>Measured on</dt>" in measured._repr_html_() and "modelled disk" in measured._repr_html_()
    assert "<dt>Measured on</dt>" not in missing._repr_html_() and "modelled disk" not in missing._repr_html_()


def test_a_table_of_what_was_not_run_names_no_machine(judged):
    measured, missing = judged
    assert "<dt>Measured on</dt>" in Verdicts("speed", [measured])._repr_html_()
    assert "<dt>Measured on</dt>" not in Verdicts("speed", [missing])._repr_html_()


@pytest.mark.parametrize("measured, unit, expected", [
    (9835.7, "MB", "9,840 MB (9,830 to 9,900 in"), (1234567, "times", "1,230,000 times (9,830 to 9,900 in"),
    (0.0000123, "s", "0.0000123 s (9,830 to 9,900 in"), (-1234.0, "%", "-1,230 % (9,830 to 9,900 in"),
    (0, "s", "0 s (9,830 to 9,900 in"), (120.0, "s", "120 s (9,830 to 9,900 in")])
def test_large_and_small_numbers_have_no_exponent(measured, unit, expected):
    one = {"measured": measured, "low": 9825.9, "high": 9900.5, "level": 0.75, "n": 3, "unit": unit}
    assert ours(one).startswith(expected)


@pytest.mark.parametrize("value, text", [
    (0.0123, "0.0123"), (4.5, "4.50"), (78.94, "78.9"), (999.6, "1,000"), (9835.7, "9,840"), (-0.5, "-0.500"), (0, "0")])
def test_numbers_have_three_digits_and_no_exponent(value, text):
    assert three_digits(value) == number(value) == text
