"""What is left of a load's files, from calls made up and from clients on this machine."""

import json
import os
import time

import pytest
from here import HereCrew, here_host

from labbook.workloads.clients.on_host import engine as clients_engine
from labbook.workloads.files.expected import Names, _replayed, expected, off, places
from labbook.workloads.files.load import begin_metadata
from labbook.workloads.files.on_host.calls import CREATE, OPEN, OPS, RENAME, STAT, UNLINK
from labbook.workloads.files.on_host.patterns import Mixed

TWO = {"clients": 2, "directories": 3, "files": 20}


class Two(Mixed):
    """A plan of two directories with one name each, and these calls."""

    def __init__(self, *calls):
        super().__init__({"seed": 1}, 0)
        self._calls, self.answers = calls, []

    def before(self, phase):
        yield OPEN, 0, None, "/mnt", None
        for number, name in enumerate(("0/a", "1/b")):
            yield CREATE, number, 5, name, None

    def mixed(self, _):
        for call in self._calls:
            self.answers.append((yield call))


def after(*calls):
    """{directory: Names} after calls, (code, directory, name, new name, whether it succeeded)."""
    plan = Two(*((code, number, 5, name, new) for code, number, name, new, _ in calls))
    return _replayed(plan, [(OPS[code], number, ok) for code, number, *_, ok in calls])


def test_names_are_those_made_at_first_and_what_calls_made_of_them():
    found = after((CREATE, 0, "0/c", None, True), (UNLINK, 0, "0/a", None, True), (RENAME, 1, "1/b", "1/d", True),
                  (STAT, 0, "0/c", None, True))
    assert found == {0: Names({"c"}), 1: Names({"d"})}


def test_what_a_call_without_success_did_is_not_known():
    found = after((CREATE, 0, "0/c", None, False), (UNLINK, 0, "0/a", None, False), (RENAME, 1, "1/b", "1/d", False))
    assert found == {0: Names(set(), {"a", "c"}), 1: Names(set(), {"b", "d"}, [{"b", "d"}])}
    assert after((UNLINK, 0, "0/a", None, False), (UNLINK, 0, "0/a", None, True))[0] == Names()


@pytest.mark.parametrize("left, lost", [(["b"], 0), (["d"], 0), ([], 1)])
def test_a_file_has_one_of_two_names_where_its_renaming_has_no_answer(left, lost):
    names = after((RENAME, 1, "1/b", "1/d", False))[1]
    assert off({(0, 1): names}, {(0, 1): json.dumps(left)})["load_lost"] == lost


def test_once_either_name_is_called_again_nothing_is_known_of_both():
    for later in ((UNLINK, 1, "1/b", None, True), (CREATE, 1, "1/d", None, True), (RENAME, 1, "1/b", "1/e", True)):
        assert not after((RENAME, 1, "1/b", "1/d", False), later)[1].either
    assert not after((UNLINK, 1, "1/b", None, False), (RENAME, 1, "1/b", "1/d", False))[1].either, "it may be gone"


def test_a_plan_hears_which_calls_succeeded_and_rows_of_another_one_are_refused():
    plan = Two(*([(CREATE, 0, 5, "0/c", None)] * 3))
    _replayed(plan, [("create", 0, True), ("create", 0, False), ("create", 0, True)])
    assert plan.answers == [True, None]
    with pytest.raises(ValueError, match="unlink in directory 0 is not of this plan, which has create in 0"):
        _replayed(Two((CREATE, 0, 5, "0/c", None)), [("unlink", 0, True)])


def test_one_name_lost_and_another_one_back_are_two_though_the_number_is_right():
    """Numbers of names were compared: a created name that was lost and a deleted one that came back were nothing."""
    wanted = {(0, 0): Names({"a", "b"}), (0, 1): Names({"a"}, {"b", "c"}), (0, 2): Names({"a"}), (0, 3): Names({"a", "b"})}
    entries = {(0, 0): json.dumps(["a", "x"]), (0, 1): json.dumps(["a", "b"]), (0, 2): json.dumps(["a", "b", "c"]),
               (0, 3): None}
    assert off(wanted, entries) == {"load_names": 7.0, "load_lost": 3.0, "load_back": 3.0, "load_off": 6.0}


@pytest.fixture
def crew(tmp_path_factory, monkeypatch):
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    yield HereCrew(here_host(home, "client1"))
    clients_engine.clear()


def test_clients_leave_just_the_names_that_their_calls_say(crew, tmp_path):
    stream = begin_metadata(crew, [tmp_path], seed=1, seconds_at_most=30, **TWO)
    time.sleep(1)
    load = stream.end()
    wanted = expected(load.rows, **TWO, seed=1)
    top = tmp_path / load.folder
    entries = {place: json.dumps(os.listdir(top / path)) for path, place in places(2, 3).items()}
    found = off(wanted, entries)
    assert found["load_lost"] == found["load_back"] == 0 and (load.rows.op == "unlink").any()
    assert found["load_names"] == sum(len(names) for _, _, names in os.walk(top))
    names = json.loads(entries[0, 1])
    entries[0, 1] = json.dumps([*names[1:], "another"])
    assert (off(wanted, entries)["load_lost"], off(wanted, entries)["load_back"]) == (1, 1)
