"""The ledger of what was made on a cloud, and its removal, with a cloud in memory."""

import json
from types import SimpleNamespace

import pytest

from labbook.errors import InputError, LabError, SystemFailure
from labbook.systems.cloud import ledger as cloud_ledger
from labbook.systems.cloud.errors import refused
from labbook.systems.cloud.ledger import ORDER, JournaledLedger, Ledger, remove


class Api:
    """Resources by id, each (kind, name). `stuck`: how many deletions of an id fail."""

    def __init__(self):
        self.things, self.deleted, self.stuck, self.hidden, self.error = {}, [], {}, 0, None

    def make(self, kind, name, thing_id=None):
        thing_id = thing_id or f"{kind}-{len(self.things)}"
        self.things[thing_id] = (kind, name)
        return thing_id

    def find(self, kind, name, ids=()):
        if self.error:
            raise self.error
        if self.hidden:
            self.hidden -= 1
            return []
        return [i for i, thing in self.things.items() if thing == (kind, name) or i in ids]

    def delete(self, kind, thing_id):
        if self.stuck.get(thing_id):
            self.stuck[thing_id] -= 1
            raise SystemFailure("it is in use")
        self.deleted.append(thing_id)
        self.things.pop(thing_id, None)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(cloud_ledger, "INTERVAL_S", 0.01)
    monkeypatch.setattr(cloud_ledger, "LOOK_S", 0.1)


@pytest.fixture
def ledger(tmp_path):
    ledger = JournaledLedger("labbook-t1", tmp_path)
    ledger.begin(study="s", own={})
    return ledger


def again(ledger):
    """The ledger as another process reads it."""
    return JournaledLedger("", ledger._journal.path.parent)


def made(ledger, api, kind, n=1):
    with ledger.making(kind) as entry:
        entry.ids = [api.make(kind, entry.name) for _ in range(n)]
    return entry


def test_a_resource_is_recorded_before_it_is_made(ledger):
    with ledger.making("volume", "my data") as entry:
        before = again(ledger).left()
        entry.ids = ["v1"]
    assert [(e.kind, e.name, e.ids) for e in before] == [("volume", entry.name, None)]
    assert [e.ids for e in again(ledger).left()] == [["v1"]] and again(ledger).mark == "labbook-t1"
    assert entry.name.startswith("labbook-t1-") and entry.name.endswith("-my-data")


def test_names_are_never_used_twice(tmp_path):
    names = set()
    for _ in range(3):
        ledger = Ledger("m")
        for _ in range(3):
            with ledger.making("key") as entry:
                entry.ids = []
            names.add(entry.name)
    assert len(names) == 9


@pytest.mark.parametrize("error, left", [
    (KeyboardInterrupt(), 1), (LabError("it does not answer"), 1), (RuntimeError("x"), 1),
    (refused(SystemFailure("no")), 0), (InputError("no"), 0)])
def test_what_may_have_been_made_stays_recorded(ledger, error, left):
    with pytest.raises(type(error)):
        with ledger.making("server"):
            raise error
    assert len(ledger.left()) == len(again(ledger).left()) == left


def test_removed_resources_are_recorded_one_by_one(ledger):
    api = Api()
    entry = made(ledger, api, "server", 2)
    ledger.record_gone(entry.ids[:1])
    assert again(ledger).left()[0].gone == {entry.ids[0]}
    ledger.record_gone(entry.ids)
    assert ledger.left() == again(ledger).left() == []


def test_an_incomplete_line_is_of_a_resource_that_was_never_made(ledger):
    made(ledger, Api(), "key")
    with ledger._journal.path.open("a") as file:
        file.write('{"made": "server", "na')
    assert [e.kind for e in again(ledger).left()] == ["key"]


def test_no_secret_is_recorded(ledger):
    made(ledger, Api(), "key")
    lines = [json.loads(line) for line in ledger._journal.path.read_text().splitlines()]
    assert {key for line in lines for key in line} == {"made", "mark", "study", "own", "name", "ids"}


def test_resources_are_removed_before_what_they_use(ledger):
    api = Api()
    for kind in ("flavor", "key", "image", "volume", "server"):
        made(ledger, api, kind)
    foreign = api.make("server", "somebody's")
    assert remove(api, again(ledger)) == []
    assert [i.partition("-")[0] for i in api.deleted] == list(ORDER) and set(api.things) == {foreign}
    assert again(ledger).left() == []


def test_a_resource_without_a_known_id_is_found_by_its_name(ledger):
    api = Api()
    with pytest.raises(KeyboardInterrupt), ledger.making("server") as entry:
        api.make("server", entry.name)
        raise KeyboardInterrupt
    assert remove(api, again(ledger)) == [] and not api.things


def test_it_is_looked_for_some_seconds(ledger, monkeypatch):
    monkeypatch.setattr(cloud_ledger, "LOOK_S", 60)
    api = Api()
    with pytest.raises(KeyboardInterrupt), ledger.making("server") as entry:
        api.make("server", entry.name)
        raise KeyboardInterrupt
    api.hidden = 5
    assert remove(api, ledger) == [] and not api.things


def test_the_search_for_what_was_never_made_ends_after_look_s(ledger, monkeypatch):
    passed = []
    monkeypatch.setattr(cloud_ledger, "INTERVAL_S", 1)
    monkeypatch.setattr(cloud_ledger, "LOOK_S", 3)
    monkeypatch.setattr(cloud_ledger, "time", SimpleNamespace(sleep=passed.append, monotonic=lambda: sum(passed)))
    with pytest.raises(KeyboardInterrupt), ledger.making("server"):
        raise KeyboardInterrupt
    assert remove(Api(), ledger, seconds=60) == []
    assert ledger.left() == [] and passed == [1, 1, 1]


def test_deletion_of_a_resource_in_use_is_repeated(ledger):
    api = Api()
    entry = made(ledger, api, "volume")
    api.stuck[entry.ids[0]] = 3
    assert remove(api, ledger) == [] and not api.things


def test_what_cannot_be_removed_is_reported_and_stays_recorded(ledger):
    api = Api()
    stays, goes = made(ledger, api, "volume"), made(ledger, api, "key")
    api.stuck[stays.ids[0]] = 10 ** 9
    assert remove(api, ledger, seconds=0.1) == [f"volume {stays.name} stays: it is in use"]
    assert list(api.things) == stays.ids and goes.ids == []
    assert [e.name for e in again(ledger).left()] == [stays.name]


def test_an_unreachable_cloud_is_reported_once(ledger):
    api = Api()
    made(ledger, api, "volume"), made(ledger, api, "key")
    api.error = LabError("it does not answer")
    assert remove(api, ledger) == ["it does not answer"] and len(again(ledger).left()) == 2
