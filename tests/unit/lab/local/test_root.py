"""What the privileged helper clears away, in a folder of the test's own."""

import os

import pytest
from here import folder_of_ours

from labbook.errors import LabError
from labbook.lab import kernel, locks
from labbook.lab.disk import modelled
from labbook.lab.journal import Journal
from labbook.lab.local import cores, provider, root


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setattr(root, "STATE", tmp_path)
    monkeypatch.setattr(provider, "STATE", tmp_path)
    monkeypatch.setattr(locks, "FOLDER", tmp_path / ".locks")
    locks.FOLDER.mkdir(mode=0o700)
    return tmp_path


def left() -> set[str]:
    return {path.name for path in locks.FOLDER.iterdir()}


def test_the_locks_of_killed_helpers_go_with_what_is_left_of_their_labs(place):
    (place / "there").mkdir()
    (place / ".gone-x-1").mkdir()
    for name in ("lab-there", "lab-gone", "labs", "install"):
        (locks.FOLDER / name).touch()
    with locks.alone("lab-held", 5, "goes down"):
        root.clear()
        assert left() == {"lab-there", "lab-held", "labs", "install"}
    assert left() == {"lab-there", "labs", "install"} and not (place / ".gone-x-1").exists()


@pytest.mark.parametrize("forgotten", [".gone-x-1", ".locks/lab-x"])
def test_the_next_command_asks_for_it(place, monkeypatch, forgotten):
    calls = []
    monkeypatch.setattr(provider, "helper", calls.append)
    provider.clear_trash()
    assert calls == []
    (place / forgotten).mkdir()
    provider.clear_trash()
    assert calls == ["clear"]


def test_a_lab_gets_cores_that_no_other_has_unless_both_may_share(place, monkeypatch):
    def helper(do, **request):
        asked.append((do, request["asked"]))
        try:
            return root.DOES[do](**request)
        except ValueError as error:
            raise LabError(str(error)) from None

    asked = []
    monkeypatch.setattr(provider, "helper", helper)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setenv(cores.SHARE, "0")
    for lab, boot, has in (("there", kernel.boot_id(), [0]), ("before", "of an earlier boot", [1])):
        (place / lab).mkdir()
        Journal(place / lab).write("lab", boot=boot, cores=has, share_cores=True, study="demo", uid=os.getuid(),
                                   pid=os.getpid())
    provider.require_cores(0)
    assert asked == [], "who asks for none needs no helper"
    provider.require_cores(1)
    assert root.free_cores(1, share_cores=False) == {"cores": [1]}
    with pytest.raises(LabError, match="asks for 2 cores of its own, and only core 1 is free: lab there"):
        provider.require_cores(2)
    monkeypatch.setenv(cores.SHARE, "1")
    provider.require_cores(2)
    assert asked == [("cores", 1), ("cores", 2), ("cores", 2)]


@pytest.fixture
def state(tmp_path):
    """A folder of hosts' folders."""
    return folder_of_ours(tmp_path)


@pytest.mark.parametrize("mode, removed", [(0o700, True), (0o755, False)])
def test_only_folders_as_labs_have_them_are_cleared_beside_a_new_lab(place, state, mode, removed):
    for folder in (state / "old", state / "thesis"):
        folder.mkdir(mode=0o700 if folder.name == "old" else mode)
        (folder / root.MARK).touch()
    (state / "link").symlink_to("thesis")
    (place / "up").mkdir()
    (place / "up" / "journal").write_text('{"made": "lab"}\n')
    (state / "up").mkdir(mode=0o700)
    (state / "up" / root.MARK).touch()
    root._clear_orphans(state)
    assert not (state / "old").exists() and (state / "up").exists()
    assert (state / "thesis" / root.MARK).exists() is not removed


def test_what_another_user_calls_so_is_not_cleared(state, monkeypatch):
    (state / "thesis").mkdir(mode=0o700)
    (state / "thesis" / root.MARK).touch()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    root._clear_orphans(state)
    assert (state / "thesis" / root.MARK).exists()


@pytest.mark.parametrize("above, mode, refused", [
    (False, 0o755, False), (False, 0o775, True), (False, 0o757, True), (False, 0o1777, True),
    (True, 0o755, False), (True, 0o775, True), (True, 0o757, True), (True, 0o1777, False)])
@pytest.mark.parametrize("missing", [False, True])
def test_hosts_folders_lie_where_nobody_else_can_replace_them(state, above, mode, refused, missing):
    changed = state.parent if above else state
    changed.chmod(mode)
    where = state / "new" if missing else state
    refused = mode in (0o775, 0o757) if missing else refused    # in a sticky folder a new one is ours
    if refused:
        with pytest.raises(ValueError, match=f"lie in {where}: {changed} can be written by others .mode {mode:o}"):
            root._check_state(where, os.getuid())
    else:
        root._check_state(where, os.getuid())


@pytest.mark.skipif(os.getuid() != 0, reason="root alone gives files away")
def test_nor_in_another_users_folder(state):
    os.chown(state, 65534, -1)
    root._check_state(state, 65534)     # who asks may become root anyway
    with pytest.raises(ValueError, match=f"{state} is another user's"):
        root._check_state(state, 1)


def test_root_runs_no_program_from_a_folder_that_others_could_have_filled(tmp_path):
    source, programs = "int main(void) { return 0; }", tmp_path / ".programs"
    programs.mkdir(mode=0o755)
    programs.chmod(0o777)
    with pytest.raises(OSError, match="not this user's alone"):
        modelled.build(programs, source)
    assert list(programs.iterdir()) == []


def test_a_lab_that_is_down_leaves_its_folder_until_its_lock_is_gone(place, monkeypatch):
    """So that a helper killed between the two leaves something that any user's next command sees."""
    (place / "x").mkdir()
    seen = []
    monkeypatch.setattr(root, "clear", lambda: seen.append((left(), [*place.glob(root.TRASH)])))
    assert root.down("x", 0) == {"problems": []}
    (names, trash), = seen
    assert names == set() and len(trash) == 1
