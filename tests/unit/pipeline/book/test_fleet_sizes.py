"""The table and the figure of the page "Many machines", from what was simulated."""

import json

import pytest

from labbook import paths
from labbook.pipeline.book import fleet_sizes
from labbook.pipeline.book.markup import row

ONE = {"seconds": 36000.0, "busy_s": 36000.0, "own_s": 3600.0, "longest_s": 7200.0}
TEN = {"seconds": 7200.0, "busy_s": 54000.0, "own_s": 27000.0, "longest_s": 7200.0}


@pytest.fixture
def simulated(book):
    folder = paths.checkout() / "data/benchmarks/simulated"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "fleet.json").write_text(json.dumps({"sizes": {"1": ONE, "10": TEN}}))


def test_the_table_has_a_row_a_size_and_the_figure_its_values(simulated):
    page = fleet_sizes.page()
    assert row(fleet_sizes.HEADS, ("10", "2.0 h", "5.0", "75%", "50%")) in page
    assert "<title>10 machines: 2.0 h</title>" in page and "is 50% of what 10 machines measure" in page
    assert "the longest repeat takes 2.0 h" in page and "Beyond 1 machine," in page


def test_what_was_measured_is_a_row_a_size(book):
    folder = paths.checkout() / "data/benchmarks/measured"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "fleet.json").write_text(json.dumps({
        "repeats": 6, "on": "a machine", "seconds": {"1": [40, 60, 44], "2": [20, 40, 22], "0": [10, 15, 11]}}))
    page = fleet_sizes.measured()
    for cells in (("1", "44 s", "1.00"), ("2", "22 s", "2.00 (1.50 to 2.00)"),
                  ("no fleet", "11 s", "4.00 (4.00 to 4.00)")):
        assert row(fleet_sizes.HEADS, cells) in page
    assert "3 rounds of 6 repeats on a machine" in page


def test_a_checkout_in_which_nothing_was_simulated_says_so(book):
    assert "Nothing was simulated" in fleet_sizes.page() and "Nothing was measured" in fleet_sizes.measured()
