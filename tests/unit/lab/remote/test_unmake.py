"""What of a user's host is not taken for clean; this machine's sh stands in for the host."""

import json
import subprocess

import pytest

from labbook.errors import LabError
from labbook.lab.remote import unmake
from labbook.lab.remote.claim import ClaimedHost, claim_text


class Here(unmake._Unmaking):
    """Scripts run on this machine, without root."""

    def __init__(self, root, lab_id="l1", **of_host):
        of = {"by": json.loads(claim_text(lab_id, "now"))["by"]} | of_host
        super().__init__(ClaimedHost("rack1", "10.0.0.1", None, str(root), "python3", (), **of), lab_id, None)

    def _sh(self, script, root=False):
        for name, value in (("@ROOT@", self.taken.root), ("@LAB@", str(self.place)), ("@ID@", self.lab_id),
                            ("@MADE@", "")):
            script = script.replace(name, value)
        return subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout


def test_a_root_folder_whose_disk_is_not_mounted_is_not_taken_for_clean(tmp_path):
    with pytest.raises(LabError, match="rack1: .*/gone is not there, so what is left in it stays.*labbook down l1"):
        Here(tmp_path / "gone").all()


def test_a_root_folder_that_a_lab_made_and_took_away_is_clean(tmp_path):
    Here(tmp_path / "gone", new_folders=(str(tmp_path / "gone"),)).all()


@pytest.mark.parametrize("text", ["", "half a li", "[]"])
def test_where_it_is_unknown_whose_a_root_folder_is_nothing_is_touched(tmp_path, text):
    (tmp_path / "in-use").write_text(text)
    (tmp_path / "l1").mkdir()
    with pytest.raises(LabError, match="in-use cannot be read, so what is left there stays"):
        Here(tmp_path).all()
    assert (tmp_path / "l1").is_dir() and (tmp_path / "in-use").read_text() == text


def test_another_labs_root_folder_is_left_alone(tmp_path):
    (tmp_path / "in-use").write_text(claim_text("l2", "now"))
    (tmp_path / "l1").mkdir()
    Here(tmp_path).all()
    assert (tmp_path / "l1").is_dir() and json.loads((tmp_path / "in-use").read_text())["lab"] == "l2"
