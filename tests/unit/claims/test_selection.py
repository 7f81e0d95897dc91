"""Which points a claim needs."""

import pytest

from labbook.claims.selection import can_be_compared, fits, needs_point


def claim(**rule):
    return {"id": "x", "rule": {"name": "greater", **rule}}


OF_A = {"of": {"store": "a"}, "than": {"store": "b"}, "where": {"clients": {"at_least": 9}}}


@pytest.mark.parametrize("rule, params, needed", [
    (OF_A, {"store": "a", "clients": 9}, True),
    (OF_A, {"store": "b", "clients": 90}, True),
    (OF_A, {"store": "c", "clients": 90}, False),
    (OF_A, {"store": "a", "clients": 1}, False),
    ({"of": {"store": None}}, {"store": None}, True),
    ({"of": {"store": None}}, {"clients": 1}, False),
    ({**OF_A, "baseline": {"arm": {"clients": 0}}}, {"store": "a", "clients": 0}, True),
    ({**OF_A, "baseline": {"metric": "idle_ms"}}, {"store": "a", "clients": 0}, False),
    ({"along": "clients"}, {"store": "c", "clients": 1}, True),
    ({"name": "not_testable", "reason": "no disk"}, {"store": "a"}, False)])
def test_a_claim_needs_the_points_of_its_arms(rule, params, needed):
    assert needs_point(claim(**rule), params) is needed


def test_a_paired_point_is_needed_for_any_of_its_arms():
    assert needs_point(claim(**OF_A), {"store": "c", "clients": 9}, {"store": "b", "clients": 9})
    assert not needs_point(claim(**OF_A), {"store": "c", "clients": 9}, {"store": "b", "clients": 1})


A, B = {"store": "a", "clients": 9}, {"store": "b", "clients": 9}


@pytest.mark.parametrize("rule, params, can", [
    (OF_A, [A, B], True), (OF_A, [A], False), (OF_A, [B], False), (OF_A, [A, {"store": "b", "clients": 1}], False),
    ({"along": "clients", "of": {"store": "a"}}, [A, {"store": "a", "clients": 1}], True),
    ({"along": "clients", "of": {"store": "a"}}, [A, {"store": "b", "clients": 1}], False),
    ({**OF_A, "baseline": {"arm": {"clients": 0}}}, [A, B], False), ({}, [A], True), ({}, [], False)])
def test_a_claim_can_be_decided_where_there_is_all_that_it_compares(rule, params, can):
    assert can_be_compared(claim(**rule), params) is can


RATE = {"metric": "rate", "rule": {"name": "greater", **OF_A}}
ROW = {"store": "a", "clients": 9, "rate": 1.0}


@pytest.mark.parametrize("rows, parameters, fitting", [
    ([ROW], ("store", "clients"), True), ([], (), False),
    ([ROW], ("store",), False),                                             # `clients` came later
    ([ROW | {"rate": None}], ("store", "clients"), False), ([{"store": "a", "clients": 9}], ("store", "clients"), False),
    ([ROW | {"clients": 1}], ("store", "clients"), False)])                 # only others have the metric
def test_published_points_fit_a_claim_if_they_have_its_parameters_and_metric(rows, parameters, fitting):
    assert fits(RATE, rows, parameters) is fitting
