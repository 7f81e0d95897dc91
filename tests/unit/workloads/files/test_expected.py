"""What is left of a load's files, from calls made up and from clients on this machine."""

import json
import os
import time

import pandas as pd
import pytest
from here import HereCrew, here_host

from labbook.workloads.clients.on_host import engine as clients_engine
from labbook.workloads.files.expected import expected, off, places
from labbook.workloads.files.load import begin_metadata

TWO = {"clients": 2, "directories": 3, "files": 20}


def rows(*calls):
    return pd.DataFrame([{"client": client, "directory": directory, "op": op, "ok": ok}
                         for client, directory, op, ok in calls])


def by_place(wanted):
    return {(one.client, one.directory): (one.least, one.most) for one in wanted.itertuples()}


def test_names_are_those_made_at_first_and_the_calls_that_came_out_count():
    found = by_place(expected(rows((0, 0, "create", True), (0, 1, "unlink", True), (1, 0, "rename", True),
                                   (1, 0, "stat", True)), **TWO))
    assert found == {(0, 0): (22, 22), (0, 1): (20, 20), (0, 2): (18, 18),
                     (1, 0): (21, 21), (1, 1): (21, 21), (1, 2): (18, 18)}


def test_what_a_call_without_success_did_is_not_known():
    found = by_place(expected(rows((0, 0, "create", False), (0, 0, "unlink", False),
                                   (0, 0, "unlink", False), (0, 0, "stat", False)), **TWO))
    assert found[0, 0] == (19, 22) and found[0, 1] == (21, 21)


def test_names_that_are_lost_and_that_came_back_are_distinguished():
    wanted = pd.DataFrame([(0, 0, 2, 2), (0, 1, 1, 3), (0, 2, 1, 1), (0, 3, 2, 2)],
                          columns=["client", "directory", "least", "most"])
    entries = {(0, 0): json.dumps(["a"]), (0, 1): json.dumps(["a", "b"]), (0, 2): json.dumps(["a", "b", "c"]),
               (0, 3): None}
    assert off(wanted, entries) == {"load_names": 6.0, "load_lost": 3.0, "load_back": 2.0, "load_off": 5.0}


@pytest.fixture
def crew(tmp_path_factory, monkeypatch):
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    yield HereCrew(here_host(home, "client1"))
    clients_engine.clear()


def test_clients_leave_just_the_names_that_their_calls_say(crew, tmp_path):
    stream = begin_metadata(crew, [tmp_path], seed=1, seconds_at_most=30, **TWO)
    time.sleep(0.3)
    load = stream.end()
    wanted = expected(load.rows, **TWO)
    top = tmp_path / load.folder
    entries = {place: json.dumps(os.listdir(top / path)) for path, place in places(2, 3).items()}
    found = off(wanted, entries)
    assert found["load_lost"] == found["load_back"] == 0 and (load.rows.op == "unlink").sum() > 10
    assert found["load_names"] == sum(len(names) for _, _, names in os.walk(top))
    (top / "mixed-0.0" / "00001" / "more").touch()
    entries[0, 1] = json.dumps(os.listdir(top / "mixed-0.0" / "00001"))
    assert off(wanted, entries)["load_back"] == 1
