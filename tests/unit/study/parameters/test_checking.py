"""Parameters are checked by name and type."""

import math

import pytest

from labbook.errors import InputError
from labbook.study.parameters import checking


def test_an_empty_list_is_refused_where_there_are_values():
    with pytest.raises(InputError, match="nothing to measure.*1, 2"):
        checking.check({"clients": []}, {"clients": [1, 2]}, "cms.ipynb")


def test_a_mixed_list_takes_the_types_it_shows():
    defaults = {"sizes": [1, "all"]}
    assert checking.check({"sizes": ["all", 3]}, defaults, "")
    with pytest.raises(InputError, match="list of int or str"):
        checking.check({"sizes": [2.5]}, defaults, "")


@pytest.mark.parametrize("default, text, message", [
    (3, "2020-13-01", r"x: '2020-13-01' cannot be read: .*\(allowed: int, such as 3\)"),
    ([1], "[2020-13-01]", r"x: .* cannot be read: .*\(allowed: list of int, such as \[1\]\)"),
    (3, "[1", r"x: '\[1' is not YAML \(allowed: int, such as 3\)"),
    (None, "[1", r"\(allowed: any YAML\)")])
def test_text_that_yaml_cannot_read_is_refused_with_what_is_allowed(default, text, message):
    with pytest.raises(InputError, match=message):
        checking.from_text(default, text, "x")


@pytest.mark.parametrize("values", [{"repeats": -1}, {"group": {"repeats": -1}}])
def test_fewer_repeats_than_none_are_refused_by_name(values):
    with pytest.raises(InputError, match="repeats: must be 0 or more, .*; got -1"):
        checking.check(values, {"repeats": 3, "group": {"repeats": 3}}, "cms.ipynb")


@pytest.mark.parametrize("values, message", [
    ({"group": {"seconds": -2.0, "of": [1]}}, r"group.seconds: must be 0 or more; got -2.0 \(allowed: float, such as 5.0\)"),
    ({"group": {"seconds": 1.0, "of": [3, -1]}}, r"group.of: must be 0 or more; got -1"),
    ({"group": {"seconds": math.inf, "of": [1]}}, "group.seconds: must be finite; got inf"),
    ({"nested": [{"ms": math.nan}]}, "nested: must be finite; got nan"),
    ({"offset": -math.inf}, "offset: must be finite; got -inf")])
def test_a_number_that_nothing_can_have_is_refused(values, message):
    defaults = {"group": {"seconds": 5.0, "of": [1, 2]}, "nested": [{"ms": 2.5}], "offset": -1.5}
    with pytest.raises(InputError, match=message):
        checking.check(values, defaults, "cms.ipynb")


def test_a_number_below_0_is_taken_where_the_notebook_has_one():
    assert checking.check({"offset": -3.5, "at": [-9, 4]}, {"offset": -1.5, "at": [-2, 2]}, "") == {"offset": -3.5, "at": [-9, 4]}


def test_of_many_parameters_an_error_lists_the_groups():
    many = [f"a{group}.x{entry}" for group in range(6) for entry in range(6)]
    message = str(checking.unknown("a0", [*many, "environment"], "cms.ipynb"))
    assert message.endswith("(allowed: environment, or GROUP.NAME with a group of a0, a1, a2, a3, a4, a5)")
    assert "a0.x0, a0.x1" in str(checking.unknown("a0.y", many, "cms.ipynb"))
