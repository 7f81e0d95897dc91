"""What the privileged helper clears away, in a folder of the test's own."""

import pytest

from labbook.lab import locks
from labbook.lab.local import provider, root


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
    asked = []
    monkeypatch.setattr(provider, "helper", asked.append)
    provider.clear_trash()
    assert asked == []
    (place / forgotten).mkdir()
    provider.clear_trash()
    assert asked == ["clear"]


def test_a_lab_that_is_down_leaves_its_folder_until_its_lock_is_gone(place, monkeypatch):
    """So that a helper killed between the two leaves something that any user's next command sees."""
    (place / "x").mkdir()
    seen = []
    monkeypatch.setattr(root, "clear", lambda: seen.append((left(), [*place.glob(root.TRASH)])))
    assert root.down("x", 0) == {"problems": []}
    (names, trash), = seen
    assert names == set() and len(trash) == 1
