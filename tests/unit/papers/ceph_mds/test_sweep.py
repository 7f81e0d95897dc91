"""Rates over numbers of directories, and what is off their trend."""

import pytest
from paper_stand_ins import point

from labbook.papers.ceph_mds import sweep


def test_all_numbers_are_measured_in_an_order_of_the_point():
    found = sweep.in_turn(point(least=8, most=24, step=4))
    assert sorted(found) == [8, 12, 16, 20, 24] and found == sweep.in_turn(point(least=8, most=24, step=4))


def test_a_number_off_the_trend_of_all_others_has_a_residual():
    rates = {number: 1000 * number**-0.2 for number in (8, 12, 16, 20, 24)}
    found = sweep.sweep_metrics(rates)
    assert found["create_residual_16"] == pytest.approx(1) and found["create_per_s_8"] == rates[8]
    assert found["create_most_over_least"] == pytest.approx(3**-0.2)
    assert found["create_per_s_beyond"] == pytest.approx((rates[20] + rates[24]) / 2)
    found = sweep.sweep_metrics(rates | {16: 1.27 * rates[16]})
    assert found["create_residual_16"] == pytest.approx(1.27) and found["create_residual_12"] < 1
