"""Labs are found by their files on this machine, also where one of these is damaged."""

import os
from types import SimpleNamespace

import pytest

from labbook.commands import lab as commands
from labbook.errors import LabError
from labbook.lab import Lab, kept, locks, registry
from labbook.lab.local import provider as namespaces
from labbook.lab.local import root
from labbook.lab.remote import provider as ssh

MADE = {"hosts": [{"name": "h1"}], "study": "demo", "checkout": "/some", "links": [{"between": ["a", "b"]}]}


@pytest.fixture
def labs(tmp_path, monkeypatch):
    """Two labs that `labbook up` keeps on no host: `sound`, and `broken`, whose lab.json a power cut left empty."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for module in (namespaces, root):
        monkeypatch.setattr(module, "STATE", tmp_path / "none")
    monkeypatch.setattr(locks, "FOLDER", tmp_path / "locks")
    for lab_id in ("broken", "sound"):
        folder = ssh.open_state(lab_id)
        registry.save(MADE, folder)
        (folder / "keep").touch()
    (ssh.state_folder("broken") / "lab.json").write_text("")
    return ssh.folders


def ids(folders) -> list[str]:
    return [folder.name for folder in folders()]


def test_a_damaged_one_is_named_and_the_others_are_as_before(labs):
    broken, sound = Lab.list()
    assert (broken.id, broken.study, broken.hosts, broken.keep) == ("broken", registry.DAMAGED, (), True)
    assert (sound.id, sound.study, sound.hosts, sound.links) == ("sound", "demo", ("h1",), (("a", "b"),))


def test_who_wants_to_use_it_is_told_how_to_take_it_down(labs):
    for use in (Lab.attach, lambda lab_id: kept.watched(lab_id).__enter__()):
        with pytest.raises(LabError, match="lab broken: .*lab.json is damaged. Type: labbook down broken"):
            use("broken")
        with pytest.raises(LabError, match="no lab gone is up"):
            use("gone")


@pytest.mark.parametrize("lab_id, every, left", [
    ("broken", False, ["sound"]), ("sound", False, ["broken"]), (None, True, [])])
def test_it_goes_down_by_its_id_and_with_all(labs, lab_id, every, left, capsys):
    assert commands._labs_down(SimpleNamespace(lab=lab_id, all=every)) == 0
    assert ids(labs) == left
    assert f"lab {lab_id or 'broken'} is down" in capsys.readouterr().out


def test_one_that_is_in_use_stays_up(labs):
    ownership = registry.Ownership(ssh.state_folder("broken"))
    ownership.require()
    with pytest.raises(LabError, match="lab broken is in use by process"):
        Lab.take_down("broken")
    ownership.release()
    assert ids(labs) == ["broken", "sound"]


def test_what_is_saved_is_on_disk_before_the_lab_counts_as_up(tmp_path, monkeypatch):
    synced, sync = [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: (
        synced.append(os.readlink(f"/proc/self/fd/{handle}")), sync(handle)))
    registry.save(MADE, tmp_path)
    assert len(synced) == 2 and synced[1] == str(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["lab.json"] and registry.made_of(tmp_path) == MADE


def test_one_whose_lock_is_another_users_keeps_no_other_from_being_swept(labs, monkeypatch):
    take = registry.Ownership.take

    def refused(ownership):
        if ownership.folder.name == "broken":
            raise LabError("lab broken belongs to another user")
        return take(ownership)

    monkeypatch.setattr(registry.Ownership, "take", refused)
    with pytest.raises(registry.StuckLabs, match="another user"):
        registry.sweep(everything=True)
    assert ids(labs) == ["broken"]
