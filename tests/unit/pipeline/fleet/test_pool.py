"""A pool at work with machines that are lost, slow, full or of other code: every point comes home once."""

from collections import Counter
from types import SimpleNamespace

import pytest
from fake_machines import Call, Clock, Engines, Machine

from labbook.errors import LabError
from labbook.pipeline.fleet import engines
from labbook.pipeline.fleet.home import Home
from labbook.pipeline.fleet.pool import Batch, Needs, Pool
from labbook.pipeline.fleet.scheduler import Job, Point
from labbook.pipeline.fleet.simulated import simulate

PATIENCE_S = 60.0


@pytest.fixture
def records(tmp_path, monkeypatch):
    monkeypatch.setenv("LABBOOK_RECORDS", str(tmp_path / "records"))
    return tmp_path


def key(repeat, number):
    return f"{repeat:010x}{number:010x}"


def jobs(repeats=4, points=3):
    return [Job("s", "e", repeat, tuple(Point(key(repeat, i), str(i), 0.0, 10.0) for i in range(points)))
            for repeat in range(1, repeats + 1)]


class Client:
    """In place of ipyparallel's: an engine on each machine that is up."""

    def __init__(self, machines):
        self.engines = dict(enumerate(machines))

    @property
    def ids(self):
        return [number for number, machine in self.engines.items() if machine.up]

    def __getitem__(self, number):
        if number not in self.ids:
            raise IndexError(f"No such engine: {number}")
        return SimpleNamespace(apply_async=lambda function, *arguments: Call(
            self.engines[number], function.__name__, arguments))

    def begin(self, machine):
        """A new engine on a machine that has none."""
        self.engines = {number: one for number, one in self.engines.items() if one is not machine}
        self.engines[max(self.engines, default=0) + 10], machine.up = machine, True


class Run:
    """A pool over machines, stepped a second at a time. client: of engines that may go."""

    def __init__(self, folder, machines, given=None, own=(), until=None, clock=None, client=None, restricted=None):
        self.clock, self.messages = clock or Clock(), []
        self.machines = {name: Machine(self.clock, folder, name, **more) for name, more in machines.items()}
        self.home = Home("fleet-test")
        self.client = client and client(self.machines.values())
        self.pool = Pool(engines.Engines(self.client) if client else Engines(self.machines.values()), self.home,
                         lambda name: "environments/local.yml", self.messages.append, PATIENCE_S, ["s"],
                         restricted=restricted, clock=self.clock)
        fits = lambda name, about: None if about["studies"]["s"]["code"] == "same" else "other code"  # noqa: E731
        self.batch = self.pool.submit(Batch("s", given or jobs(), list(own), Needs({}, {}, fits, until)))

    def on(self, seconds=2000, until=lambda: False):
        for _ in range(seconds):
            self.pool.step()
            if self.batch.done.is_set() or until():
                break
            self.clock.now += 1
        return self

    def home_keys(self, experiment="e"):
        return self.home.records("s", experiment).keys()

    def machines_of_repeats(self):
        records = self.home.records("s", "e")
        found = {}
        for name in records.keys():
            found.setdefault(name[:10], set()).add(records.meta(name)["provenance"]["machine"]["id"])
        return found


ALL = {key(repeat, number) for repeat in range(1, 5) for number in range(3)}


def test_every_point_comes_home_once_and_each_repeat_from_one_machine(records):
    run = Run(records, {"a": {}, "b": {}}).on()
    assert run.batch.done.is_set() and not run.batch.failed
    assert run.home_keys() == ALL
    measured = Counter(run.machines["a"].measured + run.machines["b"].measured)
    assert set(measured.values()) == {1}
    assert all(len(each) == 1 for each in run.machines_of_repeats().values())


def test_a_point_that_a_machine_measures_again_comes_home_again(records):
    """Its machine was busy the first time. The second record had been dropped, since the point was there."""
    run = Run(records, {"a": {}}, jobs(repeats=1))
    run.on(until=lambda: len(run.home_keys()) == 1)
    machine, poll = run.machines["a"], run.machines["a"].poll
    again = [machine._record("e", key(1, 0))]

    def poll_and_once_more(id, have):
        reply = poll(id, have)
        return reply | {"records": reply["records"] + [again.pop() for _ in again[:key(1, 0) in have]]}

    machine.poll = poll_and_once_more
    run.on()
    assert len(list((run.home.records("s", "e").folder / "superseded").iterdir())) == 1
    assert run.pool.scheduler.machines["a"].done == 3 and not run.batch.failed
    assert run.pool.measured == {"s": {key(1, number): "e" for number in range(3)}}, "each point counts once"


def test_a_point_that_fails_on_all_machines_is_told_with_its_reason(records):
    """The line had ended with the mere number of points."""
    why = "1 point failed\nthe server said no\n  at clients=2\nfull tracebacks: /somewhere"
    run = Run(records, {"a": {}, "b": {}}, jobs(repeats=1))
    for machine in run.machines.values():
        machine.fails(key(1, 0), why)
    run.on()
    (job, told), = run.batch.failed
    assert job.repeat == 1 and told == why
    assert any(line.endswith("failed; it is tried again: 1 point failed: the server said no") for line in run.messages)
    assert run.home.records("s", "e").failure(key(1, 0))["message"] == "the server said no"


def test_a_slow_machine_measures_less(records):
    run = Run(records, {"a": {"takes_s": 5.0}, "b": {"takes_s": 40.0}}).on()
    assert run.home_keys() == ALL
    assert len(run.machines["b"].measured) == 3 and len(run.machines["a"].measured) == 9


def test_a_machine_that_is_lost_and_back_goes_on_and_its_lab_was_cleaned(records):
    run = Run(records, {"a": {}, "b": {"takes_s": 100.0}})
    run.on(until=lambda: len(run.machines["a"].measured) == 1)
    run.machines["a"].up = False
    run.on(until=lambda: run.pool.scheduler.machines["a"].lost)
    run.machines["a"].up = True
    run.on()
    assert run.home_keys() == ALL and run.machines["a"].cleaned == 2
    assert set(Counter(run.machines["a"].measured).values()) == {1}, "what it had measured is not measured again"
    assert all(len(each) == 1 for each in run.machines_of_repeats().values())
    assert any("a is lost" in line for line in run.messages) and "a is back" in run.messages


def test_what_a_machine_had_begun_that_never_comes_back_is_measured_whole_by_another(records):
    run = Run(records, {"a": {}, "b": {}})
    run.on(until=lambda: len(run.machines["a"].measured) == 2)
    run.machines["a"].up = False
    run.on()
    assert run.home_keys() == ALL and not run.batch.failed
    assert set(run.machines_of_repeats()) and all(each == {"id-b"} for each in run.machines_of_repeats().values())


def test_a_short_cut_of_the_network_loses_nothing(records):
    run = Run(records, {"a": {}})
    run.on(until=lambda: len(run.machines["a"].measured) == 1)
    run.machines["a"].up = False
    run.on(seconds=30)
    run.machines["a"].up = True
    run.on()
    assert set(Counter(run.machines["a"].measured).values()) == {1} and run.home_keys() == ALL
    assert not any("lost" in line for line in run.messages)


def test_a_machine_whose_disk_fills_is_set_aside_and_another_measures_its_job(records):
    run = Run(records, {"a": {"full_after": 1}, "b": {}}).on()
    assert run.home_keys() == ALL and not run.batch.failed
    assert any(line.startswith("a gets nothing more to measure: the disk is full") for line in run.messages)


def test_a_damaged_record_is_refused_and_measured_again(records):
    run = Run(records, {"a": {"broken": True}}).on()
    assert any("came damaged" in line for line in run.messages)
    assert not list((records / "records").rglob("*.tmp*"))
    assert run.home_keys() == ALL


def test_a_machine_of_other_code_measures_nothing(records):
    run = Run(records, {"a": {"code": "other"}, "b": {}}).on()
    assert run.machines["a"].measured == [] and run.home_keys() == ALL
    assert "a does not measure s: other code" in run.messages


def test_where_no_machine_may_measure_it_the_study_does_not_wait_for_ever(records):
    run = Run(records, {"a": {"code": "other"}}).on()
    assert run.batch.done.is_set() and len(run.batch.failed) == 4


def test_each_machine_measures_its_ceilings_and_one_of_them_comes_home(records):
    ceiling = Point("f" * 20, "c", 0.0, 10.0)
    run = Run(records, {"a": {}, "b": {}}, own=[("ceilings", ceiling)]).on()
    assert all(one.measured.count(ceiling.key) == 1 for one in run.machines.values())
    assert run.home_keys("ceilings") == {ceiling.key} and run.home_keys() == ALL


@pytest.mark.parametrize("machine, earlier", [(None, 1), ("id-b", 0)])
def test_a_ceiling_comes_home_in_the_place_of_one_that_is_stale_and_of_no_other(records, machine, earlier):
    """That of the machine was left there, and the stale one made the study fail."""
    ceiling = Point("f" * 20, "c", 0.0, 10.0, machine)
    run = Run(records, {"a": {}}, own=[("ceilings", ceiling)])
    there = Machine(run.clock, records, "b")._record("ceilings", ceiling.key)["files"]
    run.home.take("s", "ceilings", ceiling.key, there)
    run.on()
    assert len(list(run.home.records("s", "ceilings").folder.glob("superseded/*"))) == earlier
    assert run.machines["a"].measured.count(ceiling.key) == 1


def test_a_stop_ends_the_jobs_and_keeps_what_is_home(records):
    run = Run(records, {"a": {}, "b": {}})
    run.on(until=lambda: len(run.home_keys()) == 3)
    run.pool.stop()
    run.on(seconds=20)
    assert run.batch.done.is_set() and run.pool.at_work() == []
    assert len(run.home_keys()) >= 3 and not run.batch.failed
    late = run.pool.submit(Batch("s", jobs(), [], run.batch.needs))
    run.pool.step()
    assert late.done.is_set(), "a study that asks later is not kept waiting"


def test_a_stop_ends_the_jobs_also_where_the_disk_here_is_full(records, monkeypatch):
    """The machines' jobs had counted as under way for as long as anybody waits for them."""
    run = Run(records, {"a": {}})
    run.on(until=lambda: len(run.home_keys()) == 1)

    def full(*_):
        raise LabError("no space left on device")

    monkeypatch.setattr(run.home, "take", full)
    with pytest.raises(LabError):
        run.on()
    machine, began = run.machines["a"], run.clock.now
    record, poll = machine._record("e", key(1, 1)), machine.poll
    machine.poll = lambda id, have: poll(id, have) | {"records": [record], "more": True}   # again and again
    run.pool.stop()
    while run.pool.at_work() and run.clock.now < began + PATIENCE_S:
        run.pool.step()
        run.clock.now += 1
    assert not run.pool.at_work()


def test_a_machine_that_cannot_be_asked_for_its_records_is_asked_to_stop(records):
    run = Run(records, {"a": {}, "b": {"takes_s": 1000.0}})
    run.on(until=lambda: len(run.machines["a"].measured) == 1)

    def broken(*_):
        raise LabError("its record is damaged")

    run.machines["a"].poll = broken
    run.on(60)
    assert run.machines["a"].job["stopped"], "it would measure on for its patience"


def test_a_stop_reaches_every_machine_also_one_whose_engine_has_gone_and_comes_back(records):
    run = Run(records, {"a": {}, "b": {}}, client=Client)
    run.on(until=lambda: len(run.home_keys()) == 2)
    gone, other = run.machines.values()
    gone.up = False
    run.pool.stop()
    run.on(seconds=10)
    assert other.job["stopped"] and "stopped" not in gone.job and run.pool.at_work() == ["a"]
    run.client.begin(gone)
    run.on(seconds=10)
    assert gone.job["stopped"] and run.pool.at_work() == [] and run.batch.done.is_set()


def test_a_stop_is_sent_once_and_interrupts_no_answer(records):
    run = Run(records, {"a": {}})
    run.on(until=lambda: len(run.home_keys()) == 1)
    call, stopped, stop = run.pool.talks["a"].call, [], run.machines["a"].stop
    run.machines["a"].stop = lambda id: stopped.append(id) or stop(id)
    run.pool.stop()
    assert run.pool.talks["a"].call is call
    run.on(seconds=20)
    assert stopped == [run.machines["a"].job["id"]] and run.batch.done.is_set()


def test_after_a_stop_nobody_waits_for_a_machine_that_is_lost(records):
    run = Run(records, {"a": {}})
    run.on(until=lambda: len(run.home_keys()) == 1)
    run.machines["a"].up = False
    run.pool.stop()
    run.on()
    assert run.batch.done.is_set() and not run.batch.failed and run.pool.at_work() == []


def test_a_machine_whose_engine_goes_while_it_is_greeted_is_greeted_again(records):
    run = Run(records, {"a": {}}, client=Client)
    machine, clean = run.machines["a"], run.machines["a"].clean

    def goes():
        machine.up = False
        return clean()

    machine.clean = goes
    run.on(seconds=5)
    assert not machine.up
    machine.clean, machine.up = clean, True
    run.on()
    assert run.home_keys() == ALL and not any("lost" in line for line in run.messages)


def test_the_time_left_is_that_of_what_is_not_home(records):
    run = Run(records, {"a": {}}, jobs(repeats=1))
    run.on(until=lambda: len(run.home_keys()) == 2)
    assert 5 < simulate(run.pool.scheduler, now=run.clock.now).seconds <= 10


@pytest.mark.parametrize("restricted, waits", [({"b": frozenset({"another"})}, False), ({}, True)])
def test_of_lost_machines_one_is_waited_for_that_the_file_gives_the_study(records, restricted, waits):
    run = Run(records, {"a": {"code": "other"}, "b": {}}, restricted=restricted)
    run.pool.step()
    run.machines["b"].up = False
    run.on()
    assert run.batch.done.is_set() is not waits and len(run.batch.failed) == (0 if waits else 4)
    if waits:
        run.machines["b"].up = True
        assert run.on().home_keys() == ALL


def test_of_lost_machines_none_is_waited_for_that_could_not_measure_it(records):
    run = Run(records, {"a": {"code": "other"}, "b": {"code": "other"}}).on()
    run.machines["b"].up = False
    while not run.pool.scheduler.machines["b"].lost:
        run.pool.step()
        run.clock.now += 1
    run.batch = run.pool.submit(Batch("s", jobs(), [], run.batch.needs))
    run.on()
    assert run.batch.done.is_set() and len(run.batch.failed) == 4


def test_no_job_begins_when_the_time_is_up(records):
    clock = Clock()
    run = Run(records, {"a": {}}, until=clock.now + 45, clock=clock).on()
    assert run.batch.done.is_set() and 3 <= len(run.home_keys()) < len(ALL) and not run.batch.failed


def test_two_names_for_one_machine_measure_one_thing_at_a_time(records):
    run = Run(records, {"a": {}, "b": {}})
    run.machines["b"].who = lambda: run.machines["a"].who() | {"name": "b"}
    run.on()
    assert not run.machines["b"].measured and run.home_keys() == ALL
