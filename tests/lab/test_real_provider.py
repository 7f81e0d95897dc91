"""Labs on hosts of a user's own: up, found again, limited, down; nothing of them stays."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from foreign import differences, foreign_hosts
from small_labs import best_of, describe, new_id

from labbook.errors import LabError
from labbook.lab import Environment, Lab

HERE = Path(__file__).parent
LIMITS = {"h1": {"cores": 1, "quota": 0.5, "memory": "256M"}, "h2": {"cores_of": "h1"}}
ALLOW = ["limits", "disk", "shape"]


@pytest.fixture(scope="module")
def place():
    with foreign_hosts(["r1", "r2"], jump="bastion") as made:
        yield made


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "labbook" / "labs"


@pytest.fixture
def there(place, tmp_path):
    """An environment of the two hosts that allows all, and what they were like before."""
    return Environment.load(place.environment(tmp_path / "hosts.yml", allow=ALLOW))


@pytest.fixture
def same(place):
    """After the test, hosts are as they were before it."""
    before = {name: place.snapshot(name) for name in place.names}
    yield before
    for name in place.names:
        assert differences(before[name], place.snapshot(name)) == [], name


def test_up_and_down_leave_nothing_here_or_there(place, there, same, state):
    description = describe(LIMITS)
    with Lab.up(description, there, new_id()) as lab:
        h1, h2 = lab.host("h1"), lab.host("h2")
        assert h1.run("id -un; pwd; echo $HOME").stdout.split() == ["op", str(h1.root), str(h1.root)]
        assert h1.address == place.addresses["r1"]["data"]
        assert h1.run("stat -c %a . ..").stdout.split() == ["700", "700"]
        assert h1.run("nproc").stdout.strip() == "1" and len(h2.cores) == 1
        server = h1.start("server", "sleep 1000")
        groups = h1.run(f"cat /proc/{server.pid}/cgroup").stdout
        assert groups.count(f"labbook-{lab.id}/h1") == len(h1.groups) > 0
        for group in h1.groups:     # as in version 2, where it takes root to enter one
            place.inside("r1", f"chown root {group}/cgroup.procs")
        assert h1.run("cat /proc/self/cgroup").stdout == groups
        h2.start("roots", "sleep 1001", root=True)
        h2.run("setsid sh -c 'sleep 1002 & sleep 1003' > /dev/null 2>&1 < /dev/null & true")
        assert (lab.folder / "lab.json").stat().st_mode and lab.folder.parent == state
        facts = json.dumps(lab.facts())
        for secret in (there.hosts[0].key, "op", h1.address, h1.login.address):
            assert f'"{secret}"' not in facts
        assert lab.facts()["hosts"]["h1"]["machine"]["cores"] >= 1
    assert list(state.iterdir()) == []


def test_another_process_takes_it_up_and_down(place, there, same):
    """By its id alone: hosts, links, processes, the way in by OpenSSH through the jump host."""
    lab = Lab.up(describe({"h1": {}, "h2": {}}), there, new_id(), keep=True)
    lab.host("h1").start("server", "sleep 1000")
    standing, = [one for one in Lab.list() if one.id == lab.id]
    assert standing.hosts == ("h1", "h2") and standing.keep
    assert lab.id not in Lab.sweep()
    done = subprocess.run(["ssh", "-F", standing.ssh_config, "-o", "BatchMode=yes", "h2", "hostname"],
                          text=True, capture_output=True)
    assert done.stdout == "r2\n", done.stderr
    code = ("import sys; from labbook.lab import Lab; lab = Lab.attach(sys.argv[1]); "
            "assert lab.host('h1').process('server').alive(); lab.down()")
    subprocess.run([sys.executable, "-c", code, lab.id], check=True)
    assert lab.id not in [one.id for one in Lab.list()]


def test_a_share_of_a_processor_is_set_anew(there, same):
    with Lab.up(describe({"h1": {"quota": 0.3}, "h2": {}}), there, new_id()) as lab:
        burn = ("import time; t, begun = time.monotonic() + 1, time.process_time()\n"
                "while time.monotonic() < t: pass\nprint(time.process_time() - begun)")
        lab.host("h1").put(burn, "burn.py")
        for quota, least, most in ((0.05, 0, 0.12), (None, 0.13, 1.1)):
            lab.limit("h1", quota)
            used = best_of(5, lambda: float(lab.host("h1").run("python3 -I burn.py").stdout),
                           lambda used, least=least: used > least)
            assert least < used < most
            assert lab.facts()["hosts"]["h1"]["limits"]["quota"] == quota
        with pytest.raises(LabError, match="h2 came up without a quota"):
            lab.limit("h2", 0.5)


DRIVER = """
import os, signal, sys, time
sys.path.insert(0, sys.argv[3])
from small_labs import *
from labbook.lab import Environment, Lab
with Lab.up(describe({"h1": {"quota": 0.5}, "h2": {}}), Environment.load(sys.argv[2]),
            sys.argv[1]) as lab:
    lab.host("h1").start("server", "sleep 1000")
    if sys.argv[4] == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(1000)
"""


def test_the_next_lab_of_an_id_takes_down_what_a_killed_driver_left_even_if_it_wrote_nothing(
        place, there, same, state):
    """From the mark and the journal on the host alone: here, all that was written has gone."""
    lab_id = new_id()
    subprocess.run([sys.executable, "-c", DRIVER, lab_id, there.file, HERE, "kill"])
    assert "sleep 1000" in place.inside("r1", "ps -eo args")
    assert list(state.iterdir()) == [state / lab_id]
    (state / lab_id).rename(state.parent / "lost")
    with Lab.up(describe({"h1": {}, "h2": {}}), there, lab_id) as lab:
        assert lab.host("h1").run("ls").stdout.split() == ["tmp"]
        assert "sleep 1000" not in place.inside("r1", "ps -eo args")


@pytest.mark.parametrize("after_s", [0.2, 0.4, 0.6])
def test_ctrl_c_while_it_comes_up_leaves_nothing(there, same, state, after_s):
    process = subprocess.Popen([sys.executable, "-c", DRIVER, new_id(), there.file, HERE, "stay"],
                               stderr=subprocess.PIPE, text=True)
    assert "looking at 2 hosts" in process.stderr.readline()
    time.sleep(after_s)
    process.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in process.stderr.read() and process.wait() != 0
    assert list(state.iterdir()) == []


def test_after_a_reboot_other_processes_with_its_numbers_are_left_alone(place, there):
    lab = Lab.up(describe(LIMITS), there, new_id())
    lab.host("h1").start("server", "sleep 1000")
    place.reboot("r1")
    stranger = place.inside("r1", "setsid sleep 1004 > /dev/null 2>&1 & echo $!", user="op").strip()
    ids = f"{stranger} $(cut -d' ' -f22 /proc/{stranger}/stat)"
    place.inside("r1", f"echo {ids} {ids} > {lab.host('h1').root}/processes/server/ids")
    lab.down()
    assert "sleep 1004" in place.inside("r1", f"ps -o args= -p {stranger}; kill {stranger}")
    assert place.inside("r1", "ls -A /home/op").split() == place.inside("r2", "ls -A /home/op").split()


@pytest.mark.parametrize("make, message", [
    ("ln -s /var/tmp labbook", "is a link to /var/tmp"),
    ("mkdir -m 777 labbook", "can be written by everybody"),
    ("mkdir -m 775 labbook", r"can be written by group op \(mode 775\)"),
    ("touch labbook", "is no folder|cannot write"),
    ("mkdir labbook; sudo chown daemon labbook", "cannot write|belongs to daemon"),
])
def test_a_root_folder_that_others_may_change_is_refused(place, there, make, message):
    place.inside("r1", f"cd /home/op; {make}", user="op")
    before = place.snapshot("r1")
    try:
        with pytest.raises(LabError, match=message):
            Lab.up(describe({"h1": {}}), there, new_id())
        assert differences(before, place.snapshot("r1")) == []
    finally:
        place.inside("r1", "rm -rf /home/op/labbook")


def test_root_is_asked_for_only_where_something_that_takes_it_is_allowed(place, tmp_path, same):
    there = Environment.load(place.environment(tmp_path / "hosts.yml", allow=None))
    with Lab.up(describe({"h1": {}, "h2": {}}), there, new_id()) as lab:
        with pytest.raises(LabError, match="h2: `id` needs root"):
            lab.host("h2").run("id", root=True)
        lab.host("h2").start("server", "sleep 1000")
        assert lab.host("h1").groups == ()


def test_a_frozen_host_rests_and_the_lab_goes_down_all_the_same(there, same):
    with Lab.up(describe({"h1": {"quota": 0.5}, "h2": {}}), there, new_id()) as lab:
        assert lab.facts()["without_freezer"] == ["h2"], "without limits it has no control group"
        h1 = lab.host("h1")
        h1.start("count", "sh -c 'while :; do echo >> count; sleep 0.01; done'")

        def count():
            return int(h1.run("touch count; wc -l < count", root=True).stdout)

        h1.wait_for(count, "the first line", 20)
        assert lab.freeze("h1", "h2") == ["h1"]
        rests = count()
        time.sleep(0.3)
        assert count() == rests
        lab.thaw("h1")
        h1.wait_for(lambda: count() > rests, "more lines", 20)
        lab.freeze("h1")
