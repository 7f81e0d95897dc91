"""Clients that commit, against the null server on loopback."""

from types import SimpleNamespace

import pytest
from here import HereCrew, dead_port, here_host, null_server, target  # noqa: F401 (fixtures)
from pymysql.err import OperationalError

from labbook.errors import InputError
from labbook.workloads.clients.on_host import engine
from labbook.workloads.transactions.commits import commits_side_by_side
from labbook.workloads.transactions.on_host.writers import Writer

LOAD = dict(clients=2, writes=3, value_bytes=20, seconds=0.5)
COLUMNS = ["client", "host", "call", "step", "started_s", "seconds", "ok", "error"]


@pytest.fixture
def crew(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    yield HereCrew(here_host(tmp_path, "c1"))
    engine.clear()


def test_one_row_a_call_and_two_a_transaction(crew, null_server):  # noqa: F811
    load, = commits_side_by_side(crew, [null_server("mysql")], **LOAD)
    rows = load.rows
    assert list(rows) == COLUMNS and rows.ok.all(), rows.error.unique()
    calls = rows[rows.step == ""]
    assert set(calls.client) == {0, 1} and set(calls.host) == {"c1"}
    for step in ("insert", "commit"):
        assert (rows.step == step).sum() == 3 * len(calls) > 0
    inner = rows[rows.step != ""].groupby(["client", "call"]).seconds.sum()
    assert (calls.set_index(["client", "call"]).seconds >= inner).all()
    assert load.metrics["clients_cpu_ms_per_call"] > 0 and len(load.metrics["issued_per_s"]) == 1


def test_a_server_that_is_not_there_is_rows(crew, dead_port):  # noqa: F811
    load, = commits_side_by_side(crew, [target(dead_port, "mysql")], **LOAD | {"seconds": 0.1})
    assert len(load.rows) and not load.rows.ok.any() and (load.rows.step == "").all()
    assert load.rows.error.str.contains("OperationalError").all()


def test_a_statement_that_fails_is_a_row_as_its_call_is(monkeypatch):
    class Cursor:
        def __enter__(self):
            return self

        def __exit__(self, *exception):
            pass

        def execute(self, statement):
            if statement == "COMMIT":
                raise OperationalError(1213, "deadlock")

    writer = Writer(dict(writes=2, value_bytes=5, table="t"), 0, "")
    monkeypatch.setattr(writer, "_connect", lambda: SimpleNamespace(cursor=Cursor, _force_close=lambda: None))
    writer._call(7, iter(range(100)).__next__)
    assert [(number, step, "deadlock" in error) for number, step, _, _, error in writer._calls] == [
        (7, "insert", False), (7, "commit", True), (7, "", True)]


@pytest.mark.parametrize("given, key", [({"clients": 0}, "clients"), ({"writes": 0}, "writes"),
                                        ({"value_bytes": -1}, "value_bytes")])
def test_what_is_not_allowed_is_named(crew, given, key):
    with pytest.raises(InputError, match=f"^{key}: "):
        commits_side_by_side(crew, [target(1, "mysql")], **LOAD | given)


def test_more_targets_than_hosts_and_another_protocol_are_refused(crew):
    with pytest.raises(InputError, match="2 targets for 1 client hosts"):
        commits_side_by_side(crew, [target(1, "mysql")] * 2, **LOAD)
    with pytest.raises(InputError, match="^protocol: .*mysql"):
        commits_side_by_side(crew, [target(1, "cql")], **LOAD)
