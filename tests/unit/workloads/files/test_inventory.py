"""Inventories of metadata: what is asked, what is done about no answer, and how two compare."""

import errno
import json
import os
import re
import time
from collections import Counter

import pytest
from here import here_host

from labbook.errors import InputError, SystemFailure
from labbook.workloads.files.inventory import ATTRIBUTES, compare, table, take, verdicts
from labbook.workloads.files.on_host import inventory as on_host

ALL = {"wrong": 0, "missing": 0, "unobtainable": 0, "unasked": 0, "differing": {}}


@pytest.fixture
def tree(tmp_path):
    """Two directories of three files, a link, an empty directory."""
    top = tmp_path / "tree"
    for place in ("a", "b"):
        (top / place).mkdir(parents=True)
        for name in "123":
            (top / place / name).write_text(name)
    (top / "link").symlink_to("a/1")
    (top / "empty").mkdir()
    return top


@pytest.fixture
def host(tmp_path):
    return here_host(tmp_path, "client1")


def inventory(path, names=None, call_seconds=5, seconds=20):
    """In this process, whose functions a test may change."""
    return table(on_host.Inventory(
        {"path": str(path), "names": names, "call_seconds": call_seconds, "seconds": seconds}).run())


def test_all_that_is_there_is_reported_with_all_it_has(tree, host):
    found = take(host, tree).set_index("name")
    assert set(found.index) == {".", "a", "b", "link", "empty", *(f"{d}/{n}" for d in "ab" for n in "123")}
    assert (found.state == "there").all() and (found.error == "").all()
    seen, row = os.lstat(tree / "a/1"), found.loc["a/1"]
    assert (row.kind, row.ino, row["size"], row["mode"]) == ("file", seen.st_ino, 1, seen.st_mode)
    assert (row.mtime_ns, row.ctime_ns) == (seen.st_mtime_ns, seen.st_ctime_ns)
    assert found.target["link"] == "a/1" and found.kind["link"] == "link"
    assert json.loads(found.entries["a"]) == ["1", "2", "3"] and found.entries["empty"] == "[]"
    assert not list(tree.parent.glob("client1/inventory-*"))


def test_times_stay_exact_beside_names_that_have_none(tree):
    found = inventory(tree, ["a/1", "gone"]).set_index("name")
    assert found.mtime_ns["a/1"] == os.lstat(tree / "a/1").st_mtime_ns
    assert found.state["gone"] == "missing" and found.error["gone"] == "ENOENT"


def test_given_names_are_asked_once_and_in_their_order(tree):
    assert list(inventory(tree, ["b/2", "a", "b/1"]).name) == ["b/2", "a", "b/1"]


def test_what_has_an_error_is_not_missing(tree, monkeypatch):
    def attributes(place):
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(on_host, "attributes", attributes)
    row, = inventory(tree, ["a/1"]).itertuples()
    assert (row.state, row.error) == ("unobtainable", "EIO")


def test_a_name_that_hangs_is_left_and_the_others_are_reported(tree, monkeypatch):
    real = on_host.attributes

    def attributes(place):
        if "/a/" in place:
            time.sleep(60)
        return real(place)

    monkeypatch.setattr(on_host, "attributes", attributes)
    names = [f"a/{i}" for i in range(9)] + ["b/1", "b/2", "link"]
    found = inventory(tree, names, call_seconds=0.3).set_index("name")
    assert list(found.index) == names
    assert (found.state[:9] == "unobtainable").all() and (found.state[9:] == "there").all()
    assert set(found.error[:9]) == {"timeout", "like others of its directory"}


def test_what_there_was_no_time_for_is_reported_as_such(tree):
    before = inventory(tree, ["a/1", "a/2"])
    found = inventory(tree, ["a/1", "a/2"], seconds=0)
    assert set(found.state) == {"not asked"} and set(found.error) == {"no time left to ask"}
    counts = compare(before, found)
    assert counts["unasked"] == 2 and not counts["unobtainable"] and not counts["right"]
    assert set(verdicts(before, found).verdict) == {"unasked"}


@pytest.fixture
def half_dead(tmp_path, monkeypatch):
    """Eight directories of five files; a server has those with an odd number, and is dead. It writes each call
    to the file `dead` beside them."""
    top, real = tmp_path / "top", on_host.attributes
    for number in range(8):
        (top / f"d{number}").mkdir(parents=True)
        for i in range(5):
            (top / f"d{number}" / f"f{i}").touch()

    def attributes(place):
        if int(re.search(r"/d(\d)", place + "/d0")[1]) % 2:
            with open(tmp_path / "dead", "a") as calls:
                calls.write(f"{os.path.relpath(place, top)}\n")
            time.sleep(60)
        return real(place)

    monkeypatch.setattr(on_host, "attributes", attributes)
    return top


@pytest.mark.parametrize("seconds", [6, 1000])
def test_names_of_a_living_server_are_asked_for_whatever_the_dead_one_had(half_dead, seconds):
    """Calls that hang hold up no others: neither those in other directories, nor those directories
    themselves, though all lie in the same one."""
    names = [".", *(name for number in range(8) for name in
                    (f"d{number}", *(f"d{number}/f{i}" for i in range(5))))]
    found = inventory(half_dead, names, call_seconds=1, seconds=seconds).set_index("name")
    hung = (half_dead.parent / "dead").read_text().split()
    assert len(hung) == len(set(hung)) and set(Counter(name.partition("/")[0] for name in hung).values()) <= set(
        range(1, on_host.ENOUGH + 1))
    assert list(found.index) == names
    dead = [name for name in names if name != "." and int(name[1]) % 2]
    assert (found.state[dead] == "unobtainable").all() and (found.state.drop(dead) == "there").all()
    assert {found.error[f"d{number}"] for number in (1, 3, 5, 7)} == {"timeout"}


def test_a_slow_answer_does_not_condemn_its_directory(tree, monkeypatch):
    real = on_host.attributes

    def attributes(place):
        if place.endswith("a/1"):
            time.sleep(60)
        return real(place)

    monkeypatch.setattr(on_host, "attributes", attributes)
    found = inventory(tree, ["a/1", "a/2", "a/3"], call_seconds=0.3).set_index("name")
    assert list(found.state) == ["unobtainable", "there", "there"]


def test_a_folder_that_is_not_there(tmp_path, host):
    row, = take(host, tmp_path / "nowhere").itertuples()
    assert (row.name, row.state) == (".", "missing")


def test_a_runner_that_fails_says_why(host, monkeypatch):
    monkeypatch.setattr(on_host, "__name__", "labbook.no_such_module")
    with pytest.raises(SystemFailure, match="no_such_module"):
        take(host, "/")


def test_the_same_is_right(tree):
    before = inventory(tree)
    assert compare(before, inventory(tree)) == ALL | {"right": len(before), "asked": len(before)}


def test_of_no_names_none_are_anything(tree):
    before = inventory(tree)
    assert compare(before.iloc[:0], inventory(tree)) == ALL | {"right": 0, "asked": 0}


def change_size(tree):
    (tree / "a/1").write_text("longer")


def change_mode(tree):
    (tree / "a/1").chmod(0o4711)


def change_time(tree):
    os.utime(tree / "a/1", ns=(5, 5))


def change_links(tree):
    os.link(tree / "a/1", tree / "b/another")


def change_target(tree):
    (tree / "link").unlink()
    (tree / "link").symlink_to("a/2")


def change_kind(tree):
    (tree / "empty").rmdir()
    (tree / "empty").touch()


def change_entries(tree):
    (tree / "empty/new").touch()


@pytest.mark.parametrize("change, name, attribute", [
    (change_size, "a/1", "size"), (change_mode, "a/1", "mode"), (change_time, "a/1", "mtime_ns"),
    (change_links, "a/1", "nlink"), (change_target, "link", "target"),
    (change_kind, "empty", "kind"), (change_entries, "empty", "entries")])
def test_each_change_is_seen(tree, change, name, attribute):
    before = inventory(tree)
    names = list(before.name)
    change(tree)
    found = verdicts(before, inventory(tree, names)).set_index("name")
    assert found.verdict[name] == "wrong" and attribute in found.differing[name].split(",")
    assert found.verdict["b/2"] == "right"
    counts = compare(before, inventory(tree, names))
    assert counts["differing"][attribute] >= 1 and counts["wrong"] >= 1


def test_what_is_gone_is_missing_and_its_directory_wrong(tree):
    before = inventory(tree)
    (tree / "a/1").unlink()
    found = compare(before, inventory(tree, list(before.name)))
    assert found["missing"] == 1 and found["wrong"] == 1 and found["differing"]["entries"] == 1
    assert found["right"] + 2 == found["asked"] == len(before)


def test_each_attribute_counts(tree):
    before = inventory(tree)
    for attribute in ATTRIBUTES:
        after = before.copy()
        at = before.index[before[attribute].notna()][0]
        after.loc[at, attribute] = "x" if before[attribute].dtype == object else 77
        found = compare(before, after)
        assert (found["wrong"], found["differing"]) == (1, {attribute: 1})


def test_what_was_not_seen_before_or_not_asked_after_is_refused(tree):
    before = inventory(tree)
    with pytest.raises(InputError, match="1 names were not asked for afterwards.*'a/1'"):
        compare(before, before[before.name != "a/1"])
    with pytest.raises(InputError, match="1 names were not there before.*'gone'"):
        compare(inventory(tree, ["a/1", "gone"]), before)
