"""Parameters are checked by name and type."""

import pytest

from labbook.errors import InputError
from labbook.study import parameters


def test_an_empty_list_is_refused_where_there_are_values():
    with pytest.raises(InputError, match="nothing to measure.*1, 2"):
        parameters.check({"clients": []}, {"clients": [1, 2]}, "cms.ipynb")


def test_a_mixed_list_takes_the_types_it_shows():
    defaults = {"sizes": [1, "all"]}
    assert parameters.check({"sizes": ["all", 3]}, defaults, "")
    with pytest.raises(InputError, match="list of int or str"):
        parameters.check({"sizes": [2.5]}, defaults, "")
