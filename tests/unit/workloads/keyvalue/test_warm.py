"""How a server is warmed: everything is filled first, and several servers get as many rounds each."""

from types import SimpleNamespace

import pytest

from labbook.workloads.keyvalue import contents


@pytest.fixture
def calls(monkeypatch):
    made = []
    monkeypatch.setattr(contents, "fill", lambda crew, target, **told: made.append(("fill", told)))
    monkeypatch.setattr(contents, "keyvalue", lambda crew, target, **told: made.append(("load", told)))
    return made


@pytest.mark.parametrize("target, servers", [
    (SimpleNamespace(protocol="cql", address="a"), 1), (SimpleNamespace(protocol="cql", address="a", addresses=["a", "b", "c"]), 3)])
def test_rounds_are_for_each_server(calls, target, servers):
    contents.fill_and_warm("crew", target, rows=7, value_bytes=50, rounds=2, requests=9, seconds=0.5)
    (first, told), *loads = calls
    assert first == "fill" and told["consistency"] == "ALL" and told["rows"] == 7
    assert len(loads) == 2 * 2 * 2 * servers
    assert [(load["op"], load["clients"]) for _, load in loads[:4]] == [
        ("read", 10), ("read", 1), ("write", 10), ("write", 1)]


def test_no_rounds_leave_a_server_cold_but_filled(calls):
    contents.fill_and_warm("crew", SimpleNamespace(protocol="cql", address="a"), rows=1, value_bytes=50, rounds=0,
                       requests=9, seconds=0.5)
    assert [what for what, _ in calls] == ["fill"]
