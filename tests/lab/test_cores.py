"""Labs at once never share own cores."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HIDE = "mount -t tmpfs tmpfs /run/labbook && exec \"$@\""     # the labs of tests beside this one


@pytest.mark.skipif(os.geteuid(), reason="root itself")
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="for two labs it takes two cores")
def test_cores_are_handed_out_once_refused_and_freed(tmp_path):
    Path("/run/labbook").mkdir(exist_ok=True)
    command = ["unshare", "--mount", "sh", "-c", HIDE, "sh", sys.executable,
               str(Path(__file__).with_name("own_cores.py")), str(tmp_path)]
    alone = {name: value for name, value in os.environ.items() if name != "LABBOOK_SHARE_CORES"}
    alone["XDG_STATE_HOME"] = str(tmp_path / "others")      # the labs of tests on hosts over SSH
    done = subprocess.run(command, capture_output=True, text=True, env=alone, timeout=300)
    assert done.returncode == 0, done.stderr
