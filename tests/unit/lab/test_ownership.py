import shutil
import subprocess
import sys
import threading

import pytest

from labbook.errors import LabError
from labbook.lab.ownership import Ownership


def test_one_holder_at_a_time(tmp_path):
    first, second = Ownership(tmp_path), Ownership(tmp_path)
    assert first.take() and not second.take()
    with pytest.raises(LabError, match="in use by process"):
        second.require()
    first.release()
    assert second.take()


def test_the_lock_dies_with_its_holder(tmp_path):
    code = ("import sys, os; from labbook.lab.ownership import Ownership; "
            "from pathlib import Path; assert Ownership(Path(sys.argv[1])).take(); os.abort()")
    subprocess.run([sys.executable, "-c", code, tmp_path], stderr=subprocess.DEVNULL)
    assert Ownership(tmp_path).take()


def test_a_folder_that_went_away_is_nobodys(tmp_path):
    folder = tmp_path / "gone"
    folder.mkdir()
    Ownership(folder).take()
    shutil.rmtree(folder)
    assert not Ownership(folder).take()


def test_a_sweep_under_way_is_waited_for(tmp_path):
    sweeper, owner = Ownership(tmp_path), Ownership(tmp_path)
    assert sweeper.take()
    end = threading.Timer(0.1, sweeper.release)
    end.start()
    owner.require()
    end.join()
    assert owner.held
