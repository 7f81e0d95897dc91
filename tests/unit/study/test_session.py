"""A study's lab and what a block sets up in it: interruptions, and what is destroyed when."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from study_stand_ins import checkout, failing

from labbook.errors import LabError, Stopped, SystemFailure
from labbook.study import Study


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
