"""Clients that call until they are stopped: their rows, their rate, and their end."""

import json
import os
import signal
import time

import pandas as pd
import pytest
import runners
from here import HereCrew, calls_spec, dead_port, here_host, null_server, target  # noqa: F401 (a fixture)

from labbook.errors import InputError
from labbook.study.summary import summarise
from labbook.workloads.clients import driver
from labbook.workloads.clients.on_host import engine
from labbook.workloads.clients.rows import from_due, rate_metrics
from labbook.workloads.keyvalue import protocols
from labbook.workloads.keyvalue.load import begin_pairs
from labbook.workloads.keyvalue.on_host import callers

STREAM = dict(op="read", clients=3, rows=1000, value_bytes=4096, values="random", seed=1,
              seconds_at_most=30)
PROTOCOLS = ["thrift", "cql"]


@pytest.fixture
def crew(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    return HereCrew(here_host(tmp_path, "c1"))


@pytest.fixture
def serve(null_server):  # noqa: F811
    return lambda protocol="thrift", **more: null_server(
        protocol, **dict(value_bytes=4096, values="random") | more)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("op", ["read", "write"])
def test_a_stream_is_a_row_a_call(crew, serve, protocol, op):
    before = time.time()
    stream = begin_pairs(crew, serve(protocol), **STREAM | {"op": op, "warmup_requests": 2})
    assert before < stream.started < time.time()
    time.sleep(0.3)
    elapsed_s = time.time() - stream.started
    load = stream.end()
    rows = load.rows
    assert stream.end() is load and load.started == stream.started
    assert list(rows) == ["client", "host", "started_s", "seconds", "ok", "error"]
    assert rows.ok.all() and (rows.error == "").all() and (rows.host == "c1").all()
    assert (rows.seconds > 0).all() and rows.started_s.min() > -0.001
    assert rows.started_s.max() < time.time() - stream.started and elapsed_s > 0.3
    assert sorted(rows.client.unique()) == [0, 1, 2]
    gaps = rows.groupby("client").started_s.diff() - rows.groupby("client").seconds.shift()
    assert (gaps.dropna() >= -1e-9).all()  # a closed loop: the next call waits for the answer
    metrics = load.metrics
    assert metrics["truncated"] == 0 and 0 < metrics["clients_cpu_share"] <= 1
    assert metrics["rate_per_s"] == pytest.approx(
        len(rows) / ((rows.started_s + rows.seconds).max() - rows.started_s.min()))
    assert metrics["clients_cpu_us_per_call"] > 0 and "latest_s" not in metrics


def test_a_rate_is_never_exceeded_and_each_has_its_own_times(crew, serve):
    stream = begin_pairs(crew, serve(), **STREAM, rate_per_s=60)
    time.sleep(1)
    load = stream.end()
    assert len(load.rows) <= 1 + 60 * (time.time() - load.started)
    rows = load.rows.sort_values(["client", "started_s"])
    turn = rows.groupby("client").cumcount()
    due, late = (rows.client + turn * 3) / 60, rows.seconds - rows.service_s
    assert (rows.started_s - due).abs().max() < 1e-9 and len(rows) >= 3
    assert (late > -1e-9).all() and load.metrics["latest_s"] == pytest.approx(late.max())


def test_a_stall_is_in_the_times_of_all_calls_that_were_due_in_it(crew, serve):
    """Of a server that stops, at 100 calls a second: each of them waited until it went on, and one was under way."""
    server = serve()
    stream = begin_pairs(crew, server, **STREAM | {"clients": 1, "say_seconds": 0.05}, rate_per_s=100)
    server.server.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, server.server.pid, os.WSTOPPED)
    stopped = time.time() - stream.started
    time.sleep(1)
    went_on = time.time() - stream.started
    server.server.send_signal(signal.SIGCONT)
    until = time.monotonic() + 20
    while stream.calls_made(20) <= went_on * 100 and time.monotonic() < until:
        pass
    rows = stream.end().rows
    due = rows[(rows.started_s > stopped) & (rows.started_s < went_on)]
    schedule = [call / 100 for call in range(int(went_on * 100) + 1)]
    assert due.started_s.tolist() == pytest.approx([at for at in schedule if stopped < at < went_on])
    ends = rows.started_s + rows.seconds
    assert len(due) and (ends[due.index] > went_on).all()
    assert ((ends - rows.service_s < went_on) & (ends > went_on)).sum() == 1
    found = summarise(rows)
    assert found["service_p99_ms"] < found["p99_ms"]


def test_a_low_rate_does_not_hold_up_the_end(crew, serve):
    stream = begin_pairs(crew, serve(), **STREAM, rate_per_s=0.01)
    load = stream.end()
    assert len(load.rows) == 1 and load.rows.client.tolist() == [0]


class Slow:
    """A client whose second call takes long; the tenth is its last."""

    def __init__(self, stopped, seconds):
        self.stopped, self.seconds, self.made = stopped, seconds, 0

    def __call__(self, row):
        self.made += 1
        if self.made == 2:
            time.sleep(self.seconds)
        if self.made == 10:
            self.stopped[0] = 1


def test_late_calls_follow_at_once(tmp_path, monkeypatch):
    """After 0.5 s of one call those due meanwhile are made; none is left out."""
    monkeypatch.setattr(protocols, "calls", lambda spec: Calls())
    stopped = bytearray(1)
    spec = calls_spec(target(1, "thrift")) | STREAM | dict(
        rate_per_s=20, first_client=0, all_clients=1, warmup_requests=0)
    client = callers.StreamClient(spec, 0, str(tmp_path / "part"), stopped, memoryview(bytearray(8)).cast("q"))
    client.call, client.connected = Slow(stopped, 0.5), True
    client.measure(time.time())
    raw = (tmp_path / "part").read_bytes()
    rows = pd.DataFrame(callers.ROW.iter_unpack(raw),
                        columns=["started_s", "seconds", "error"]).assign(client=0)
    assert len(rows) == 10 and (rows.started_s >= rows.index / 20 - 1e-6).all()
    made = from_due(rows, 20, 1)
    assert rate_metrics(made, 20, 1)["latest_s"] >= 0.44  # the third was due at 0.1 and began after 0.05 + 0.5
    assert (made.seconds[2:5] > 0.3).all() and (made.service_s[2:] < made.seconds[2]).all()
    head = json.loads((tmp_path / "part.head").read_text())
    assert (head["client"], head["rows"], head["texts"]) == (0, 10, [])


class Calls:
    def connect(self):
        pass

    close = read = connect


def test_how_late_calls_were_and_which_were_not_made():
    rows = pd.DataFrame({"client": [1, 0, 0, 1], "started_s": [0.1, 0.0, 0.9, 0.3], "seconds": 0.01})
    made = from_due(rows, 10, 2)
    assert made.started_s.tolist() == pytest.approx([0.1, 0, 0.2, 0.3])
    assert made.seconds.tolist() == pytest.approx([0.01, 0.01, 0.71, 0.01])
    assert rate_metrics(made, 10, 2) == {"latest_s": pytest.approx(0.7), "not_made": 2 + 2}


def test_the_time_limit_ends_a_stream_and_is_reported(crew, serve):
    stream = begin_pairs(crew, serve(), **STREAM | {"seconds_at_most": 0.2})
    time.sleep(0.4)
    load = stream.end()
    assert load.metrics["truncated"] == 1 and load.rows.started_s.max() <= 0.2


def test_clients_say_how_many_calls_they_have_made_so_far(crew, serve):
    stream = begin_pairs(crew, serve(), **STREAM, say_seconds=0.05)
    found, until = [], time.monotonic() + 20
    while len(set(found)) < 5 and time.monotonic() < until:
        found.append(stream.calls_made(20))
    assert len(set(found)) == 5 and found == sorted(found)
    assert 0 < found[-1] <= len(stream.end().rows)


def test_a_client_makes_no_more_calls_than_it_may(crew, serve):
    stream = begin_pairs(crew, serve(), **STREAM, requests_at_most=4, say_seconds=0.05)
    until = time.monotonic() + 20
    while stream.calls_made(20) < 12 and time.monotonic() < until:
        pass
    assert stream.calls_made(20) == 12
    assert stream.end().rows.groupby("client").size().tolist() == [4, 4, 4]


def test_rows_come_in_pieces(crew, serve, monkeypatch, tmp_path):
    """And through the clients' own files, which are written to several times."""
    monkeypatch.setattr(driver, "CHUNK_BYTES", 1000)
    stream = begin_pairs(crew, serve(value_bytes=10),
                         **STREAM | {"value_bytes": 10, "seconds_at_most": 120})
    until = time.monotonic() + 60
    while written_to(tmp_path) < 3 and time.monotonic() < until:
        time.sleep(0.1)
    assert written_to(tmp_path) == 3
    rows = stream.end().rows
    counts = rows.groupby("client").size()
    assert (counts * callers.ROW.size > callers.BUFFER_BYTES).all()
    starts = rows.groupby("client").started_s
    assert rows.ok.all() and all(of_client.is_monotonic_increasing for _, of_client in starts)
    assert not list(tmp_path.glob("labbook-clients-*"))


def written_to(folder) -> int:
    return sum(part.stat().st_size > 0 for part in folder.glob("labbook-clients-*/out.*"))


def test_a_server_that_dies_leaves_rows_of_both_kinds(crew, serve):
    server = serve()
    stream = begin_pairs(crew, server, **STREAM)
    time.sleep(0.3)
    server.server.kill()
    server.server.wait()
    killed = time.time() - stream.started
    time.sleep(0.3)
    rows = stream.end().rows
    by_client = rows.groupby("client").ok
    met = ~by_client.all()      # a client that no core had time for has met nothing
    assert rows.ok.any() and met.any() and not by_client.last()[met].any()
    assert not rows.ok[rows.started_s > killed].any()
    assert rows.error[~rows.ok].str.contains("refused|closed|reset").all()
    refused = rows[rows.error.str.contains("refused")].groupby("client").started_s.diff()
    assert (refused.dropna() >= callers.LOST_SECONDS).all()


def test_clients_that_cannot_connect_say_so(crew, dead_port):  # noqa: F811
    stream = begin_pairs(crew, target(dead_port, "cql"), **STREAM)
    load = stream.end()
    assert len(load.rows) and not load.rows.ok.any()
    assert load.rows.error.str.contains("refused").all() and load.metrics["rate_per_s"] == 0


def test_wrong_values_are_error_rows(crew, serve):
    stream = begin_pairs(crew, serve(values="dots"), **STREAM, rate_per_s=100)
    time.sleep(0.2)
    rows = stream.end().rows
    assert len(rows) and not rows.ok.any()
    assert rows.error.str.contains("WrongValue: |other errors").all()  # no more texts are kept


@pytest.mark.parametrize("given, key", [
    ({"requests_at_most": 0}, "requests_at_most"), ({"say_seconds": 0}, "say_seconds"),
    ({"rate_per_s": 0}, "rate_per_s"), ({"rate_per_s": -1}, "rate_per_s"),
    ({"op": "update"}, "op"), ({"clients": 0}, "clients"),
    ({"seconds_at_most": 0}, "seconds_at_most"), ({"values": "zeros"}, "values"), ({"consistency": "ANY"}, "consistency")])
def test_what_is_not_allowed_is_named(crew, given, key):
    with pytest.raises(InputError, match=f"^{key}: .*allowed"):
        begin_pairs(crew, target(1, "thrift"), **STREAM | given)


def test_random_values_are_cassandras_alone(crew):
    with pytest.raises(InputError, match="^protocol: .*allowed"):
        begin_pairs(crew, target(1, "mysql"), **STREAM)


def test_hosts_whose_clocks_differ_start_together(crew, serve):
    starts, run = [], crew.run

    def on_a_host_with_another_clock(function, *arguments, timeout):
        if function is engine.start:
            starts.extend(arguments[0])
            arguments = ([arguments[0][0] - 2],)
        return run(function, *arguments, timeout=timeout)

    crew.clock_offsets, crew.run = lambda: [(2.0, 0.3)], on_a_host_with_another_clock
    stream = begin_pairs(crew, serve(), **STREAM)
    load = stream.end()
    assert starts[0] == stream.started + 2 and load.metrics["start_spread_s"] >= 0.6


def test_clients_end_with_the_input_of_what_started_them(serve, tmp_path):
    spec = calls_spec(serve()) | STREAM | dict(
        first_client=0, all_clients=3, warmup_requests=0, rate_per_s=None)
    with runners.ready("keyvalue.on_host.callers", spec, tmp_path / "out", clients=3) as runner:
        runners.begin(runner)
        time.sleep(0.2)
        runner.stdin.close()
