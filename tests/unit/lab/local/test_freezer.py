"""The freezer of both versions of control groups, on made-up files."""

import pytest

from labbook.lab.local import cgroups, freezer


@pytest.fixture(params=["v1", "v2"])
def place(request, tmp_path):
    """A host's group, without processes."""
    if request.param == "v1":
        (tmp_path / "freezer").mkdir()
    else:
        (tmp_path / "cgroup.controllers").write_text("cpu")
    group = freezer.folder("t1", "db", tmp_path)
    cgroups.make({freezer.LIMIT: group}, tmp_path)
    (group / "cgroup.procs").write_text("")
    if request.param == "v1":
        (group / freezer.STATE).write_text("THAWED")
    else:
        (group / freezer.SWITCH).write_text("0")
        (group / "cgroup.events").write_text("populated 1\nfrozen 1\n")
    return group


def state(group):
    return {"FROZEN": "frozen", "1": "frozen"}.get(
        next(group / name for name in (freezer.STATE, freezer.SWITCH) if (group / name).exists()).read_text(), "thawed")


def test_a_group_freezes_and_thaws(place):
    freezer.freeze(place)
    assert state(place) == "frozen"
    freezer.thaw(place)
    assert state(place) == "thawed" and not freezer.beside(place).exists()


def test_what_forks_while_it_is_moved_is_moved_too(place, monkeypatch):
    """A server that was begun while its host was frozen had stayed outside of its limits."""
    aside, moved, left = freezer.beside(place), [], [["7"], ["8", "9"], []]
    freezer.freeze(place)
    monkeypatch.setattr(freezer, "_pids", lambda group: left.pop(0) if group == aside else [])
    monkeypatch.setattr(freezer, "_move", lambda pid, to: moved.append((pid, to)))
    freezer.thaw(place)
    assert moved == [("7", place), ("8", place), ("9", place)]


def test_processes_are_asked_again_until_all_are_frozen(place, monkeypatch):
    looks = []

    def is_frozen(group):
        looks.append(state(group))
        freezer.thaw(group)
        return len(looks) == 3

    monkeypatch.setattr(freezer, "_is_frozen", is_frozen)
    freezer.freeze(place)
    assert looks == ["frozen"] * 3


def test_what_does_not_stop_in_time_goes_on(place, monkeypatch):
    monkeypatch.setattr(freezer, "_is_frozen", lambda _: False)
    with pytest.raises(OSError, match="did not stop within 0 s"):
        freezer.freeze(place, seconds=0)
    assert state(place) == "thawed"


def test_a_group_without_a_freezer_is_left_alone(tmp_path):
    freezer.release(tmp_path)
    assert not list(tmp_path.iterdir()) and not freezer.works(tmp_path)
    assert not freezer.is_mounted(tmp_path)
