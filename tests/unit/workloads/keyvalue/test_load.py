"""The clients' process and its rows, against null servers on loopback."""

import threading
import time
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
import runners
from here import HereCrew, calls_spec, dead_port, here_host, null_server, target  # noqa: F401 (a fixture)

from labbook.errors import InputError
from labbook.workloads.clients.cpu import server_cpu
from labbook.workloads.clients.on_host import engine
from labbook.workloads.keyvalue import protocols
from labbook.workloads.keyvalue.contents import fill
from labbook.workloads.keyvalue.load import check_load, in_turns, keyvalue
from labbook.workloads.keyvalue.on_host import callers
from labbook.workloads.keyvalue.on_host import contents
from labbook.workloads.keyvalue.wire.pairs import WrongValue

LOAD = dict(op="read", clients=3, requests=50, rows=4, value_bytes=100, warmup_requests=5, seed=1,
            seconds_at_most=10)
PROTOCOLS = ["thrift", "cql", "mysql"]


@pytest.fixture
def crew(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    return HereCrew(here_host(tmp_path, "c1"))


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("op", ["read", "write", "both"])
def test_one_row_a_call(crew, null_server, protocol, op):  # noqa: F811
    load = keyvalue(crew, null_server(protocol), **LOAD | {"op": op})
    rows = load.rows
    assert list(rows) == ["client", "host", "started_s", "seconds", "ok", "error"]
    assert rows.groupby("client").size().to_dict() == {0: 50, 1: 50, 2: 50}
    assert rows.ok.all() and (rows.error == "").all() and (rows.host == "c1").all()
    assert (rows.seconds > 0).all() and rows.started_s.between(-0.001, 10).all()
    gaps = rows.groupby("client").started_s.diff() - rows.groupby("client").seconds.shift()
    assert (gaps.dropna() >= 0).all()  # a closed loop: the next call waits for the answer
    assert load.metrics["truncated"] == 0 and 0 < load.metrics["clients_cpu_share"] <= 1
    assert load.metrics["rate_per_s"] == pytest.approx(
        150 / ((rows.started_s + rows.seconds).max() - rows.started_s.min()))


def rows_drawn(number, spec, count=50):
    """By a client in a closed loop and by one of a stream."""
    loop = callers.ClosedLoopClient(spec | {"requests": count}, number, "part")
    stream = callers.StreamClient(spec | {"rate_per_s": None, "all_clients": 2}, number, "part", b"", b"")
    return loop.rows, [int(stream.draw.random() * spec["rows"]) for _ in range(count)]


def test_each_client_draws_rows_of_its_own_that_follow_from_the_seed(monkeypatch):
    monkeypatch.setattr(callers.Client, "warm_up", lambda client: None)
    spec = calls_spec(target(1, "thrift")) | LOAD | {"rows": 10_000}
    first, second = rows_drawn(0, spec), rows_drawn(1, spec)
    assert first == rows_drawn(0, spec) != rows_drawn(0, spec | {"seed": 2})
    for one, other in zip(first, second):
        assert one != other and len(set(one) & set(other)) < 10


@pytest.mark.parametrize("kind", [0, 1], ids=["closed loop", "stream"])
def test_what_clients_draw_is_independent(monkeypatch, kind):
    """Of 12 clients each draws evenly, and no two draw the same row at a turn more often than chance."""
    monkeypatch.setattr(callers.Client, "warm_up", lambda client: None)
    spec = calls_spec(target(1, "thrift")) | LOAD | {"rows": 10}
    drawn = np.array([rows_drawn(number, spec, 2000)[kind] for number in range(12)])
    for one, other in combinations(drawn, 2):
        assert 0.05 < (one == other).mean() < 0.15     # a tenth, with a deviation of 0.007
        assert 0.05 < (one[1:] == other[:-1]).mean() < 0.15
    for of_client in drawn:
        assert 0.05 < np.bincount(of_client, minlength=10).min() / 2000


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_wrong_value_is_an_error_row(crew, null_server, protocol):  # noqa: F811
    load = keyvalue(crew, null_server(protocol, value_bytes=50), **LOAD)
    assert not load.rows.ok.any()
    assert load.rows.error.str.startswith("WrongValue: ").all()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_client_that_cannot_connect_says_so_in_its_rows(crew, dead_port, protocol):  # noqa: F811
    load = keyvalue(crew, target(dead_port, protocol), **LOAD | {"requests": 10})
    assert len(load.rows) == 30 and not load.rows.ok.any()
    assert load.rows.error.str.contains("refused").all()
    assert load.metrics["rate_per_s"] == 0


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_server_that_dies_leaves_rows_of_both_kinds(crew, null_server, protocol):  # noqa: F811
    server = null_server(protocol)
    run = crew.run

    def run_and_kill(function, *arguments, timeout):
        if function is engine.run:
            start = arguments[0][0]
            threading.Timer(start + 0.5 - time.time(), server.server.kill).start()
        return run(function, *arguments, timeout=timeout)

    crew.run = run_and_kill
    load = keyvalue(crew, server, **LOAD | {"requests": 100_000, "seconds_at_most": 2})
    by_client = load.rows.groupby("client").ok
    met = ~by_client.all()      # a client that no core had time for has met nothing
    assert load.rows.ok.any() and met.any() and not by_client.last()[met].any()


def test_the_time_limit_ends_the_load_and_is_reported(crew, null_server):  # noqa: F811
    load = keyvalue(crew, null_server("thrift"),
                    **LOAD | {"requests": 100_000, "seconds_at_most": 0.3})
    assert load.metrics["truncated"] == 1 and 0 < len(load.rows) < 300_000
    assert load.rows.started_s.max() <= 0.3


def test_when_the_clients_are_ready_they_have_warmed_up_and_not_started(crew, null_server):  # noqa: F811
    done, run = [], crew.run

    def note(function, *arguments, timeout):
        done.append(function)
        return run(function, *arguments, timeout=timeout)

    crew.run = note
    keyvalue(crew, null_server("thrift"), **LOAD, when_ready=lambda: done.append("ready"))
    assert done.index(engine.prepare) < done.index("ready") < done.index(engine.run)


def test_a_client_of_each_store_calls_in_its_turns(crew, null_server, dead_port):  # noqa: F811
    settings = {name: value for name, value in LOAD.items() if name != "clients"} | {
        "requests": 100_000, "seconds_at_most": 1.2}
    first, second = in_turns(crew, [null_server("thrift"), null_server("mysql")], turn_seconds=0.1, **settings)
    for load, places in ((first, {0, 3}), (second, {1, 2})):     # A B, B A
        assert load.rows.ok.all() and load.metrics["clients_cpu_us_per_call"] > 0
        assert set((load.rows.started_s // 0.1).astype(int) % 4) == places
    assert first.started == second.started
    there, dead = in_turns(crew, [null_server("thrift"), target(dead_port, "mysql")], turn_seconds=0.02,
                           **settings | {"requests": 20})
    assert there.rows.ok.all() and len(there.rows) == 20 and not dead.rows.ok.any() and len(dead.rows)


def test_fill_checks_what_it_wrote(crew, null_server):  # noqa: F811
    fill(crew, null_server("thrift"), rows=3, value_bytes=100)
    with pytest.raises(WrongValue):
        fill(crew, null_server("thrift", value_bytes=20), rows=3, value_bytes=100)


class Slow:
    """Calls of which the first two of each row are answered by an error of the server's."""

    calls, attempts = [], {}

    def __init__(self, spec):
        self.spec = spec

    def connect(self):
        pass

    close = connect

    def write(self, row):
        self.attempts[row] = self.attempts.get(row, 0) + 1
        if self.attempts[row] < 3:
            raise TimeoutError("answered")
        self.calls.append((self.spec["consistency"], self.spec["address"], row))

    read = write

    @staticmethod
    def keeps_connection(error):
        return True


def test_fill_goes_over_all_servers_at_the_level_asked_and_reads_at_all(monkeypatch):
    monkeypatch.setattr(protocols, "calls", Slow)
    Slow.calls.clear(), Slow.attempts.clear()
    spec = calls_spec(target(1, "cql"), rows=100, addresses=["a", "b", "c"], consistency="ANY")
    contents.fill(spec, "ALL")
    written, read = sorted(Slow.calls[:100]), sorted(Slow.calls[100:])
    assert {level for level, _, _ in written} == {"ANY"} and {r[0] for r in read} == {"ALL"}
    for done in (written, read):
        assert {address for _, address, _ in done} == {"a", "b", "c"}
        assert sorted(row for _, _, row in done) == list(range(100))


@pytest.mark.parametrize("protocol, given, key", [
    ("thrift", {"op": "scan"}, "op"),
    ("thrift", {"op": "update"}, "op"),
    ("cql", {"op": "update"}, "op"),
    ("http", {"op": "update"}, "op"),
    ("thrift", {"op": "insert"}, "op"),
    ("cql", {"consistency": "TWO"}, "consistency"),
    ("thrift", {"consistency": "ANY"}, "consistency"),  # a read
    ("mysql", {"value_bytes": 3}, "value_bytes"),
    ("mysql", {"rows": 10_000_000}, "rows"),
    ("redis", {}, "protocol")])
def test_what_is_not_allowed_is_named(crew, protocol, given, key):
    with pytest.raises(InputError, match=f"^{key}: .*allowed"):
        keyvalue(crew, target(1, protocol), **LOAD | given)


@pytest.mark.parametrize("given, key", [
    ({"rows": 0}, "rows"), ({"clients": 0}, "clients"), ({"requests": 0}, "requests"),
    ({"warmup_requests": -1}, "warmup_requests"), ({"seconds_at_most": 0}, "seconds_at_most"),
    ({"value_bytes": 5}, "value_bytes"), ({"op": "scan"}, "op"), ({"consistency": "ANY"}, "consistency")])
def test_a_load_can_be_checked_before_there_is_a_store(given, key):
    settings = {name: value for name, value in LOAD.items() if name != "seed"}
    check_load(**settings)
    check_load(**settings | {"op": "update"})
    with pytest.raises(InputError, match=f"^{key}: .*allowed"):
        check_load(**settings | given)


def test_a_write_may_be_at_any_and_mysql_updates(crew, null_server):  # noqa: F811
    few = LOAD | {"requests": 5}
    for protocol in ("thrift", "cql"):
        load = keyvalue(crew, null_server(protocol), **few | {"op": "write", "consistency": "ANY"})
        assert load.rows.ok.all()
    for op in ("update", "insert"):
        assert keyvalue(crew, null_server("mysql"), **few | {"op": op}).rows.ok.all()


def test_clients_go_round_over_the_servers(crew, null_server):  # noqa: F811
    """All of one port: clients 0 and 3 find no server at the first address, the others do."""
    server = null_server("thrift", address="127.0.0.2")
    server.addresses = ["127.0.0.3", "127.0.0.2", "127.0.0.2"]
    load = keyvalue(crew, server, **LOAD | {"clients": 6, "requests": 5})
    by_client = load.rows.groupby("client").ok
    assert by_client.all().tolist() == [False, True, True] * 2 == by_client.any().tolist()


def test_the_cpu_of_several_servers_is_summed(crew, null_server, tmp_path):  # noqa: F811
    server = null_server("thrift")
    one = SimpleNamespace(pid=server.server.pid, host=here_host(tmp_path, "server"))
    load = LOAD | {"requests": 3000}
    server.process = one
    assert keyvalue(crew, server, **load).metrics["server_cpu_us_per_call"] > 0
    ten = SimpleNamespace(processes=[one] * 10)
    before, of_ten, begin = server_cpu(server), server_cpu(ten), server_cpu(server)
    assert 0 < 10 * before <= of_ten + 1e-6 and of_ten <= 10 * begin + 1e-6
    server.processes = ten.processes
    load = keyvalue(crew, server, **load)
    used, once = load.metrics["server_cpu_us_per_call"] * len(load.rows) / 1e6, server_cpu(SimpleNamespace(process=one)) - begin
    assert once < used <= 10 * once + 1e-6


@pytest.mark.parametrize("offset", [-2.0, 2.0])
def test_hosts_whose_clocks_differ_start_together(crew, null_server, offset):  # noqa: F811
    starts = []
    run = crew.run

    def on_a_host_with_another_clock(function, *arguments, timeout):
        if function is engine.run:
            starts.extend(arguments[0])
            arguments = [arguments[0][0] - offset], *arguments[1:]
        return run(function, *arguments, timeout=timeout)

    crew.clock_offsets, crew.run = lambda: [(offset, 0.3)], on_a_host_with_another_clock
    before = time.time()
    load = keyvalue(crew, null_server("thrift"), **LOAD)
    assert before < starts[0] - offset < time.time()
    assert load.rows.started_s.between(-0.001, 5).all() and len(load.rows) == 150
    assert load.metrics["start_spread_s"] >= 0.6


@pytest.mark.parametrize("end", ["input closed", "killed"])
def test_clients_end_with_what_started_them(null_server, tmp_path, end):  # noqa: F811
    waiting = calls_spec(null_server("thrift")) | LOAD | {
        "first_client": 0, "requests": 500_000, "seconds_at_most": 600}
    with runners.ready("keyvalue.on_host.callers", waiting, tmp_path / "out", LOAD["clients"]) as runner:
        runner.stdin.close() if end == "input closed" else runner.kill()
