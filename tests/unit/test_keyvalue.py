"""The clients' process and its rows, against null servers on loopback."""

import json
import socket
import struct
import subprocess
import sys
import threading
import time

import pytest
from here import HereCrew, free_port, here_host, null_server, target  # noqa: F401 (a fixture)

from labbook.errors import InputError
from labbook.workloads import keyvalue_host
from labbook.workloads.keyvalue import fill, keyvalue, shares
from labbook.workloads.mysql_calls import MySQLCalls
from labbook.workloads.pairs import WrongValue
from labbook.workloads.thrift_calls import ThriftCalls, idl

LOAD = dict(op="read", clients=3, requests=50, rows=4, value_bytes=100, warmup_requests=5, seed=1,
            seconds_at_most=10)
PROTOCOLS = ["thrift", "mysql"]
CALLS = {"thrift": ThriftCalls, "mysql": MySQLCalls}


@pytest.fixture
def crew(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    return HereCrew(here_host(tmp_path, "c1"))


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("op", ["read", "write"])
def test_one_row_a_call(crew, null_server, protocol, op):  # noqa: F811
    load = keyvalue(crew, null_server(protocol), **LOAD | {"op": op})
    rows = load.rows
    assert list(rows) == ["client", "host", "started_s", "seconds", "ok", "error"]
    assert rows.groupby("client").size().to_dict() == {0: 50, 1: 50, 2: 50}
    assert rows.ok.all() and (rows.error == "").all() and (rows.host == "c1").all()
    assert (rows.seconds > 0).all() and rows.started_s.between(-0.001, 10).all()
    gaps = rows.groupby("client").started_s.diff() - rows.groupby("client").seconds.shift()
    assert (gaps.dropna() >= 0).all()  # a closed loop: the next call waits for the answer
    assert load.measures["truncated"] == 0 and 0 < load.measures["clients_cpu_share"] <= 1
    assert load.measures["rate_per_s"] == pytest.approx(
        150 / ((rows.started_s + rows.seconds).max() - rows.started_s.min()))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_wrong_value_is_an_error_row(crew, null_server, protocol):  # noqa: F811
    load = keyvalue(crew, null_server(protocol, value_bytes=50), **LOAD)
    assert not load.rows.ok.any()
    assert load.rows.error.str.startswith("WrongValue: ").all()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_client_that_cannot_connect_says_so_in_its_rows(crew, protocol):
    load = keyvalue(crew, target(free_port(), protocol), **LOAD | {"requests": 10})
    assert len(load.rows) == 30 and not load.rows.ok.any()
    assert load.rows.error.str.contains("refused").all()
    assert load.measures["rate_per_s"] == 0


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_server_that_dies_leaves_rows_of_both_kinds(crew, null_server, protocol):  # noqa: F811
    server = null_server(protocol)
    run = crew.run

    def run_and_kill(function, *arguments, timeout):
        if function is keyvalue_host.go:
            start = arguments[0][0]
            threading.Timer(start + 0.5 - time.time(), server.server.kill).start()
        return run(function, *arguments, timeout=timeout)

    crew.run = run_and_kill
    load = keyvalue(crew, server, **LOAD | {"requests": 100_000, "seconds_at_most": 2})
    by_client = load.rows.groupby("client").ok
    assert by_client.first().all() and not by_client.last().any()


def test_the_time_limit_ends_the_load_and_is_told(crew, null_server):  # noqa: F811
    load = keyvalue(crew, null_server("thrift"),
                    **LOAD | {"requests": 100_000, "seconds_at_most": 0.3})
    assert load.measures["truncated"] == 1 and 0 < len(load.rows) < 300_000
    assert load.rows.started_s.max() <= 0.3


def test_fill_checks_what_it_wrote(crew, null_server):  # noqa: F811
    fill(crew, null_server("thrift"), rows=3, value_bytes=100)
    with pytest.raises(WrongValue):
        fill(crew, null_server("thrift", value_bytes=20), rows=3,
             value_bytes=100)


@pytest.mark.parametrize("clients, hosts, counts", [(70, 1, [70]), (7, 3, [3, 2, 2]), (1, 2, [1])])
def test_clients_are_spread_evenly(clients, hosts, counts):
    specs = shares({}, clients, hosts)
    assert [s["clients"] for s in specs] == counts
    numbers = [s["first_client"] + i for s in specs for i in range(s["clients"])]
    assert numbers == list(range(clients))


@pytest.mark.parametrize("given, key", [({"op": "scan"}, "op"),
                                        ({"consistency": "TWO"}, "consistency"),
                                        ({"value_bytes": 3}, "value_bytes")])
def test_what_is_not_allowed_is_named(crew, given, key):
    with pytest.raises(InputError, match=f"^{key}: .*allowed"):
        keyvalue(crew, target(1, "thrift"), **LOAD | given)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_answers_in_pieces_are_put_together(null_server, protocol):  # noqa: F811
    """One byte a packet, then a reply that equals the one checked before."""
    calls = CALLS[protocol](spec(null_server(protocol).port, protocol))
    calls.connect()
    whole = calls._receive
    calls._receive = lambda size: whole(1)
    if protocol == "mysql":
        calls._socket = OneByteAtATime(calls._socket)
    calls.read(0)
    calls.read(0)
    calls.write(0)
    calls._receive = whole
    calls.read(0)
    assert calls._checked.keys() == {0}


class OneByteAtATime:
    def __init__(self, whole):
        self.whole = whole

    def recv(self, size):
        return self.whole.recv(1)


def test_a_server_that_hangs_is_an_error_within_the_calls_limit():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        calls = ThriftCalls(spec(silent.getsockname()[1], "thrift") | {"call_seconds": 0.2})
        begin = time.monotonic()
        with pytest.raises(OSError) as caught:
            calls.connect()
        assert time.monotonic() - begin < 2
        assert not calls.keeps_connection(caught.value)


def test_what_cassandra_raises_is_raised_and_keeps_the_connection(null_server):  # noqa: F811
    calls = ThriftCalls(spec(null_server("thrift").port, "thrift"))
    calls.connect()
    calls.read(0)
    body = struct.pack(">II", 0x80010002, 3) + b"get" + struct.pack(">IbhB", 0, 12, 4, 0) + b"\0"
    whole, calls._receive = calls._receive, lambda size: whole(size) and framed(body)
    with pytest.raises(idl().TimedOutException) as caught:
        calls.read(0)
    assert calls.keeps_connection(caught.value)
    calls._receive = whole
    calls.read(0)


def framed(body):
    return struct.pack(">I", len(body)) + body


def spec(port, protocol):
    return dict(protocol=protocol, address="127.0.0.1", port=port, rows=1, value_bytes=100,
                consistency="ONE", call_seconds=5)


def test_writes_carry_the_time_they_are_made():
    calls = ThriftCalls(spec(1, "thrift"))
    sent = []
    calls._send = lambda request: sent.append(bytes(request))
    calls._receive = lambda size: framed(
        struct.pack(">II", 0x80010002, 6) + b"insert" + struct.pack(">I", 0) + b"\0")
    before = time.time_ns() // 1000
    calls.write(0)
    calls.write(0)
    stamps = [struct.unpack(">q", request[calls._writes[0][1]:][:8])[0] for request in sent]
    assert before <= stamps[0] <= stamps[1] <= time.time_ns() // 1000


@pytest.mark.parametrize("end", ["input closed", "killed"])
def test_clients_end_with_what_started_them(null_server, end):  # noqa: F811
    waiting = spec(null_server("thrift").port, "thrift") | LOAD | {"first_client": 0}
    runner = subprocess.Popen(
        [sys.executable, "-m", "labbook.workloads.keyvalue_runner", json.dumps(waiting), "out"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        start_new_session=True)
    with runner:
        assert runner.stdout.readline() == b"ready\n"
        assert len(_session(runner.pid)) == 1 + LOAD["clients"]
        runner.stdin.close() if end == "input closed" else runner.kill()
    until = time.monotonic() + 20
    while _session(runner.pid) and time.monotonic() < until:
        time.sleep(0.05)
    assert not _session(runner.pid)


def _session(leader: int) -> list[str]:
    return subprocess.run(["pgrep", "-s", str(leader)], capture_output=True,
                          text=True).stdout.split()
