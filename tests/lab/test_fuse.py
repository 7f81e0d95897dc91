"""File systems that hang, and the end of who waits for them: by an unmount, a lab's end, the next
command after a kill."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from foreign import foreign_hosts
from real_labs import as_before
from small_labs import best_of, describe, new_id, swept

from labbook.errors import InputError
from labbook.lab import Environment, Lab
from labbook.lab.host import fuse
from labbook.lab.host.mount_point import run_or_abandon
from labbook.lab.probes import probes

HERE = Path(__file__).parent
LIB = HERE.parents[1] / "lib"
FUSE = {"fuse": True}
SECONDS = 20
LOOKUP = 1      # the kernel's word for what a stat begins with
DRIVER = """
import sys
sys.path.insert(0, sys.argv[1])
import os, signal, test_fuse
from labbook.lab import Environment, Lab
lab = Lab.up(test_fuse.describe({"h1": test_fuse.FUSE}), Environment("local"), sys.argv[2])
test_fuse.hang(lab.host("h1"), "self")
print(lab.host("h1").run("cat /proc/self/mountinfo").stdout.count("fuse.mute"), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
# Take a lab down as if the kernel never let go of who waits.
NEVER_ENDS = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from labbook.lab.journal import Journal
from labbook.lab.local import unmake
unmake.fuse.release, unmake.PATIENCE = lambda journal: None, 1
print(*unmake.unmake(Journal(Path(sys.argv[2]))), sep="\\n")
"""

WAITS = "ps -eo stat=,args= | grep '^D.*stat fs/your[s]'"


def hang(host, *itself):
    """Mount one that hangs, and have somebody wait for it, whom SIGKILL does not end."""
    host.put(HERE / "mute_fs.py", host.root / "mute_fs.py")
    host.run("mkdir fs")
    server = host.start("mute", f"{host.python} mute_fs.py {host.root}/fs {' '.join(itself)}", root=True)
    host.wait_for(lambda: f"asked {LOOKUP}" in server.log_tail() if itself else mounted(host),
                  "the file system to hang", SECONDS, server)
    for seconds in (0.5, 5, 15):    # on a busy machine it may end before it has asked
        assert run_or_abandon(host, "stat fs/yours", seconds) is None
        waits = best_of(20, lambda: host.run(WAITS, check=False).stdout, bool)
        if waits:
            break
    assert waits, "somebody must wait, or nothing is tested here"


def mounted(host):
    return "fuse.mute" in host.run("cat /proc/self/mountinfo").stdout


def callers(host):
    return host.run("ps -eo args= | grep 'stat fs/your[s]'", check=False).stdout


def test_this_machine_has_it():
    assert probes(["fuse"], again=True)["fuse"].ok


def test_what_hangs_is_unmounted_and_its_callers_end():
    with Lab.up(describe({"h1": FUSE, "h2": FUSE}), Environment("local"), new_id()) as lab:
        first, other = lab.host("h1"), lab.host("h2")
        hang(first)
        hang(other)
        first.run(fuse.unmount(first.root / "fs"), root=True)
        first.wait_for(lambda: not callers(first), "the caller to end", SECONDS)
        first.wait_for(lambda: not first.process("mute").alive(), "its server to end", SECONDS)
        assert not mounted(first)
        assert mounted(other) and callers(other)     # nobody else's


def test_a_lab_with_a_mount_that_hangs_goes_down():
    lab = Lab.up(describe({"h1": FUSE, "h2": {}}), Environment("local"), new_id())
    try:
        hang(lab.host("h1"), "self")
    finally:
        lab.down()
    assert not lab.folder.exists()


def test_one_outside_of_the_hosts_folder_whose_server_is_stopped_is_no_hindrance():
    lab = Lab.up(describe({"h1": FUSE}), Environment("local"), new_id())
    try:
        host = lab.host("h1")
        host.put(HERE / "mute_fs.py", host.root / "mute_fs.py")
        server = host.start("mute", f"{host.python} mute_fs.py /tmp", root=True)
        host.wait_for(lambda: mounted(host), "the file system", SECONDS, server)
        host.run("setsid stat /tmp/yours > /dev/null 2>&1 < /dev/null &")
        host.wait_for(lambda: f"asked {LOOKUP}" in server.log_tail(), "the call", SECONDS, server)
        server.signal("STOP")
        host.run("pkill -KILL -f 'stat /tmp/your[s]'")
        host.wait_for(lambda: host.run("ps -eo stat=,args= | grep '^D.*stat /tmp/your[s]'", check=False).stdout,
                      "somebody to wait for it", SECONDS)
    finally:
        lab.down()
    assert not lab.folder.exists()


def test_what_does_not_end_is_named_and_kept_and_the_next_command_ends_it():
    lab = Lab.up(describe({"h1": {**FUSE, "disk": {"size": "32M"}}}), Environment("local"), new_id())
    try:
        hang(lab.host("h1"), "self")
        sudo = ["sudo", "-n"] if os.geteuid() else []
        done = subprocess.run([*sudo, sys.executable, "-c", NEVER_ENDS, LIB, lab.folder], capture_output=True,
                              text=True, timeout=120)
        assert re.search(r"process \d+ \(h1\) does not end: waiting in the kernel: .*\d+ \(stat\) in",
                         done.stdout), done.stdout + done.stderr
        assert re.search(r"loop .*/h1.disk: .* is still in use as a disk", done.stdout), done.stdout
        assert (lab.folder / "journal").exists()
    finally:
        lab.down()
    assert not lab.folder.exists()


def test_the_next_command_after_a_kill_clears_it_too():
    lab_id = new_id()
    driver = subprocess.run([sys.executable, "-c", DRIVER, HERE, lab_id], capture_output=True,
                            text=True, timeout=120)
    assert driver.stdout == "1\n", driver.stderr
    assert swept(lab_id)
    assert not Path("/run/labbook", lab_id).exists()


@pytest.fixture(scope="module")
def place():
    with foreign_hosts(["r1"]) as made:
        yield made


def test_on_a_host_of_one_s_own_it_takes_leave_and_leaves_nothing(place, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def allowing(*kinds):
        return Environment.load(place.environment(tmp_path / "hosts.yml", allow=list(kinds)))

    with as_before(place):
        with pytest.raises(InputError, match="hosts.r1.allow: .* asks for fuse: mount file systems"):
            Lab.up(describe({"h1": FUSE}), allowing("limits"), new_id())
        lab = Lab.up(describe({"h1": FUSE}), allowing("fuse"), new_id())
        try:
            hang(lab.host("h1"), "self")
        finally:
            lab.down()
        until = time.monotonic() + SECONDS
        while "mute_fs" in place.inside("r1", "ps -eo args"):
            assert time.monotonic() < until, "the file system's server is still there"
            time.sleep(0.1)
