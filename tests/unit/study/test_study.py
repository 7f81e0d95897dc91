"""A study's run: what remains, failures, interruptions, resuming, and what the press asks for."""

import json
import os
import signal
import subprocess
import sys
import time

import pandas as pd
import pytest
from study_stand_ins import FakeLab, checkout

from labbook.errors import InputError, LabbookError, LabError, Stopped, SystemFailure
from labbook.study import PointsFailed, Study
from labbook.study.publication import published
from labbook.study.records.fingerprint import Fingerprint
from labbook.study.records.record import Records


def test_a_run_measures_everything_once_and_a_second_nothing(make, measure, labs):
    study, speed = make(repeats=2)
    assert measure(study, speed) == speed.points()
    study.complete()
    assert len(labs.made) == 1 and labs.made[0].downs == 1
    again, speed = make(repeats=2)
    assert measure(again, speed) == []
    again.complete()
    assert len(labs.made) == 1, "with every record there, no lab is needed"
    assert len(speed.summary()) == 8


def test_the_lab_has_what_an_experiment_has_alone_while_it_is_measured(root, make, measure, monkeypatch):
    ups = []

    class Lab(FakeLab):
        @classmethod
        def up(cls, description, environment):
            ups.append({host.name: host.limits.get("disk", {}).get("model") for host in description.hosts})
            return cls()

    monkeypatch.setattr("labbook.lab.Lab", Lab)
    (root / "data/papers/demo/lab.yml").write_text(
        "sites: [lan]\nhosts:\n"
        "  server: {site: lan, role: db, limits: {disk: {size: 1G, model: hdd_2010, modelled_in: [seeks]}}}\n"
        "  spindle: {site: lan, role: db, experiments: [flush]}\n")
    with Study("demo") as study:
        for experiment in [study.experiment(name, {"system": ["a", "b"]})
                           for name in ("speed", "more", "flush", "seeks", "last")]:
            measure(study, experiment)
        assert ups == [{"server": None}, {"server": None, "spindle": None}, {"server": "hdd_2010"}, {"server": None}]


def test_an_experiment_that_lab_yml_alone_names_is_refused(root, make, measure):
    (root / "data/papers/demo/lab.yml").write_text(
        "sites: [lan]\nhosts:\n"
        "  server: {site: lan, role: db, limits: {disk: {size: 1G, model: hdd_2010, modelled_in: [sped]}}}\n")
    with pytest.raises(InputError, match="no experiment 'sped' is declared, did you mean 'speed'") as refused:
        measure(*make())
    assert refused.value.file.name == "lab.yml" and refused.value.allowed == ["speed"]


def test_a_summary_has_a_row_a_point(make, measure):
    study, speed = make()
    measure(study, speed, lambda p: 0.01 * p.clients, metrics={"outcome": "right", "over": [1, 2]})
    frame = speed.summary()
    assert list(frame.columns[:7]) == ["point", "system", "clients", "repeat", "block", "order",
                                       "stale"]
    assert list(frame["point"]) == [p.key for p in speed.points()]
    row = frame[(frame["system"] == "b") & (frame["clients"] == 2)].iloc[0]
    assert (row["n"], row["errors"], row["outcome"], list(row["over"])) == (10, 1, "right", [1, 2])
    assert row["mean_ms"] == row["p99_ms"] == row["max_ms"] == pytest.approx(20)
    assert row["seconds"] == pytest.approx(0.2) and row["rate_per_s"] == pytest.approx(45)
    assert not frame["stale"].any()


def test_given_metrics_go_before_computed_ones_and_rows_are_not_needed(make):
    study, speed = make()
    for point in speed.remaining():
        with study.attempt(point) as attempt:
            attempt.record(metrics={"rate_per_s": 5})
    frame = speed.summary()
    assert list(frame["rate_per_s"]) == [5] * 4 and list(frame["n"]) == [0] * 4


def test_raw_rows_and_series_stay_to_be_read(make, measure):
    study, speed = make()
    measure(study, speed, series={"disk": pd.DataFrame({"sector": [7]})})
    point = speed.points()[0]
    assert len(speed.rows(point)) == 10 and list(speed.series(point, "disk")["sector"]) == [7]


def test_provenance_goes_with_every_point(make, measure):
    study, speed = make()
    measure(study, speed, facts={"version": "1.2"})
    meta = study.records("speed").meta(speed.points()[-1].key)
    assert meta["facts"] == {"version": "1.2"} and meta["profile"] == "quick"
    assert meta["environment"] == "environments/local.yml"
    found = meta["provenance"]
    assert found["machine"]["cores"] and found["machine"]["kernel"] and found["machine"]["cpu"]
    assert found["lab"]["hosts"] and "commit" in found["code"]
    assert 0 <= found["during"]["steal"] <= 1
    assert found["during"]["started"] <= found["during"]["ended"] <= time.time()
    assert found["links"]["after"][0]["measured_rtt_ms"] == 101
    first = study.records("speed").meta(speed.points()[0].key)
    assert first["provenance"]["links"]["before"], "links are checked as a block begins"


def test_conditions_tell_where_and_when(make, measure):
    study, speed = make()
    assert study.conditions() == {}
    measure(study, speed)
    told = study.conditions()
    assert told["points"] == 4 and told["stale"] == 0 and told["profile"] == "quick"
    assert told["from"] <= told["to"] and told["cpu"] and told["kernel"]


def test_conditions_tell_of_each_machine_that_measured(make, measure, monkeypatch):
    study, speed = make()
    real = published.provenance

    def kept(meta, profile):
        told = real(meta, profile)
        cpu = "Opal" if meta["key"] == speed.points()[0].key else "Agate"
        return told | {"machine": told["machine"] | {"cpu": cpu, "cores": 2}}

    measure(study, speed)
    monkeypatch.setattr(published, "provenance", kept)
    told = study.conditions()
    assert told["cpu"] == "Agate (3 of 4 points), Opal (1 of 4 points)" and told["cores"] == 2


RACK = """provider: ssh
user: opal
key: /home/me/.ssh/lab
root: /home/opal/labs
hosts: {rack1: {address: gate.example.org, data: 10.0.0.7, roles: [db]}}
"""
SECRETS = ("opal", "/home/me/.ssh/lab", "gate.example.org", "10.0.0.7")
KIND = {"cpu": "Some CPU", "cores": 4, "memory_gib": 7.8, "kernel": "6.1", "system": "Debian"}


@pytest.fixture
def rack(root, labs, monkeypatch):
    """A study on hosts elsewhere, of a lab that knows what kind of machine each is."""
    (root / "environments" / "rack.yml").write_text(RACK)
    facts = {"hosts": {"s": {"machine": KIND}, "t": {"machine": KIND}, "c": {"cores": [0]}}}
    study = Study("demo", "environments/rack.yml", bring_up=labs)
    up = labs.__call__
    monkeypatch.setattr(study.session, "_bring_up", lambda: _with(up(None, None), facts=lambda: facts))
    yield study, study.experiment("speed", setup={"system": ["a", "b"]})
    study.close()


def _with(lab, **attributes):
    vars(lab).update(attributes)
    return lab


def test_conditions_of_hosts_elsewhere_tell_their_kinds(rack, measure):
    measure(*rack)
    assert rack[0].conditions()["hosts"] == {"s, t": KIND}
    assert rack[0].place.startswith("rack-")


def test_no_record_holds_addresses_users_or_keys(rack, root):
    """Neither of a point that came out nor of one that failed; what was told stays told."""
    study, speed = rack
    said = "opal@gate.example.org (/home/me/.ssh/lab): 10.0.0.7:3306 refused /home/opal/labs/x"
    for number, point in enumerate(speed.remaining()):
        with study.attempt(point) as attempt:
            attempt.record([{"seconds": 1.0, "ok": False, "error": said}], facts={"at": [said]},
                           series={"log": pd.DataFrame({"line": [said]})})
            if number:
                raise SystemFailure(said, log=said)
    point, failed = speed.points()
    told = [str(study.records("speed").meta(point.key)), speed.rows(point).to_string(),
            speed.series(point, "log").to_string(), str(speed.failures())]
    told += [path.read_text() for path in root.glob("data/records/**/*") if path.suffix != ".parquet"
             and path.is_file()]
    assert "rack1 (KEY): rack1:3306 refused ROOT/x" in told[1] and "rack1 (KEY)" in told[3]
    assert len(told) > 4 and "Traceback" in "".join(told)
    assert not [secret for secret in SECRETS for text in told if secret in text]


# Failures

def failing(study, speed, fails, error):
    """Measure; attempts number `fails` (from 0) end in `error`. The points in their order."""
    tried = []
    for point in speed.remaining():
        tried.append(point)
        with study.attempt(point) as attempt:
            assert attempt.lab
            if len(tried) - 1 in fails:
                raise error
            attempt.record([])
    return tried


def test_a_failed_point_is_tried_once_more_on_a_fresh_lab(make, labs):
    study, speed = make()
    a1, a2, *rest = speed.points()
    tried = failing(study, speed, {0}, SystemFailure("it died", log="out of memory"))
    assert tried == [a1, a2, a1, *rest]
    assert len(labs.made) == 2 and labs.made[0].downs == 1 and labs.made[1].downs == 0
    study.complete()
    assert speed.failures() == []


def test_a_point_keeps_how_it_failed_before_it_came_out(make):
    study, speed = make()
    point = speed.points()[0]
    assert "failed_first" not in study.conditions()
    failing(study, speed, {0}, SystemFailure("it died"))
    kept = study.records("speed").meta(point.key)["provenance"]
    assert kept["failed_first"] == "it died"
    assert study.conditions()["failed_first"] == 1
    other = study.records("speed").meta(speed.points()[1].key)["provenance"]
    assert "failed_first" not in other


def test_a_failure_of_earlier_code_is_not_among_the_conditions(make):
    study, speed = make()
    study.fingerprint = Fingerprint("with a mistake", {})
    failing(study, speed, {0, 2}, SystemFailure("it died"))
    assert len(speed.failures()) == 1
    again, speed = make()
    failing(again, speed, (), None)
    assert speed.failures() == [] and "failed_first" not in again.conditions()


def test_a_point_that_fails_twice_fails_the_study_which_says_why(make):
    study, speed = make()
    point = speed.points()[0]
    tried = failing(study, speed, {0, 2}, SystemFailure("it died", log="out of memory"))
    assert tried.count(point) == 2 and len(tried) == 5
    failure, = speed.failures()
    assert failure["message"] == "it died" and failure["logs"] == ["out of memory"]
    assert "test_study" in open(failure["traceback"]).read()
    with pytest.raises(PointsFailed, match="1 point failed") as raised:
        study.complete()
    assert point.label in str(raised.value) and "it died" in str(raised.value)
    again, speed = make()
    assert failing(again, speed, set(), None) == [point], "the next run tries it again"
    again.complete()


def test_a_failure_tells_of_hosts_that_were_short_of_memory(make):
    study, speed = make()
    for point in speed.remaining():
        with study.attempt(point) as attempt:
            attempt.lab.short.append("db had too little memory (1 GB)")
            raise SystemFailure("it gives no answer", log="serving")
        break
    failure = speed.failures()[0]
    assert failure["message"] == "it gives no answer; db had too little memory (1 GB)"
    assert failure["logs"] == ["serving"]


def test_an_attempt_without_a_record_is_a_failure(make):
    study, speed = make()
    for point in speed.remaining():
        with study.attempt(point) as attempt:
            if point == speed.points()[0]:
                attempt.record([])
    assert "without record()" in speed.failures()[0]["message"]
    with pytest.raises(PointsFailed, match="3 points failed"):
        study.complete()


def test_links_that_are_not_what_was_asked_fail_the_point(make, labs):
    def off():
        raise LabError("the link is off")

    study, speed = make()
    for number, point in enumerate(speed.remaining()):
        with study.attempt(point) as attempt:
            lab = attempt.lab
            attempt.record([])
            if number in (0, 2):
                lab.check_links = off
    failure, = speed.failures()
    assert failure["message"] == "the link is off" and len(labs.made) == 3


@pytest.mark.parametrize("error", [InputError("no such op"), NameError("keyvaleu"),
                                   ModuleNotFoundError("nothing"), TypeError("takes 2 arguments"),
                                   AttributeError("no attribute 'portt'")])
def test_what_is_wrong_for_every_point_ends_the_study(make, labs, error):
    study, speed = make()
    with pytest.raises(type(error)):
        failing(study, speed, {0}, error)
    assert labs.made[0].downs == 1 and len(speed.failures()) == 1


def test_a_lab_that_does_not_come_up_is_tried_twice(make, labs):
    study, speed = make()
    labs.errors = [LabError("no bridge"), LabError("no bridge")]
    with pytest.raises(LabError, match="no bridge"):
        failing(study, speed, set(), None)
    labs.errors = [LabError("no bridge")]
    study, speed = make()
    failing(study, speed, set(), None)
    study.complete()


@pytest.mark.parametrize("wrong", [
    {"metrics": {"clients": 1}}, {"metrics": {"stale": 1}}, {"metrics": {"two words": 1}},
    {"metrics": {"x": {}}}, {"series": {"../x": pd.DataFrame()}}])
def test_what_cannot_be_recorded_is_refused(make, wrong):
    study, speed = make()
    with pytest.raises(InputError):
        with study.attempt(speed.points()[0]) as attempt:
            attempt.record([], **wrong)


def test_a_full_disk_ends_the_study_and_its_lab(make, labs, monkeypatch):
    study, speed = make()
    points = speed.remaining()
    first = next(points)
    with study.attempt(first) as attempt:
        assert attempt.lab
        attempt.record([])

    def full(*_):
        raise LabError("disk is full")

    monkeypatch.setattr(Records, "write", full)
    with pytest.raises(LabError, match="disk is full"):
        with study.attempt(next(points)) as attempt:
            attempt.record([])
    assert labs.made[0].downs == 1 and list(speed.summary()["point"]) == [first.key]


# Interruptions

@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, Stopped])
def test_an_interruption_is_no_failure(make, measure, labs, stop):
    study, speed = make()
    with pytest.raises(stop):
        failing(study, speed, {2}, stop())
    assert labs.made[0].downs == 1 and speed.failures() == []
    assert len(speed.summary()) == 2
    study, speed = make()
    assert len(measure(study, speed)) == 2


SCRIPT = """
import sys, time
from pathlib import Path
from labbook.study import Study

class Lab:
    def check_links(self): return []
    def short_of_memory(self): return []
    def short_of_space(self): return []
    def broken_disks(self): return []
    def facts(self): return {}
    def down(self): Path("down").open("a").write("x")

study = Study("demo", bring_up=lambda *_: Lab())
speed = study.experiment("speed", vary={"x": [1, 2, 3]})
for point in speed.remaining():
    with study.attempt(point) as attempt:
        attempt.lab
        attempt.record([])
        if point == speed.points()[1]:
            print("ready", flush=True)
            WHAT
"""


def script(root, what):
    checkout(root, claims=[])
    return subprocess.Popen([sys.executable, "-c", SCRIPT.replace("WHAT", what)], cwd=root,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_takes_the_lab_down_and_keeps_what_was_measured(root, make, number):
    # Short sleeps: a signal that comes just before a system call does not interrupt that call.
    process = script(root, "[time.sleep(0.1) for _ in range(600)]")
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode != 0 and "KeyboardInterrupt" in errors
    assert (root / "down").read_text() == "x"
    study = Study("demo")
    speed = study.experiment("speed", vary={"x": [1, 2, 3]})
    assert len(speed.summary()) == 1 and speed.failures() == []


def test_the_end_of_the_interpreter_takes_the_lab_down(root):
    process = script(root, "break")
    process.communicate(timeout=60)
    assert (root / "down").read_text() == "x"


def test_a_forked_child_leaves_the_lab_alone(make, labs):
    study, speed = make()
    study.lab_up()
    child = os.fork()
    if not child:
        study.close()
        os._exit(labs.made[0].downs)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_signal_during_the_way_down_waits_for_it(make, labs):
    study, _ = make()
    lab = study.lab_up()
    done = []
    lab.down = lambda: (os.kill(os.getpid(), signal.SIGINT), time.sleep(0.01), done.append("down"))
    with pytest.raises(KeyboardInterrupt):
        study.close()
    assert done == ["down"]


# Set-ups

class Server:
    log = []

    def __init__(self, name):
        self.name = name
        self.log.append(f"+{name}")

    def destroy(self):
        self.log.append(f"-{self.name}")


def test_a_setup_is_made_once_a_block_and_destroyed_before_the_next(make, labs):
    study, speed = make(repeats=2)
    Server.log = []
    for point in speed.remaining():
        with study.attempt(point) as attempt:
            server = attempt.setup(lambda lab: Server(point.system))
            proxy, = attempt.setup(lambda lab: [Server("proxy")])
            assert server.name == point.system and proxy.name == "proxy"
            attempt.record([])
    study.complete()
    once = "+{0} +proxy -proxy -{0} "
    expected = "".join(once.format(s) for s in "abba").split()
    assert Server.log == expected[:-2], "the lab's end ends the last block"
    assert len(labs.made) == 1


def test_the_time_of_a_set_up_is_told_apart_from_the_points(make, labs, monkeypatch, tmp_path):
    monkeypatch.setenv("LABBOOK_PROGRESS", str(tmp_path / "progress"))
    now = [0.0]
    monkeypatch.setattr("labbook.study.attempt.clock.now", lambda: now[0])
    study, speed = make()
    for point in speed.remaining():
        with study.attempt(point) as attempt:
            attempt.setup(lambda lab: now.__setitem__(0, now[0] + 100))
            attempt.record([])
    events = [json.loads(line) for line in (tmp_path / "progress").read_text().splitlines()]
    done = [event["set_up_s"] for event in events if event["event"] == "done"]
    assert done == [100, 0, 100, 0]     # two points a block


def test_a_setup_is_made_anew_after_a_failure(make, labs):
    study, speed = make()
    Server.log = []
    for number, point in enumerate(speed.remaining()):
        with study.attempt(point) as attempt:
            attempt.setup(lambda lab: Server(point.system))
            if number == 1:
                raise SystemFailure("it died")
            attempt.record([])
    assert Server.log == ["+a", "+a", "-a", "+b"] and len(labs.made) == 2


def test_a_setup_that_cannot_be_destroyed_costs_a_lab_and_no_point(make, labs, monkeypatch):
    study, speed = make()
    monkeypatch.setattr(Server, "destroy", lambda self: (_ for _ in ()).throw(LabError("stuck")))
    with pytest.warns(UserWarning, match="stuck"):
        for point in speed.remaining():
            with study.attempt(point) as attempt:
                attempt.setup(lambda lab: Server(point.system))
                attempt.record([])
    study.complete()
    assert len(labs.made) == 2


# What the press asks for

def test_a_plan_measures_nothing(make, measure, labs, root, monkeypatch):
    monkeypatch.setenv("LABBOOK_PLAN", "1")
    monkeypatch.setenv("LABBOOK_PROGRESS", str(root / "progress"))
    study, speed = make()
    assert measure(study, speed) == [] and labs.made == []
    with pytest.raises(Stopped):
        study.complete()
    event, = told(root)
    assert (event["event"], event["done"], event["total"]) == ("plan", 0, 4)
    assert event["points"][0] == speed.points()[0].label and event["seconds"] is None


def test_time_that_is_up_stops_between_points(make, measure, labs, root, monkeypatch):
    monkeypatch.setenv("LABBOOK_UNTIL", str(time.time() + 3600))
    monkeypatch.setenv("LABBOOK_PROGRESS", str(root / "progress"))
    study, speed = make()
    for number, point in enumerate(speed.remaining()):
        with study.attempt(point) as attempt:
            attempt.record([])
        if number == 1:
            study.run.until = time.time() - 1
    with pytest.raises(Stopped, match="2 points left"):
        study.complete()
    assert [e["event"] for e in told(root)][-2:] == ["done", "paused"]
    monkeypatch.delenv("LABBOOK_UNTIL")
    study, speed = make()
    assert len(measure(study, speed)) == 2
    study.complete()


def test_time_that_is_up_does_not_matter_when_nothing_remains(make, measure, monkeypatch):
    study, speed = make()
    measure(study, speed)
    monkeypatch.setenv("LABBOOK_UNTIL", "1")
    study, speed = make()
    measure(study, speed)
    study.complete()


def test_progress_is_reported_line_by_line(make, root, monkeypatch):
    monkeypatch.setenv("LABBOOK_PROGRESS", str(root / "progress"))
    study, speed = make()
    failing(study, speed, {1}, SystemFailure("it died"))
    study.complete()
    events = told(root)
    assert [e["event"] for e in events] == [
        "plan", *["start", "done"], *["start", "failed"], *["start", "done"] * 3, "complete"]
    assert [e["done"] for e in events if e["event"] == "done"] == [1, 2, 3, 4]
    failed = events[4]
    assert failed["message"] == "it died" and failed["seconds"] >= 0
    assert failed["point"] == speed.points()[1].label and failed["total"] == 4


def test_a_plan_estimates_from_earlier_points(make, measure, root, monkeypatch):
    study, speed = make()
    measure(study, speed)
    monkeypatch.setenv("LABBOOK_PROGRESS", str(root / "progress"))
    monkeypatch.setenv("LABBOOK_PLAN", "1")
    study, speed = make(repeats=3)
    list(speed.remaining())
    assert told(root)[0]["seconds"] > 0 and told(root)[0]["done"] == 4


def told(root):
    return [json.loads(line) for line in (root / "progress").read_text().splitlines()]


def test_a_loop_left_early_is_not_complete(make):
    study, speed = make()
    for point in speed.remaining():
        with study.attempt(point) as attempt:
            attempt.record([])
        break
    with pytest.raises(LabbookError, match="3 points were not measured"):
        study.complete()


@pytest.mark.parametrize("change, words", [
    ({"name": "deno"}, "did you mean 'demo'"),
    ({"environment": "environments/lokal.yml"}, "local.yml")])
def test_a_study_that_is_not_there_is_refused(root, change, words):
    with pytest.raises(InputError, match=words):
        Study(**({"name": "demo"} | change)).place


@pytest.mark.parametrize("variable, value", [("PROFILE", "quik"), ("UNTIL", "soon")])
def test_wrong_requests_are_refused(root, monkeypatch, variable, value):
    monkeypatch.setenv(f"LABBOOK_{variable}", value)
    with pytest.raises(InputError, match=value):
        Study("demo")


def test_records_of_another_machine_are_not_seen(make, measure, monkeypatch):
    study, speed = make()
    measure(study, speed)
    other, speed = make()
    other.place = "another"
    assert len(list(speed.remaining())) == 4 and len(speed.summary()) == 0


def test_a_truncated_record_is_measured_again(make, measure):
    study, speed = make()
    measure(study, speed)
    path = study.records("speed").path(speed.points()[2].key)
    path.write_bytes(path.read_bytes()[:200])
    study, speed = make()
    with pytest.warns(UserWarning, match="damaged"):
        assert measure(study, speed) == [speed.points()[2]]
    study.complete()
    assert path.with_name(path.name + ".broken").exists()


def test_a_record_with_one_wrong_bit_is_told_to_the_press_and_never_judged(make, measure, tmp_path, monkeypatch):
    study, speed = make(repeats=3)
    measure(study, speed, lambda point: 0.02 if point.system == "a" else 0.01)
    right, rows = study.judge("slower"), len(speed.summary())
    path = study.records("speed").path(speed.points()[2].key)
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 4
    path.write_bytes(data)
    study, speed = make(repeats=3)
    with pytest.warns(UserWarning, match="damaged"):
        assert len(speed.summary()) == rows - 1
        assert study.judge("slower").conditions["points"] == right.conditions["points"] - 1
    path.write_bytes(data)
    monkeypatch.setenv("LABBOOK_PROGRESS", str(tmp_path / "progress"))
    with pytest.warns(UserWarning, match="damaged"):
        measured = measure(study, speed, lambda point: 0.02 if point.system == "a" else 0.01)
    assert measured == [speed.points()[2]] and study.judge("slower").measured == right.measured
    told = [json.loads(line) for line in (tmp_path / "progress").read_text().splitlines()]
    message, = (event["message"] for event in told if event["event"] == "warning")
    assert str(path) in message and "measured again" in message


def test_the_same_failure_again_and_again_ends_the_study_early(make):
    study, _ = make()
    many = study.experiment("many", vary={"x": list(range(40))})
    with pytest.raises(LabError, match="no python"):
        failing(study, many, set(range(1, 40)), LabError("no python there"))
    assert 2 < len(many.failures()) < 20


def test_two_alike_failures_before_anything_came_out_end_the_study(make):
    study, speed = make()
    with pytest.raises(SystemFailure, match="it died"):
        failing(study, speed, {0, 1}, SystemFailure("it died"))
    assert len(speed.failures()) == 2
    again, speed = make()
    tried = failing(again, speed, {1, 2}, SystemFailure("it died"))
    assert len(tried) == 5 and len(speed.failures()) == 1, "once one came out, others may fail"
    once_more, speed = make(repeats=2)
    assert len(failing(once_more, speed, {0, 1}, SystemFailure("it died"))) > 2


def test_two_failures_that_differ_do_not_end_it(make):
    study, speed = make()
    errors = iter([SystemFailure("it died"), SystemFailure("no answer")])
    for point in speed.remaining():
        with study.attempt(point) as attempt:
            for error in errors:
                raise error
            attempt.record([])
    study.complete()


def test_the_first_failure_is_said_at_once(make, capsys, monkeypatch):
    monkeypatch.setattr("labbook.study.progress.interactive", lambda: False)
    study, speed = make()
    failing(study, speed, {0, 2}, SystemFailure("it died"))
    said = capsys.readouterr().err
    assert said.count("it died") == 1 and speed.points()[0].label in said


def test_alike_failures_are_reported_once(make):
    study, speed = make()
    failing(study, speed, set(range(1, 8)), SystemFailure("it died"))
    with pytest.raises(PointsFailed) as raised:
        study.complete()
    assert str(raised.value).count("it died") == 1 and "and 2 more" in str(raised.value)


@pytest.mark.parametrize("by_hand", [False, True])
def test_a_cell_that_is_interrupted_between_two_points_takes_the_lab_down(make, labs, monkeypatch, by_hand):
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    shell = InteractiveShell(config=Config(HistoryManager={"enabled": False}))
    monkeypatch.setattr("labbook.study.parameters.given.shell", lambda: shell)
    study, _ = make()
    shell.user_ns["up"] = study.lab if by_hand else study.lab_up
    shell.run_cell("up()")
    shell.run_cell("1 / 0")
    assert labs.made[0].downs == 0
    shell.run_cell("raise KeyboardInterrupt")
    assert labs.made[0].downs == (0 if by_hand else 1)
