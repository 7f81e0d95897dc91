"""Labs: up, found again, down, side by side; limits that hold."""

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from small_labs import describe, new_id

from labbook.errors import LabError
from labbook.lab import Environment, Lab

LOCAL = Environment("local")


def test_up_and_down_leave_nothing(pair):
    lab = Lab.up(describe({"h1": {}}), LOCAL, new_id())
    folder = lab.folder
    assert Path("/sys/class/net", f"lb-{lab.id}").exists()
    assert (folder / "key").stat().st_mode & 0o777 == 0o600
    lab.down()
    lab.down()
    assert not folder.exists() and not Path("/sys/class/net", f"lb-{lab.id}").exists()
    assert pair.host("h1").run("echo untouched").stdout == "untouched\n"


def test_two_labs_at_once_have_addresses_of_their_own(pair):
    with Lab.up(describe({"h1": {}, "h2": {}}), LOCAL, new_id()) as other:
        mine = {h.address for h in pair.hosts.values()}
        assert not mine & {h.address for h in other.hosts.values()}
        stranger = pair.host("h1").address
        assert other.host("h1").run(f"ping -c1 -W1 {stranger}", check=False).exit_code != 0
        assert other.host("h1").run("ping -c1 -W2 h2").exit_code == 0


def test_a_lab_in_use_is_refused_to_others(pair):
    with pytest.raises(LabError, match=f"lab {pair.id} is in use by process"):
        Lab.up(describe({"h1": {}}), LOCAL, pair.id)
    with pytest.raises(LabError, match="in use"):
        Lab.attach(pair.id)


def test_a_kept_lab_is_found_again_by_another_process():
    lab = Lab.up(describe({"h1": {}}), LOCAL, new_id(), keep=True)
    lab.host("h1").run("echo note > note")
    try:
        assert lab.id in [standing.id for standing in Lab.list()]
        assert lab.id not in Lab.sweep()
        again = Lab.attach(lab.id)
        assert again.host("h1").get("note") == b"note\n"
    finally:
        Lab.attach(lab.id).down() if "again" not in locals() else again.down()
    assert lab.id not in [standing.id for standing in Lab.list()]


def test_a_lab_whose_owner_was_killed_is_swept():
    lab_id = new_id()
    code = ("import sys, os, signal; sys.path.insert(0, sys.argv[2]); from small_labs import *; from labbook.lab import Environment, Lab; "
            "Lab.up(describe({'h1': {}}), Environment('local'), sys.argv[1]); "
            "os.kill(os.getpid(), signal.SIGKILL)")
    subprocess.run([sys.executable, "-c", code, lab_id, str(Path(__file__).parent)])
    assert Path("/run/labbook", lab_id).exists()
    assert lab_id in Lab.sweep()
    assert not Path("/run/labbook", lab_id).exists()


def test_up_takes_down_what_an_earlier_lab_of_the_id_left():
    lab_id = new_id()
    kept = Lab.up(describe({"old": {}}), LOCAL, lab_id, keep=True)
    kept.host("old").run("touch old-file")
    with Lab.up(describe({"new": {}}), LOCAL, lab_id) as lab:
        assert list(lab.hosts) == ["new"]
        assert lab.host("new").run("ls").stdout.split() == []


def test_more_cores_than_the_machine_has_is_said_before_anything_starts():
    lab_id = new_id()
    with pytest.raises(LabError, match="ask for 999 cores"):
        Lab.up(describe({"h1": {"cores": 999}}), LOCAL, lab_id)
    assert not Path("/run/labbook", lab_id).exists()


def test_a_host_that_cannot_start_shows_why(monkeypatch):
    monkeypatch.setattr("labbook.lab.lab._make_keys", lambda folder: None)
    lab_id = new_id()
    with pytest.raises(LabError, match="h1.*(host key|hostkey)"):
        Lab.up(describe({"h1": {}}), LOCAL, lab_id)
    assert not Path("/run/labbook", lab_id).exists()


@pytest.fixture(scope="module")
def limited():
    limits = {"cores": 1, "quota": 0.3, "memory": "256M", "disk": {
        "size": "1G", "iops": 200, "mb_per_s": 40, "scheduler": "mq-deadline",
        "read_ahead_kb": 64}}
    with Lab.up(describe({"h1": limits}), LOCAL, new_id()) as lab:
        yield lab.host("h1")


def test_cores_and_quota_hold(limited):
    assert limited.run("nproc").stdout.strip() == "1" and len(limited.cores) == 1
    burn = "import time; t = time.monotonic() + 2\nwhile time.monotonic() < t: pass"
    limited.put(burn + "\nprint(time.process_time() / 2)", "burn.py")
    share = float(limited.run(f"{limited.python} -S -E burn.py").stdout)
    assert share < 0.36


def test_memory_holds(limited):
    hog = limited.run(f"{limited.python} -S -E -c 'len(bytearray(400 << 20))'", check=False)
    assert hog.exit_code != 0


def test_the_disk_is_its_own_and_as_slow_as_asked(limited):
    assert limited.root.as_posix() in limited.run("df --output=target . | tail -1").stdout
    dd = "dd if=/dev/zero of=x bs=1M count=80 oflag=direct 2>&1"
    rate = float(re.search(r"([\d.]+) MB/s", limited.run(dd).stdout)[1])
    assert 25 < rate < 48
    began = time.monotonic()
    limited.run("dd if=x of=/dev/null bs=4k count=400 iflag=direct 2> /dev/null")
    assert 1.5 < time.monotonic() - began < 6
    queue = "/sys/block/$(basename $(df --output=source . | tail -1))/queue"
    assert "[mq-deadline]" in limited.run(f"cat {queue}/scheduler").stdout
    assert limited.run(f"cat {queue}/read_ahead_kb").stdout.strip() == "64"
