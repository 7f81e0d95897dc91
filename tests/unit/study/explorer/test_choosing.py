"""Raw rows by parameters: one point, or an error that names what there is."""

import pandas as pd
import pytest
from study_stand_ins import operations

from labbook.errors import InputError
from labbook.study.explorer import choosing
from labbook.study.paired import Slice

GRID = {"setup": {"system": ["a", "b"]}, "vary": {"clients": [1, 10], "sync": [True, None]}}


@pytest.fixture
def speed(make, measure):
    study, speed = make(repeats=2, **GRID)
    for number, point in enumerate(speed.remaining()):
        with study.attempt(point) as attempt:
            attempt.record([{"seconds": 1.0, "number": number}], series={"disk": pd.DataFrame({"at": [number]})})
    return speed


def refused(match, call, *given, **parameters):
    with pytest.raises(InputError, match=match):
        call(*given, **parameters)


def test_one_point_by_its_parameters(speed):
    point = next(p for p in speed.points() if (p.system, p.clients, p.sync, p.repeat) == ("b", 10, True, 2))
    chosen = speed.rows(clients=10.0, system="b", sync=True, repeat=2)
    assert chosen.equals(speed.rows(point)) and len(chosen) == 1
    series = speed.series("disk", repeat=2, sync=True, clients=10, system="b")
    assert series.equals(speed.series(point, "disk")) and list(series["at"]) == list(chosen["number"])


def test_a_parameter_may_be_true_or_nothing(speed):
    rows = speed.rows(clients=1, system="a", sync=None, repeat=1)
    assert not rows.equals(speed.rows(clients=1, system="a", sync=True, repeat=1))
    refused("sync: none of 16 recorded points has 1", speed.rows, sync=1)


def test_errors_name_the_parameter_and_its_values(speed):
    refused(r"experiment speed: client: no such parameter, did you mean 'clients'\?.*system, clients, sync, repeat",
            speed.rows, client=1)
    refused(r"speed: clients: none of 8 recorded points with system='a' has 90 \(allowed: 1, 10\)",
            speed.rows, system="a", clients=90)
    refused("clients: none of 16 recorded points has '10'", speed.rows, clients="10")
    refused("has 'bb', did you mean 'b'", speed.rows, system="bb")
    refused(r"4 points match system='a', clients=10 .*name also: sync None, True; repeat 1, 2",
            speed.rows, system="a", clients=10)
    refused("16 points match", speed.rows)
    refused("no series 'disc', did you mean 'disk'", speed.series, "disc", system="a", clients=1, sync=True, repeat=1)
    refused("either a point or its parameters", speed.rows, speed.points()[0], clients=1)
    refused("none of 16 recorded points has", speed.rows, clients=[1, 10])


def test_without_records_nothing_can_be_chosen(make):
    _, speed = make()
    refused("no point is recorded on this machine", speed.rows, clients=1)


def test_points_of_another_grid_are_found_where_the_notebooks_has_none(speed, make):
    _, smaller = make(setup={"system": ["a"]}, vary={"clients": [1], "sync": [True]})
    assert len(smaller.rows(repeat=2)) == 1, "of its own grid there is one"
    assert len(smaller.rows(system="b", clients=10, sync=None, repeat=2)) == 1


def test_of_paired_arms_the_chosen_ones_rows(make):
    study, speed = make(paired={"system": ["a", "b"]}, vary={"clients": [1]})
    for point in speed.remaining():
        with study.attempt(point) as attempt:
            slices = attempt.slices(1)
            for one in slices:
                one.rows = operations(3 if one.arm == "a" else 5)
            attempt.record_slices(slices)
    assert isinstance(slices[0], Slice)
    assert len(speed.rows(clients=1)) == 8 and len(speed.rows(system="b")) == 5
    refused(r"none of 1 recorded points has 'c' \(allowed: 'a', 'b'\)", speed.rows, system="c")


def test_a_table_of_several_points_tells_them_apart(speed):
    records = speed.study.records("speed")
    given = {"clients": 10, "system": "a"}
    found = choosing.chosen(choosing.all_of(records), given, "speed")
    table = choosing.table(records, found, given)
    assert list(table)[:2] == ["sync", "repeat"] and len(table) == 4
    one = choosing.table(records, found[:1], given)
    assert list(one) == ["seconds", "number"]


def test_a_column_of_the_rows_is_no_parameter(make):
    study, speed = make(setup={"system": ["a", "b"]}, vary={"number": [1, 2]})
    for point in speed.remaining():
        with study.attempt(point) as attempt:
            attempt.record([{"number": 7}])
    records = study.records("speed")
    metas = choosing.chosen(choosing.all_of(records), {"system": "a"}, "speed")
    table = choosing.table(records, metas, {"system": "a"})
    assert [(row.number, row.row_number) for row in table.itertuples()] == [(1, 7), (2, 7)]


@pytest.mark.parametrize("text, value", [("10", 10), ("true", True), ("True", True), ("None", None), ("null", None),
                                         ("[1", "[1"), ("2026-13-01", "2026-13-01")])
def test_text_of_the_command_line(speed, text, value):
    metas = choosing.all_of(speed.study.records("speed"))
    name = "clients" if text == "10" else "sync"
    assert choosing.from_text(metas, name, text) == value
    assert choosing.from_text([{"setup": {"v": "1.10"}, "vary": {}, "repeat": 1}], "v", "1.10") == "1.10"
