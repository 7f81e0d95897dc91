"""A notebook's parameters cell, read without running it."""

import pytest

from labbook.errors import InputError
from labbook.study.parameters import notebook


@pytest.mark.parametrize("code, message", [
    ("n = 1 + len('a')", "n"),
    ("import os", "line 1"),
    ("a, b = 1, 2", "line 1"),
    ("n = ", "line 1"),
])
def test_a_parameters_cell_of_anything_but_literals_is_refused(code, message):
    with pytest.raises(InputError) as error:
        notebook.literals(code, "x.ipynb")
    assert "x.ipynb" in str(error.value) and message in str(error.value)


def test_annotations_comments_negatives_and_none_are_literals():
    code = "a: int = 1  # how many\nb = -0.5\nc = None\nd = {'x': [1]}\ne = (1, 2)"
    assert notebook.literals(code, "") == {"a": 1, "b": -0.5, "c": None, "d": {"x": [1]},
                                             "e": (1, 2)}
