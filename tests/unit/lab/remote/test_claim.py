"""A root folder on a host that others could change is refused; this machine's sh stands in for the host."""

import os
import subprocess
from types import SimpleNamespace

import pytest
from here import folder_of_ours

from labbook.errors import LabError
from labbook.lab.remote.claim import look, take


@pytest.fixture
def host():
    def run(command, **_):
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
        if done.returncode:
            raise LabError(done.stderr)
        return SimpleNamespace(stdout=done.stdout)

    return SimpleNamespace(name="h1", run=run)


@pytest.fixture
def place(tmp_path):
    return folder_of_ours(tmp_path)


def test_a_folder_of_one_s_own_will_do_and_one_that_is_still_to_be_made(host, place):
    assert look(host, place, "x").made == []
    assert look(host, place / "a" / "b", "x").made == [str(place / "a" / "b"), str(place / "a")]
    take(host, place / "a", "lab1", [str(place / "a")])
    assert (place / "a").stat().st_mode & 0o777 == 0o700 and look(host, place / "a", "lab1").in_use["lab"] == "lab1"


@pytest.mark.parametrize("mode, fault", [
    (0o777, r"can be written by everybody \(mode 777\)"),
    (0o1777, r"can be written by everybody \(mode 1777\)"),
    (0o775, r"can be written by group \S+ \(mode 775\)"),
])
def test_a_root_folder_that_others_write_is_refused_with_its_mode_and_a_remedy(host, place, mode, fault):
    place.chmod(mode)
    with pytest.raises(LabError, match=f"^h1: the root folder {place} {fault}. Others could swap .*chmod go-w"):
        look(host, place, "x")
    with pytest.raises(LabError, match=fault):    # it may have changed after the look
        take(host, place, "lab1")
    assert not (place / "in-use").exists()


@pytest.mark.parametrize("mode, refused", [(0o775, True), (0o757, True), (0o1777, False), (0o755, False)])
@pytest.mark.parametrize("below", [".", "new", "new/er"])
def test_its_parents_neither_unless_they_are_sticky(host, place, mode, refused, below):
    place.parent.chmod(mode)
    if refused:
        with pytest.raises(LabError, match=f"lies in {place.parent}, which can be written by .*mode {mode:o}"):
            look(host, place / below, "x")
    else:
        assert look(host, place / below, "x").wrong == ""


def test_a_new_folder_in_a_sticky_one_will_do_and_in_one_of_everybody_s_not(host, place):
    place.chmod(0o1777)
    assert look(host, place / "new", "x").made == [str(place / "new")]
    place.chmod(0o777)
    with pytest.raises(LabError, match=f"lies in {place}, which can be written by everybody"):
        look(host, place / "new", "x")


def test_where_a_link_on_the_way_leads_counts_too(host, place, tmp_path):
    shared = tmp_path / "shared"
    (shared / "own").mkdir(parents=True)
    os.chmod(shared, 0o777)
    (place / "link").symlink_to(shared / "own")
    with pytest.raises(LabError, match=f"lies in {shared}, which can be written by everybody"):
        look(host, place / "link" / "root", "x")
    (place / "link" / "root").mkdir()
    with pytest.raises(LabError, match=f"lies in {shared}, which can be written by everybody"):
        look(host, place / "link" / "root", "x")
