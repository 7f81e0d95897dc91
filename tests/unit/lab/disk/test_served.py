"""The log of served requests: a ring of entries, read in the order of service."""

import struct

import pytest

from labbook.lab.disk import served

ENTRY = struct.Struct("<QQQQQIIIIHBBI")     # as struct entry in on_host/modelled_disk/model.c


def entry(number, **values):
    has = {"arrived": 1_000_000, "started": 2_000_000, "ended": 12_000_000, "replied": 12_040_000, "place": 4096,
           "size": 512, "seek": 3_000_000, "rotation": 4_000_000, "pid": 7, "waiting": 2, "write": 1, "failed": 0}
    return ENTRY.pack(*{**has, **values}.values(), number)


def test_an_entry_s_columns_and_their_units():
    assert ENTRY.size == served.BYTES
    row = served.frame(entry(5), offset_s=100.0).iloc[0]
    assert row["number"] == 5 and row["t_s"] == pytest.approx(100.001) and row["place"] == 4096
    assert (row["wait_ms"], row["seek_ms"], row["rotation_ms"], row["service_ms"]) == (1, 3, 4, 10)
    assert row["late_ms"] == pytest.approx(0.04)
    assert row["write"] and not row["failed"] and row["size_bytes"] == 512 and row["waiting"] == 2


def test_a_ring_that_has_come_round_is_in_the_order_of_service():
    log = b"".join(entry(number) for number in (4, 5, 2, 3))
    assert list(served.frame(log)["number"]) == [2, 3, 4, 5]
    assert list(served.frame(log, after=4)["number"]) == [4, 5]


def test_an_empty_log_has_all_columns():
    assert list(served.frame(b"").columns) == list(served.COLUMNS)
    assert len(served.frame(entry(1) + entry(2)[:30])) == 1, "an entry that is being written is left out"
