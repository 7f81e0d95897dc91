"""A crash without servers: what clients are asked, and the evidence that is gathered."""

import math
from types import SimpleNamespace

import pandas as pd
import pytest
from paper_stand_ins import point as a_point

from labbook.errors import LabbookError, SystemFailure
from labbook.papers.ceph_mds import crash

NAMES = pd.DataFrame({"name": ["t1", "t1/a", "m/d000/f1"], "kind": ["directory", "file", "file"], "ino": [10, 11, 12],
                      "state": "there"})


def run(monkeypatch, ceph=None, **params):
    monkeypatch.setattr(crash.Crew, "of", lambda lab: SimpleNamespace(hosts=["c1", "c2"]))
    params = {"rank": 1, "load": "idle", "last_s": 0, "look_s": 8, "mount_s": 8, "load_clients": 2,
              "load_directories": 4, "load_files": 64, "settled_within_s": 0, **params}
    attempt = SimpleNamespace(point=a_point(**params), lab=None)
    return crash.CrashRun(attempt, ceph or SimpleNamespace(migrating=lambda: {}), SimpleNamespace(host="c1", path="/mnt"))


def counts(**found):
    return {"asked": 1, "right": 0, "wrong": 0, "missing": 0, "unobtainable": 0, "unasked": 0, **found}


def test_a_second_client_looks_in_every_nth_repeat_or_in_none():
    def repeats(every):
        return [n for n in range(1, 7) if crash.has_second_client(a_point(repeat=n, second_client_every=every))]

    assert repeats(2) == [2, 4, 6] and repeats(3) == [3, 6] and repeats(1) == [1, 2, 3, 4, 5, 6] and repeats(0) == []


def test_all_names_of_all_folders_are_recorded_by_their_paths(monkeypatch):
    state = ["there"]
    monkeypatch.setattr(crash, "take", lambda host, folder: pd.DataFrame({"name": [".", "a"], "state": state[0]}))
    found = crash.inventory(SimpleNamespace(host="c1", path="/mnt"), ["t1", "t2"])
    assert list(found["name"]) == ["t1", "t1/a", "t2", "t2/a"]
    state[0] = "unobtainable"
    with pytest.raises(SystemFailure, match="before the crash"):
        crash.inventory(SimpleNamespace(host="c1", path="/mnt"), ["t1"])


def test_names_are_held_by_locks_and_by_calls_to_the_dead_server():
    ceph = SimpleNamespace(locked_inodes=lambda folders, rank: [10] if list(folders) == [10] else [])
    mount = SimpleNamespace(unanswered=lambda: [{"rank": 1, "ino": 10, "name": "b"}, {"rank": 0, "ino": 10, "name": "c"},
                                             {"rank": 1, "ino": 1, "name": "t1"}])
    assert crash.locked_names(ceph, mount, NAMES, 1) == ["t1", "t1/b", "/t1"]


def test_requests_are_those_to_the_living_and_unknown_where_one_is_silent():
    def ask(name, what):
        if name == "silent":
            raise SystemFailure("no answer")
        return {"mds_server": {"handle_client_request": 7}}

    def ceph(*names):
        return SimpleNamespace(ask=ask, ranks=lambda: {i: SimpleNamespace(name=n) for i, n in enumerate(names)})

    assert crash.requests(ceph("a", "dead"), "dead") == 7
    assert math.isnan(crash.requests(ceph("a", "silent"), "dead"))


def test_the_first_of_some_times_counts_from_the_crash():
    assert crash.since(pd.Series([1012.0, None, 1010.0]), 1000.0) == 10
    assert crash.since(pd.Series([], dtype=float), 1000.0) is None


def test_a_directory_is_being_exported_while_it_has_a_second_owner():
    subtrees = [{"dir": {"path": "/m/d000"}, "auth_second": 0}, {"dir": {"path": "/t1"}, "auth_second": -2}]
    ceph = SimpleNamespace(ask=lambda name, what: subtrees)
    assert crash.exports(ceph, "mds1", "/m/d000") and not crash.exports(ceph, "mds1", "/t1")


def test_a_fresh_client_that_cannot_mount_is_an_outcome_and_is_ended(monkeypatch):
    ended = []

    def mount(up):
        return SimpleNamespace(mount=lambda host, name: SimpleNamespace(up=up, end=lambda: ended.append(host)))

    def fails(seconds):
        raise SystemFailure("no mount")

    assert run(monkeypatch, mount(lambda seconds: True)).with_fresh_client(lambda client: "answer") == "answer"
    assert run(monkeypatch, mount(fails)).with_fresh_client(lambda client: "answer") is None
    assert ended == ["c2", "c2"]


def test_names_that_cannot_be_had_are_asked_for_again(monkeypatch):
    looks = [{"all": counts(unobtainable=1)}, {"all": counts(right=1)}]
    monkeypatch.setattr(crash, "by_parts", lambda *_: looks.pop(0))
    monkeypatch.setattr(crash, "take", lambda *_, **__: None)
    assert run(monkeypatch, last_s=60).look_until_all(SimpleNamespace(host="c1", path="/mnt"), NAMES, {})["all"]["right"]
    looks = [{"all": counts(unasked=1)}]
    again = run(monkeypatch, last_s=-1).look_until_all(SimpleNamespace(host="c1", path="/mnt"), NAMES, {})
    assert again["all"]["unasked"] == 1


def test_at_the_end_the_migrated_directory_is_asked_for_apart(monkeypatch):
    calls = []
    one = run(monkeypatch, load="migrating")
    one.moved = "/m/d000"
    one.look_until_all = lambda mount, before, parts: calls.append(parts) or {"moved": counts()}
    one.with_fresh_client = lambda act: None
    last, load = one.ask_again(NAMES, None)
    assert calls == [{"moved": ["m/d000/f1"], "others": ["t1", "t1/a"]}]
    assert last["fresh"] is None and load is None


def test_a_load_whose_clients_cannot_go_on_has_no_calls(monkeypatch):
    one = run(monkeypatch)
    assert one.end_load() is None

    def end():
        raise LabbookError("a client is stuck")

    one.stream = SimpleNamespace(end=end)
    assert one.end_load() is None
    one.stream = SimpleNamespace(end=lambda: "calls")
    assert one.end_load() == "calls" and one.load_metrics(None, None) == {}


def test_a_living_server_that_closed_the_session_cut_the_client_off(monkeypatch):
    empty = pd.DataFrame({"t_s": [], "daemon": [], "rank": [], "state": []})
    faults = SimpleNamespace(states=empty, crashes=pd.DataFrame({"daemon": []}), blocklisted=[],
                             evicted=pd.DataFrame({"client": [], "by": []}),
                             noticed=pd.DataFrame({"t_s": [1015.0], "daemon": ["mds2"]}))
    ceph = SimpleNamespace(fault_log=lambda at_s: faults, settings=SimpleNamespace(standby=0),
                           ranks=lambda: {0: SimpleNamespace(name="mds1"), 1: SimpleNamespace(name="mds2")})
    one = run(monkeypatch, ceph)
    one.mount.blocklisted = lambda: False
    for now, cut in (({0: "open"}, []), ({}, [0])):
        one.mount.sessions = lambda now=now: now
        found = one.symptoms(({0: "open", 1: "open"}, 4, "10.0.0.1"), "mds2", 1000.0)
        assert found["client_cut"] == cut and found["noticed_s"] == 15 and found["map_updated_s"] is None
        assert found["active_s"] is None and found["spare"] is False


def test_other_deaths_and_a_migration_that_lost_names_are_faults(monkeypatch):
    ceph = SimpleNamespace(fault_log=lambda at_s: SimpleNamespace(crashes=pd.DataFrame({"daemon": ["mds2", "mds1"]})),
                           owned=lambda: {0: ["/"], 1: []}, migrating=lambda: {})
    one = run(monkeypatch, ceph)
    monkeypatch.setattr(crash, "reached", lambda look, seconds: look())
    one.moved = "/m/d000"
    lost = {"survivor": {"moved": counts(missing=1)}, "fresh": None}
    found = one.faults("mds2", 1000.0, True, lost, True)
    assert found == {"others_died": ["mds1"], "migrations_failed": ["/m/d000"]}
    assert one.faults("mds2", 1000.0, False, lost, True)["migrations_failed"] == []
    differ = {"survivor": {"moved": counts(wrong=1)}, "fresh": {"moved": counts(unasked=1)}}
    assert one.faults("mds2", 1000.0, True, differ, True)["migrations_failed"] == [], "they can be read"


@pytest.mark.parametrize("looks, owners, back, failed", [
    ([{"mds1": ["/a"]}, {"mds1": ["/a"]}], [{0: ["/"], 1: []}] * 2, True, ["/a"]),
    ([{}, {"mds1": ["/b"]}], [{0: ["/"], 1: []}] * 2, True, []),        # the balancer moves it, once all had settled
    ([{"mds1": ["/a"]}, {"mds1": ["/a"]}], [{0: ["/"], 1: []}] * 2, False, []),     # it waits for the missing rank
    ([{}], [{0: ["/", "/a"], 1: ["/a"]}, {0: ["/"], 1: ["/a"]}], True, []),     # it moved between two answers
    ([{}], [{0: ["/", "/a"], 1: ["/a"]}] * 2, True, ["/a"])])
def test_only_what_does_not_end_or_stays_in_two_hands_is_a_failed_migration(monkeypatch, looks, owners, back, failed):
    """A move of the balancer at that moment had counted, and decided three claims by one sight."""
    looks, owners = iter(looks), iter(owners)
    ceph = SimpleNamespace(fault_log=lambda at_s: SimpleNamespace(crashes=pd.DataFrame({"daemon": []})),
                           owned=lambda: next(owners), migrating=lambda: next(looks))
    one = run(monkeypatch, ceph)
    monkeypatch.setattr(crash, "reached", lambda look, seconds: look())
    one.moved = None
    assert one.faults("mds2", 1000.0, False, {"survivor": None}, back)["migrations_failed"] == failed
