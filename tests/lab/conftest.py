"""Small labs of the tests' own, always taken down."""

import pytest
from small_labs import describe, new_id

from labbook.lab import Environment, Lab


@pytest.fixture(scope="module")
def pair():
    """Two hosts in one site."""
    with Lab.up(describe({"h1": {}, "h2": {}}), Environment("local"), new_id()) as lab:
        yield lab
