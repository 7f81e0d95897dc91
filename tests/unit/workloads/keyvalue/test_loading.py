"""Loading many rows: every one as asked, what failed again, and what is reported meanwhile."""

import json
import threading
import time

import pytest
import runners
from here import HereCrew, calls_spec, dead_port, here_host, null_server, target  # noqa: F401

from labbook.errors import InputError, SystemFailure
from labbook.workloads.clients.on_host import engine
from labbook.workloads.keyvalue import loading, protocols
from labbook.workloads.keyvalue.loading import load_pairs
from labbook.workloads.keyvalue.on_host import loader as loading_runner
from labbook.workloads.keyvalue.wire.pairs import WrongValue

PROTOCOLS = ["thrift", "cql"]
ASKED = dict(rows=300, value_bytes=4096, seed=1)


@pytest.fixture
def crew(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    return HereCrew(here_host(tmp_path, "c1"))


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("values", ["random", "dots"])
def test_a_load_and_what_it_tells(crew, null_server, protocol, values, capsys):  # noqa: F811
    server = null_server(protocol, value_bytes=4096, values=values)
    load = load_pairs(crew, server, **ASKED, values=values)
    rows, metrics = load.rows, load.metrics
    assert list(rows) == ["client", "host", "started_s", "seconds", "rows", "again", "cpu_s"]
    assert rows.rows.tolist() == [75] * 4 and set(rows.host) == {"c1"}
    assert metrics["again"] == 0 and 200 <= metrics["sampled"] <= 202
    assert metrics["mb_per_s"] == pytest.approx(300 * 4096 / 1e6 / metrics["seconds"])
    assert metrics["mb_per_s_per_client_core"] == pytest.approx(
        300 * 4096 / 1e6 / rows.cpu_s.sum())
    assert 0 < metrics["clients_cpu_share"] and load.started <= time.time()
    assert "loaded 300 rows, 1 MB in" in capsys.readouterr().err


def test_values_are_random_unless_set(crew, null_server):  # noqa: F811
    with pytest.raises(WrongValue):
        load_pairs(crew, null_server("thrift", value_bytes=4096), **ASKED)
    load_pairs(crew, null_server("thrift", value_bytes=4096, values="random"), **ASKED)


def test_a_load_may_be_held_back(crew, null_server):  # noqa: F811
    server = null_server("thrift", value_bytes=16384, values="random")
    load = load_pairs(crew, server, rows=400, value_bytes=16384, most_mb_per_s=8)
    assert load.metrics["mb_per_s"] < 8.8     # without, hundreds


def test_fewer_rows_than_clients_and_larger_than_a_batch(crew, null_server):  # noqa: F811
    server = null_server("thrift", value_bytes=60_000, values="random")
    load = load_pairs(crew, server, rows=3, value_bytes=60_000)
    assert load.rows.rows.tolist() == [1, 1, 1] and load.metrics["sampled"] == 3
    assert load_pairs(crew, server, rows=1, value_bytes=60_000).metrics["sampled"] == 1


def test_a_server_that_is_not_there(crew, dead_port, monkeypatch):  # noqa: F811
    monkeypatch.setattr(loading, "TRIES", 2)
    with pytest.raises(RuntimeError, match="(?s)before they were ready.*refused"):
        load_pairs(crew, target(dead_port, "thrift"), **ASKED)


def test_a_server_that_dies_ends_the_load(crew, null_server, monkeypatch):  # noqa: F811
    monkeypatch.setattr(loading, "TRIES", 2)
    server = null_server("cql", value_bytes=4096, values="random")
    run = crew.run

    def run_and_kill(function, *arguments, timeout=60):
        if function is engine.start:
            threading.Timer(arguments[0][0] + 0.3 - time.time(), server.server.kill).start()
        return run(function, *arguments, timeout=timeout)

    crew.run = run_and_kill
    lost = "(?s)exit code 1.*client [0-3]: .*(refused|closed|reset)"
    with pytest.raises(RuntimeError, match=lost):
        load_pairs(crew, server, rows=900_000, value_bytes=4096)


def test_a_load_that_comes_no_further_fails(crew, null_server, monkeypatch):  # noqa: F811
    monkeypatch.setattr(loading, "STALL_SECONDS", -1)
    monkeypatch.setattr(loading, "LOOK_SECONDS", 0)
    server = null_server("thrift", value_bytes=4096, values="random")
    with pytest.raises(SystemFailure, match="stopped at row 0 of 900000"):
        load_pairs(crew, server, rows=900_000, value_bytes=4096)
    assert engine._running is None


@pytest.mark.parametrize("protocol, given, key", [
    ("mysql", {}, "protocol"), ("http", {}, "protocol"), ("keystone", {}, "protocol"),
    ("thrift", {"rows": 0}, "rows"), ("thrift", {"rows": 10**7}, "rows"),
    ("cql", {"value_bytes": 3}, "value_bytes"), ("cql", {"clients": 0}, "clients"),
    ("cql", {"values": "zeros"}, "values"), ("cql", {"consistency": "TWO"}, "consistency")])
def test_what_is_not_allowed_is_named(crew, protocol, given, key):
    with pytest.raises(InputError, match=f"^{key}: .*allowed"):
        load_pairs(crew, target(1, protocol), **ASKED | given)


class Short:
    """A store that is short of something: of each batch it takes the third try."""

    tried, written, connected = {}, [], 0

    def __init__(self, spec):
        self.spec = spec

    def connect(self):
        type(self).connected += 1

    def close(self):
        pass

    def write_many(self, rows, microseconds):
        tries = self.tried.setdefault(tuple(rows), [])
        tries.append(microseconds)
        if len(tries) < 3:
            raise TimeoutError("answered") if len(tries) == 1 else ConnectionError("lost")
        self.written += rows

    @staticmethod
    def keeps_connection(error):
        return isinstance(error, TimeoutError)


def loader(tmp_path, monkeypatch, **more):
    monkeypatch.setattr(protocols, "calls", Short)
    monkeypatch.setattr(loading_runner, "PAUSE_SECONDS", 0)
    Short.tried.clear(), Short.written.clear()
    Short.connected = 0
    spec = calls_spec(target(1, "cql")) | dict(
        rows=100, all_clients=3, clients=2, first_client=1, rows_a_batch=16, tries=3) | more
    done = [0, 0]
    return loading_runner.Loader(spec, 2, done, str(tmp_path / "part")), done


def test_what_was_not_acknowledged_is_written_again_with_the_same_time(tmp_path, monkeypatch):
    made, done = loader(tmp_path, monkeypatch)
    made.measure(time.time())
    assert Short.written == list(range(66, 100)) and done == [0, 34]
    assert all(len(tries) == 3 and len(set(tries)) == 1 for tries in Short.tried.values())
    assert Short.connected == 1 + 3  # anew for each of three batches
    head = json.loads((tmp_path / "part.head").read_text())
    assert (head["client"], head["rows"], head["again"]) == (2, 34, 6)


def test_what_fails_again_and_again_is_reported_to_all(tmp_path, monkeypatch):
    made, done = loader(tmp_path, monkeypatch, tries=2)
    with pytest.raises(ConnectionError):
        made.measure(time.time())
    assert done == [0, loading_runner.FAILED] and not (tmp_path / "part").exists()


def test_every_row_is_some_clients():
    for rows, clients in ((100, 3), (2, 2), (976_562, 7)):
        spec = dict(rows=rows, all_clients=clients)
        shares = [loading_runner.share_of(n, spec) for n in range(clients)]
        assert [row for share in shares for row in share] == list(range(rows))


@pytest.mark.parametrize("end", ["input closed", "killed"])
def test_loaders_end_with_what_started_them(null_server, end):  # noqa: F811
    server = null_server("thrift", value_bytes=4096, values="random")
    spec = calls_spec(server) | dict(rows=900_000, value_bytes=4096, values="random", clients=2,
                                     all_clients=2, first_client=0, rows_a_batch=1, tries=1,
                                     op="write", seed=1)
    with runners.ready("keyvalue.on_host.loader", spec, clients=2) as runner:
        if end == "input closed":
            runners.begin(runner)
            assert int(runner.stdout.readline()) > 0
            runner.stdin.close()
        else:
            runner.kill()
