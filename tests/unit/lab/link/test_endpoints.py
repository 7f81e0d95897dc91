"""What an end of a link notes of itself on its host, for every process that attaches."""

import json
import subprocess
from types import SimpleNamespace

import pytest

from labbook.errors import LabError, SystemFailure
from labbook.lab.link.endpoints import NOTHING_ASKED, End


class Host:
    """Runs commands in a folder of this machine."""

    name = "h1"

    def __init__(self, folder):
        self.folder = folder

    def run(self, command, check=True, root=False, **_):
        done = subprocess.run(["sh", "-c", command], cwd=self.folder, capture_output=True, text=True)
        if check and done.returncode:
            raise SystemFailure(done.stderr)
        return SimpleNamespace(stdout=done.stdout, stderr=done.stderr, exit_code=done.returncode)


@pytest.fixture
def end(tmp_path):
    return End(Host(tmp_path), "b", "a>b", None)


def test_the_note_is_whole_or_that_of_before(end, tmp_path):
    end._apply(["echo > made"], {**NOTHING_ASKED, "cut": True})
    end.forget()
    assert end.asked["cut"] and (tmp_path / "made").exists() and not list(tmp_path.glob("*.new"))
    with pytest.raises(SystemFailure):
        end._apply(["false"], dict(NOTHING_ASKED))
    end.forget()
    assert end.asked["cut"]


def test_nothing_is_changed_where_no_note_can_be_written(end, tmp_path):
    """The rules were there and the note was empty, so a link that was cut was said not to be."""
    (tmp_path / "link-b.json.new").mkdir()
    with pytest.raises(SystemFailure):
        end._apply(["echo > made"], {**NOTHING_ASKED, "cut": True})
    assert not (tmp_path / "made").exists() and end.untouched


def test_a_damaged_note_is_said(end, tmp_path):
    (tmp_path / "link-b.json").write_text(json.dumps(NOTHING_ASKED)[:-4])
    with pytest.raises(LabError, match="h1: the note of a link, link-b.json, is damaged"):
        end.asked
