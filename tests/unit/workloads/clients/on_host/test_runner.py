"""The program that runs a host's clients, and the engine that starts it."""

import os
import signal
import time
from types import SimpleNamespace

import pytest
import runners

from labbook.workloads.clients.driver import shares
from labbook.workloads.clients.on_host import engine, program, runner
from labbook.workloads.clients.on_host.runner import results

PROGRAM = """
import gc, importlib, os, sys, time
from labbook.workloads.clients.on_host import runner
from labbook.workloads.clients.on_host.runner import (
    Runner, main, save_part, say, sleep_until, until_input_closes)

LOADED = []

class Client:
    def __init__(self, number, part, does):
        if does == "die before" and number == 1:
            raise ValueError("no server")
        self.number, self.part, self.does = number, part, does

    def measure(self, start):
        if self.does == "import":
            return save_part(self.part, client=self.number, loaded=LOADED)
        zero = sleep_until(start)
        while self.does == "call for ever":
            pass
        if self.does == "die" and self.number == 1:
            raise ValueError("lost")
        save_part(self.part, bytes([self.number]) * (self.number + 1), client=self.number,
                  late_s=(time.perf_counter_ns() - zero) / 1e9, frozen=gc.get_freeze_count(),
                  collects=gc.isenabled())

class Kind(Runner):
    def client(self, number):
        return Client(number, self.part(number), self.spec["does"])

    def __init__(self, spec, out):
        super().__init__(spec, out)
        if not spec.get("kernel_ends_them", True):
            runner.end_with = lambda parent: None
        if spec["does"] == "import":
            LOADED[:] = [name for name in (spec["imports"], spec["keeps_out"]) if name in sys.modules]
            importlib.import_module(spec["imports"])
            sys.modules[spec["keeps_out"]] = None

    def lead(self, forks):
        if self.spec["does"] == "go on":
            say(7)
            until_input_closes()
        return forks.wait()

if __name__ == "__main__":
    sys.exit(main(Kind))
"""


@pytest.fixture
def prepare(tmp_path, monkeypatch):
    (tmp_path / "kind_of_client.py").write_text(PROGRAM)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("HOME", str(tmp_path))
    yield lambda does, **more: engine.prepare(
        "kind_of_client", dict(does=does, clients=3, first_client=4) | more, 20)
    engine.clear()
    while program._servers:
        program._servers.popitem()[1].end()
    assert not list(tmp_path.glob("labbook-clients-*"))


def test_results_are_heads_and_rows_client_after_client(prepare):
    prepare("measure")
    size = engine.run(time.time() + 0.1, 20)
    raw = engine.chunk(0, 10, False) + engine.chunk(10, size, True)
    heads, rows = results(raw)
    assert [head["client"] for head in heads] == [4, 5, 6]
    assert bytes(rows) == bytes([4] * 5 + [5] * 6 + [6] * 7)
    assert all(0 <= head["late_s"] < 10 for head in heads)


def test_no_client_collects_garbage_while_it_measures(prepare):
    prepare("measure")
    heads, _ = results(engine.chunk(0, engine.run(time.time(), 20), True))
    assert [head["collects"] for head in heads] == [False] * 3
    assert all(head["frozen"] > 1000 for head in heads)   # what was there before the fork


def test_clients_do_not_outlive_the_program_that_forked_them(prepare):
    prepare("call for ever")
    engine.start(time.time())
    leader = engine._running[0]
    runners.await_work(leader.pid)
    os.kill(leader.pid, signal.SIGKILL)
    runners.await_end(leader.pid)                         # though nobody clears up
    with pytest.raises(RuntimeError, match="exit code -9"):
        engine.finish(20)


def test_clearing_ends_clients_whose_program_has_been_killed(prepare):
    prepare("call for ever", kernel_ends_them=False)
    engine.start(time.time())
    leader = engine._running[0]
    runners.await_work(leader.pid)
    os.kill(leader.pid, signal.SIGKILL)
    while str(leader.pid) in (alive := runners.session(leader.pid)):
        time.sleep(0.01)
    assert len(alive) == 3
    engine.clear()
    runners.await_end(leader.pid)


def test_a_client_that_dies_fails_its_host(prepare):
    with pytest.raises(RuntimeError, match="before they were ready: client 1: ValueError: no serv"):
        prepare("die before", first_client=0)
    prepare("die", first_client=0)
    with pytest.raises(RuntimeError, match="exit code 1: client 1: ValueError: lost"):
        engine.run(time.time(), 20)


def test_programs_are_forked_from_one_process_that_has_what_they_imported(prepare):
    prepare("measure")
    engine.run(time.time(), 20)
    first = program._servers["kind_of_client"].process
    prepare("measure")
    heads, _ = results(engine.chunk(0, engine.run(time.time(), 20), True))
    assert heads and program._servers["kind_of_client"].process is first and first.poll() is None


def test_a_program_gets_what_an_earlier_one_imported_or_kept_out(prepare):
    prepare("import", imports="plistlib", keeps_out="wave")
    heads, _ = results(engine.chunk(0, engine.run(time.time(), 20), True))
    assert heads[0]["loaded"] == []
    prepare("import", imports="plistlib", keeps_out="wave")
    heads, _ = results(engine.chunk(0, engine.run(time.time(), 20), True))
    assert heads[0]["loaded"] == ["plistlib", "wave"]


def test_a_fork_server_that_was_killed_is_replaced(prepare):
    prepare("measure")
    engine.clear()
    killed = program._servers["kind_of_client"].process
    killed.kill()
    killed.wait()
    prepare("measure")
    assert engine.run(time.time(), 20) > 0


def test_a_fork_server_that_is_killed_fails_its_program_and_ends_it(prepare):
    prepare("call for ever")
    leader = engine._running[0].pid
    program._servers["kind_of_client"].process.kill()
    with pytest.raises(RuntimeError, match="exit code 1"):
        engine.run(time.time(), 20)
    runners.await_end(leader)


def test_a_program_that_does_not_even_end_when_killed_is_left_behind(prepare, monkeypatch):
    monkeypatch.setattr(program, "KILLED_SECONDS", 0.2)
    prepare("call for ever")
    server = program._servers["kind_of_client"].process
    server.send_signal(signal.SIGSTOP)          # so that nobody says that the program has ended
    with pytest.raises(RuntimeError, match="did not end within 0.2 s"):
        engine.run(time.time(), 0.2)
    prepare("measure")
    assert program._servers["kind_of_client"].process is not server and engine.run(time.time(), 20) > 0


def test_progress_until_the_input_is_closed(prepare):
    prepare("go on")
    engine.start(time.time())
    assert engine.progress(20) == (7, True) and engine.progress(0) == (None, True)
    assert engine.finish(20) > 0


def test_an_end_that_does_not_come_in_time_is_a_failure(prepare):
    prepare("measure")
    with pytest.raises(RuntimeError, match="did not end within 0.2 s"):
        engine.run(time.time() + 60, 0.2)


@pytest.mark.parametrize("clients, hosts, counts", [(70, 1, [70]), (7, 3, [3, 2, 2]), (1, 2, [1])])
def test_clients_are_spread_evenly(clients, hosts, counts):
    specs = shares({"clients": clients}, hosts)
    assert [spec["clients"] for spec in specs] == counts
    numbers = [spec["first_client"] + i for spec in specs for i in range(spec["clients"])]
    assert numbers == list(range(clients))
    assert {spec["all_clients"] for spec in specs} == {clients}


def test_a_client_that_waited_for_a_core_between_two_clocks_takes_another_look(monkeypatch):
    """It took its reads for 0.2 s later than they were, so that a history had stale ones."""
    now, waits = [5_000_000_000], iter([0, 200_000_000, *[1000] * 20])

    def clock(ahead):
        def read():
            now[0] += next(waits)
            return now[0] + ahead
        return read

    monkeypatch.setattr(runner, "time", SimpleNamespace(perf_counter_ns=clock(0), time_ns=clock(1_000_000_000)))
    assert abs(runner.moment(6.0) - 5_000_000_000) < 10_000
