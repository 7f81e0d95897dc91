"""Keystone's clients and their rows, against the null server on loopback."""

import http.client
import json
import os
import random
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from here import HereCrew, dead_port, here_host, null_server, target  # noqa: F401 (a fixture)

from labbook.errors import InputError
from labbook.workloads.clients.on_host import engine as clients_engine
from labbook.workloads.histories.calls import metrics
from labbook.workloads.keystone import users
from labbook.workloads.keystone.on_host import runner as keystone_runner
from labbook.workloads.keystone.on_host.calls import STEPS, KeystoneCall
from labbook.workloads.keystone.on_host.runner import OutOfTime, at_most
from labbook.workloads.keystone.rally import SCENARIOS as RALLY_SCENARIOS
from labbook.workloads.keystone.users import (
    begin_users,
    host_specs,
    keystone_users,
    keystone_users_side_by_side,
)

LOAD = dict(scenario="create_user", concurrency=3, times=10, seconds_at_most=20)
STREAM = dict(scenario="create_user", concurrency=2, seconds_at_most=20, call_seconds=5)
PASSWORD = "do not tell anyone"
COLUMNS = ["client", "host", "call", "step", "started_s", "seconds", "ok", "error", "user"]

# What rally-openstack 4.1.0 sends in an iteration, as seen.
OF_RALLY = ["GET /v3", "GET /v3", "POST /v3/auth/tokens", "GET /v3", "GET /",
            "POST /v3/auth/tokens", "GET /", "GET /v3/domains/Default",
            "GET /v3/domains?name=Default", "POST /v3/users", "GET /v3/users/{id}"]


def credentials(port: int) -> dict:
    return {"auth_url": f"http://127.0.0.1:{port}/v3", "username": "admin", "password": PASSWORD,
            "project": "admin", "domain": "Default"}


def keystone_at(port: int, **more):
    return target(port, "keystone", credentials=credentials(port), **more)


@pytest.fixture
def crew(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    yield HereCrew(here_host(tmp_path, "c1"))
    clients_engine.clear()


@pytest.fixture
def server(null_server):  # noqa: F811
    found = null_server("keystone")
    found.credentials = credentials(found.port)
    return found


@pytest.mark.parametrize("scenario", STEPS)
def test_one_row_a_call_and_a_step(crew, server, scenario):
    load = keystone_users(crew, server, **LOAD | {"scenario": scenario})
    rows = load.rows
    assert list(rows) == COLUMNS
    assert rows.ok.all(), rows.error.unique()
    for step in ("", *STEPS[scenario]):
        assert (rows.step == step).sum() == 10
    calls, steps = rows[rows.step == ""], rows[rows.step != ""]
    assert calls.client.nunique() == 3 and calls.user.nunique() == 10
    inner = steps.groupby(["client", "call"]).seconds.sum()
    assert (calls.set_index(["client", "call"]).seconds >= inner).all()
    gaps = calls.groupby("client").started_s.diff() - calls.groupby("client").seconds.shift()
    assert (gaps.dropna() >= 0).all()  # a closed loop
    assert (rows.started_s >= -0.001).all() and abs(time.time() - load.started) < 30
    metrics = load.metrics
    assert metrics["truncated"] == 0 and 0 < metrics["clients_cpu_share"] <= 1
    assert metrics["clients_cpu_ms_per_call"] > 0 and "server_cpu_ms_per_call" not in metrics
    assert metrics["rate_per_s"] == pytest.approx(
        10 / ((calls.started_s + calls.seconds).max() - calls.started_s.min()))


@pytest.fixture
def requests(monkeypatch):
    """The requests that are sent in this process."""
    requests, put = [], http.client.HTTPConnection.putrequest

    def noted(self, method, url, *more, **options):
        requests.append(f"{method} {url}")
        return put(self, method, url, *more, **options)

    monkeypatch.setattr(http.client.HTTPConnection, "putrequest", noted)
    return requests


def make(call, scenario) -> list[str]:
    """What rally-openstack sends in an iteration that creates a user, after all steps of the call are made."""
    for step in STEPS[scenario]:
        getattr(call, step)()
    assert call.user.startswith("labbook-")
    return [request.format(id=f"{0:032x}") for request in OF_RALLY]


@pytest.mark.parametrize("scenario", RALLY_SCENARIOS)
def test_a_call_sends_what_rally_sends(server, scenario, requests):
    expected = make(KeystoneCall(server.credentials), scenario)
    assert requests == expected + ["GET /v3/users"] * (scenario == "create_and_list_users")


def test_a_project_is_one_more_request_before_the_user(server, requests):
    expected = make(KeystoneCall(server.credentials), "create_project_and_user")
    at = expected.index("POST /v3/users")
    assert requests == [*expected[:at], "POST /v3/projects", *expected[at:]]


def test_a_client_that_has_logged_in_sends_one_request_a_call(server, requests):
    login = KeystoneCall(server.credentials).logged_in()
    requests.clear()
    for _ in range(2):
        make(KeystoneCall(server.credentials, login=login), "one_post")
    assert requests == ["POST /v3/users"] * 2


@pytest.fixture
def pausing(tmp_path, monkeypatch):
    """Lets a client measure for 20 s by a clock of the test's own, by which a call takes 0.1 s: when it made its calls,
    and its pauses."""
    def measure(number=0, **spec):
        clock, made, pauses = [0.0], [], []

        def sleep(seconds):
            pauses.append(seconds)
            clock[0] += seconds

        def call(_, now):
            made.append(now())
            clock[0] += 0.1

        monkeypatch.setattr(keystone_runner, "time", SimpleNamespace(
            sleep=sleep, perf_counter_ns=lambda: round(clock[0] * 1e9)))
        client = keystone_runner.Client(dict(STREAM, credentials={}, clients=1, times=1000, seed=1, think_s=0.4) | spec,
                                        number, str(tmp_path / "part"), lambda: True)
        client.call = call
        client.measure(0.0)
        return made, pauses

    monkeypatch.setattr(keystone_runner, "sleep_until", lambda start: 0)
    return measure


def test_a_client_pauses_before_each_call_as_its_seed_and_its_number_say(pausing):
    made, pauses = pausing()
    draw = random.Random("1 0")
    assert pauses[:-1] == [draw.expovariate(1 / 0.4) for _ in made] and len(made) > 10
    assert all(later - call == pytest.approx(0.1 + pause) for call, later, pause in zip(made, made[1:], pauses[1:]))
    assert pausing() == (made, pauses)
    firsts = {tuple(pausing(**other)[1][:3]) for other in ({}, {"number": 1}, {"seed": 2})}
    assert len(firsts) == 3


def test_no_call_is_made_after_a_pause_that_the_end_of_the_load_cuts_short(pausing):
    made, pauses = pausing(think_s=100.0)
    assert (made, pauses) == ([], [20])


def test_without_pauses_a_client_calls_on(pausing):
    made, pauses = pausing(think_s=0.0)
    assert not pauses and len(made) == 200


def test_pauses_are_the_same_on_each_target(monkeypatch):
    specs = []
    monkeypatch.setattr(users, "side_by_side", lambda crew, runner, of_hosts, *_: specs.extend(of_hosts) or [])
    keystone_users_side_by_side(SimpleNamespace(hosts=["c1", "c2"]), [keystone_at(1), keystone_at(2)],
                                scenario="create_user", concurrency=2, seconds=3, think_s=0.4, seed=7)
    assert [(spec["think_s"], spec["seed"], spec["first_client"]) for spec in specs] == [(0.4, 7, 0)] * 2


def test_clients_that_pause_make_their_calls(crew, server):
    load, = keystone_users_side_by_side(crew, [server], scenario="create_user", concurrency=2, seconds=1, think_s=0.01)
    assert len(load.rows) and load.rows.ok.all()


def test_a_server_that_is_not_there_is_rows(crew, dead_port):  # noqa: F811
    load = keystone_users(crew, keystone_at(dead_port), **LOAD | {"times": 6})
    rows = load.rows
    assert len(rows) == 12 and not rows.ok.any() and (rows.user == "").all()
    assert rows.error.str.contains("refused").all()
    assert rows.step.unique().tolist() == ["authenticate", ""]  # what comes after is not tried
    assert load.metrics["rate_per_s"] == 0


def test_the_time_limit_ends_the_load_and_is_reported(crew, server):
    load = keystone_users(crew, server, **LOAD | {"times": 5000, "seconds_at_most": 0.5})
    assert load.metrics["truncated"] == 1 and load.rows.started_s.max() <= 20
    assert 0 < (load.rows.step == "").sum() < 5000


def test_a_stream_goes_on_until_it_is_ended(crew, server):
    before = time.time()
    stream = begin_users(crew, [server], **STREAM)
    assert before < stream.started < time.time()
    time.sleep(1)
    load, = stream.end()
    calls = load.rows[load.rows.step == ""]
    assert load.started == stream.started and stream.end()[0] is load
    assert calls.ok.all() and calls.user.nunique() == len(calls) and set(calls.client) == {0, 1}
    assert 0 < calls.started_s.max() < 10 and len(calls) > 2 and load.metrics["truncated"] == 0


def test_a_streams_history_shows_that_a_server_stores_nothing(crew, server):
    stream = begin_users(crew, [server], **STREAM | {"scenario": "create_and_list_users"})
    time.sleep(1)
    load, = stream.end()
    found, made = metrics(load.history, load.slack_s), set(load.rows.user) - {""}
    assert {call.key for call in load.history} == made | {""}    # a list has no key
    assert found["checked_calls"] == 3 * len(made) and found["unknown_calls"] == 0
    assert found["stale_reads"] >= len(made) > 0
    assert not keystone_users(crew, server, **LOAD).history


def test_a_stream_whose_server_dies_has_rows_of_both_kinds(crew, server):
    stream = begin_users(crew, [server], **STREAM)
    time.sleep(0.7)
    server.server.kill()
    time.sleep(0.5)
    rows = stream.end()[0].rows
    by_client = rows.groupby("client").ok
    met = ~by_client.all()      # a client that no core had time for has met nothing
    assert rows.ok.any() and met.any() and not by_client.last()[met].any()


def test_a_call_without_an_answer_ends_after_its_time(crew, server):
    """And the client makes its next one."""
    stream = begin_users(crew, [server], **STREAM | {"call_seconds": 0.5})
    server.server.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, server.server.pid, os.WSTOPPED)
    stopped = time.time() - stream.started
    time.sleep(1.5)
    rows = stream.end()[0].rows
    calls = rows[rows.step == ""]
    failed = calls[~calls.ok]
    assert len(failed) and set(failed.client) == {0, 1}
    assert (failed.error == "OutOfTime: no answer within 0.5 s").all()
    assert not calls.ok[calls.started_s > stopped].any(), "nobody answered"


def test_a_stream_that_nobody_ends_makes_no_new_call_after_its_time(crew, server):
    stream = begin_users(crew, [server], **STREAM | {"seconds_at_most": 0.5})
    time.sleep(3)
    load, = stream.end()
    assert load.rows[load.rows.step == ""].started_s.max() < 2
    assert load.metrics["truncated"] == 1


@pytest.mark.parametrize("offset", [-2.0, 2.0])
def test_times_are_by_our_clock_whatever_the_hosts_say(crew, server, offset):
    run = crew.run

    def on_a_host_with_another_clock(function, *arguments, timeout=60):
        if function in (clients_engine.run, clients_engine.start):
            arguments = [arguments[0][0] - offset], *arguments[1:]
        return run(function, *arguments, timeout=timeout)

    crew.clock_offsets, crew.run = lambda: [(offset, 0.3)], on_a_host_with_another_clock
    stream = begin_users(crew, [server], **STREAM)
    ended = time.time()
    load, = stream.end()
    first = load.started + load.rows.started_s.min()
    assert stream.started - 0.01 <= first <= ended + 5
    assert load.metrics["start_spread_s"] >= 0.6


def test_the_password_is_in_no_command_line_and_no_row(crew, server, tmp_path):
    stream = begin_users(crew, [server], **STREAM)
    process, folder = clients_engine._running
    command_line = open(f"/proc/{process.pid}/cmdline").read()
    files_text = "".join(f.read_text() for f in folder.iterdir())
    rows = stream.end()[0].rows
    assert "keystone.on_host.runner" in command_line and PASSWORD not in command_line + files_text + rows.to_csv()


def test_calls_are_shared_out_as_clients_are():
    specs = host_specs(dict(clients=5, times=21), 2)
    assert [(s["clients"], s["times"]) for s in specs] == [(3, 12), (2, 9)]
    assert [s["clients"] for s in host_specs(dict(clients=1, times=4), 3)] == [1]


@pytest.mark.parametrize("given, key", [
    ({"scenario": "delete_user"}, "scenario"), ({"concurrency": 0}, "concurrency"),
    ({"times": 2}, "times"), ({"times": 10**6}, "times"), ({"seconds_at_most": 0}, "seconds_at_most")])
def test_what_is_not_allowed_is_named(crew, given, key):
    with pytest.raises(InputError, match=f"^{key}: .*allowed"):
        keystone_users(crew, keystone_at(1), **LOAD | given)


def test_another_protocol_is_not_asked(crew):
    with pytest.raises(InputError, match="^protocol: .*keystone"):
        begin_users(crew, [target(1, "mysql")], **STREAM)
    with pytest.raises(InputError, match="^call_seconds: "):
        begin_users(crew, [keystone_at(1)], **STREAM | {"call_seconds": 0})
    with pytest.raises(InputError, match="^scenario: .*create_and_list_users"):     # its history would lack writes
        begin_users(crew, [keystone_at(1)], **STREAM | {"scenario": "one_post"})


def test_a_limit_interrupts_what_swallows_it():
    with pytest.raises(OutOfTime):
        with at_most(0.1):
            try:
                time.sleep(5)
            except OutOfTime:  # as a destructor would lose it
                time.sleep(5)
    with at_most(0.1):
        pass
    time.sleep(0.3)


def test_a_stream_ends_with_the_engine_that_started_it(server, tmp_path):
    spec = json.dumps(STREAM | dict(credentials=server.credentials, clients=2, first_client=0, think_s=0.0, seed=0,
                                    times=None))
    with subprocess.Popen(
            [sys.executable, "-m", keystone_runner.__name__, str(tmp_path / "out")], bufsize=0,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True) as runner:
        runner.stdin.write(spec.encode() + b"\n")
        assert runner.stdout.readline() == b"ready\n"
        runner.stdin.write(f"{time.time()}\n".encode())
        time.sleep(0.3)
        runner.stdin.close()
        assert runner.wait(20) == 0
