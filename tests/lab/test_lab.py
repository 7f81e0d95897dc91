"""Labs: up, found again, down, side by side; limits that hold."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from small_labs import SUDO, backing_files, best_of, describe, new_id, owned_state, swept

from labbook.errors import InputError, LabError
from labbook.lab import Environment, Lab
from labbook.lab.local import provider

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


def test_a_block_of_a_range_of_other_addresses_is_cut_off_only_while_the_lab_is_up():
    def cut_off():
        listed = subprocess.run(["ip", "-4", "route", "show", "type", "unreachable"], capture_output=True, text=True)
        return [line.split()[1] for line in listed.stdout.splitlines() if line.startswith("unreachable 10.213.")]

    with Lab.up(describe({"h1": {}}), Environment("local", range="10.213.96.0/20"), new_id()) as lab:
        assert cut_off() == ["10.213.96.0/20"] and lab.host("h1").address.startswith("10.213.")
    assert not cut_off()


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
    done = subprocess.run([sys.executable, "-c", code, lab_id, str(Path(__file__).parent)])
    assert done.returncode == -signal.SIGKILL     # by itself, once the lab was there
    assert swept(lab_id)
    assert not Path("/run/labbook", lab_id).exists()


def test_a_lab_to_be_kept_whose_start_was_killed_is_swept():
    lab_id, code = new_id(), (
        "import os, signal, sys; sys.path.insert(0, sys.argv[2]); from small_labs import *; "
        "from labbook.lab import Environment, Lab; "
        "Lab._shape_links = lambda lab: os.kill(os.getpid(), signal.SIGKILL); "
        "Lab.up(describe({'h1': {}}), Environment('local'), sys.argv[1], keep=True)")
    done = subprocess.run([sys.executable, "-c", code, lab_id, str(Path(__file__).parent)])
    assert done.returncode == -signal.SIGKILL     # by itself, once the lab was there
    assert swept(lab_id)
    assert not Path("/run/labbook", lab_id).exists()


def test_up_takes_down_what_an_earlier_lab_of_the_id_left():
    lab_id = new_id()
    kept = Lab.up(describe({"old": {}}), LOCAL, lab_id, keep=True)
    kept.host("old").run("touch old-file")
    with Lab.up(describe({"new": {}}), LOCAL, lab_id) as lab:
        assert list(lab.hosts) == ["new"]
        assert lab.host("new").run("ls").stdout.split() == []


def test_more_cores_than_the_machine_has_is_reported_before_anything_starts():
    lab_id = new_id()
    with pytest.raises(LabError, match="ask for 999 cores"):
        Lab.up(describe({"h1": {"cores": 999}}), LOCAL, lab_id)
    assert not Path("/run/labbook", lab_id).exists()


def test_a_host_that_cannot_start_shows_why(monkeypatch):
    monkeypatch.setattr("labbook.lab.local.access.make_keys", lambda folder: None)
    lab_id = new_id()
    with pytest.raises(LabError, match="h1.*(host key|hostkey)"):
        Lab.up(describe({"h1": {}}), LOCAL, lab_id)
    assert not Path("/run/labbook", lab_id).exists()


def test_what_a_killed_start_left_is_no_hindrance():
    lab_id = new_id()
    ownership = owned_state(lambda: provider.open_state(lab_id))
    (ownership.folder / "key").write_text("half a key")     # as far as a driver came
    ownership.release()
    with Lab.up(describe({"h1": {}}), LOCAL, lab_id) as lab:
        assert lab.host("h1").run("true").exit_code == 0


def test_a_second_down_leaves_the_next_lab_of_that_id_alone():
    first = Lab.up(describe({"h1": {}}), LOCAL, new_id())
    first.down()
    with Lab.up(describe({"h1": {}}), LOCAL, first.id) as second:
        first.down()
        assert second.host("h1").run("echo here").stdout == "here\n"


@pytest.mark.skipif(os.geteuid(), reason="root itself")
def test_a_lab_is_not_given_to_another_user():
    lab_id = new_id()
    nobody = {"lab": lab_id, "uid": 65534, "gid": 65534}
    ownership = owned_state(lambda: provider.helper("open", **nobody)["folder"])
    assert ownership.folder.stat().st_uid == 65534
    (ownership.folder / "key").touch()
    os.chown(ownership.folder, 0, 0)
    with pytest.raises(LabError, match="belongs to another user"):
        provider.helper("open", **nobody)
    provider.down(lab_id)
    ownership.release()


def test_a_folder_that_is_not_a_labs_is_never_deleted(tmp_path):
    lab_id = new_id()
    (tmp_path / lab_id).mkdir()
    (tmp_path / lab_id / "thesis").touch()
    with pytest.raises(LabError, match="in the way"):
        Lab.up(describe({"h1": {}}), Environment("local", state=str(tmp_path)), lab_id)
    assert (tmp_path / lab_id / "thesis").exists() and not Path("/run/labbook", lab_id).exists()


def test_a_helper_whose_command_was_killed_makes_nothing(monkeypatch):
    lab_id, dead = new_id(), subprocess.Popen(["true"])
    dead.wait()
    ownership = owned_state(lambda: provider.open_state(lab_id))
    monkeypatch.setattr("os.getpid", lambda: dead.pid)
    with pytest.raises(LabError, match="has ended"):
        provider.up(lab_id, describe({"h1": {}}), LOCAL)
    provider.down(lab_id)
    ownership.release()


def test_disks_go_also_where_the_labs_folder_is_reached_by_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    state = Environment("local", state=str(tmp_path / "link"))
    with Lab.up(describe({"h1": {"disk": {"size": "64M"}}}), state, new_id()):
        assert (backing := [b for b in backing_files() if str(tmp_path) in b])
    assert not set(backing) & set(backing_files())


def test_a_checkout_in_a_place_that_hosts_have_for_themselves_is_seen(tmp_path, monkeypatch):
    (tmp_path / "python").write_text("here\n")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert str(tmp_path).startswith(("/tmp/", "/var/tmp/"))
    with Lab.up(describe({"h1": {}}), LOCAL, new_id()) as lab:
        assert lab.host("h1").run(f"cat {tmp_path}/python").stdout == "here\n"
        assert lab.host("h1").run(f"touch {tmp_path}/stray", check=False).exit_code != 0
        assert lab.host("h1").run("getent shadow root").stdout.startswith("root:*:")


def test_the_callers_mask_and_ssh_settings_are_not_the_labs(tmp_path, monkeypatch):
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "config").write_text("Host *\n  ProxyCommand false\n  Port 1\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    before = os.umask(0o077)
    try:
        with Lab.up(describe({"h1": {}}), LOCAL, new_id()) as lab:
            output = lab.host("h1").run("umask; setpriv --reuid=65534 getent hosts h1").stdout
            assert output.startswith("0022") and lab.host("h1").address in output
    finally:
        os.umask(before)


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


def test_a_quota_is_lifted_and_set_anew():
    with Lab.up(describe({"h1": {"quota": 0.3}, "free": {}}), LOCAL, new_id()) as lab:
        host = lab.host("h1")
        host.put("import time; t, begun = time.monotonic() + 1, time.process_time()\n"
                 "while time.monotonic() < t: pass\nprint(time.process_time() - begun)", "burn.py")
        for quota, least, most in ((None, 0.13, 1.1), (0.05, 0, 0.12)):
            lab.limit("h1", quota)
            used = best_of(5, lambda: float(host.run(f"{host.python} -S -E burn.py").stdout),
                           lambda used, least=least: used > least)
            assert least < used < most
        with pytest.raises(LabError, match="free came up without a quota"):
            lab.limit("free", 0.5)
        with pytest.raises(InputError, match="0.01 and more"):
            lab.limit("h1", 0)


def test_memory_holds(limited):
    few, many = (limited.run(f"{limited.python} -S -E -c 'len(bytearray({mib} << 20))'", check=False) for mib in (10, 400))
    assert few.exit_code == 0 and many.exit_code != 0


def test_a_host_is_named_whose_processes_ended_for_want_of_memory():
    with Lab.up(describe({"small": {"memory": "64M"}, "free": {}}), LOCAL, new_id()) as lab:
        assert lab.short_of_memory() == []
        small = lab.host("small")
        assert small.run(f"{small.python} -S -E -c 'len(bytearray(200 << 20))'", check=False).exit_code
        assert lab.short_of_memory() == [
            "small had too little memory (64 MB): the kernel killed 1 of its processes"]


def test_the_disk_is_its_own_and_as_slow_as_asked(limited):
    assert limited.root.as_posix() in limited.run("df --output=target . | tail -1").stdout
    dd = "dd if=/dev/zero of=x bs=1M count=80 oflag=direct 2>&1"
    rate = best_of(5, lambda: float(re.search(r"([\d.]+) MB/s", limited.run(dd).stdout)[1]), lambda rate: rate > 25)
    assert 25 < rate < 48
    small = limited.run("dd if=x of=/dev/null bs=4k count=400 iflag=direct 2>&1").stdout
    assert 400 / float(re.search(r"([\d.]+) s,", small)[1]) < 260
    queue = "/sys/block/$(basename $(df --output=source . | tail -1))/queue"
    assert "[mq-deadline]" in limited.run(f"cat {queue}/scheduler").stdout
    assert limited.run(f"cat {queue}/read_ahead_kb").stdout.strip() == "64"
    mounted = limited.run("grep \" $(df --output=target . | tail -1) ext4 \" /proc/self/mounts").stdout
    assert "noinit_itable" in mounted, "the kernel would write to the disk while it is measured"


def test_what_is_deleted_on_a_disk_does_not_stay_in_its_file(limited):
    device = Path(limited.run("df --output=source . | tail -1").stdout.strip())
    file = Path(Path("/sys/block", device.name, "loop/backing_file").read_text().strip())
    limited.run("dd if=/dev/urandom of=y bs=1M count=40 oflag=direct 2> /dev/null && sync -f .")
    full = int(stat_as_root("%b", file))
    limited.run("rm y && sync -f .")
    until = time.monotonic() + 30       # discards follow the journal's next commit
    while full - int(stat_as_root("%b", file)) < 35 << 11 and time.monotonic() < until:
        time.sleep(0.2)
    assert full - int(stat_as_root("%b", file)) >= 35 << 11


def stat_as_root(what, file) -> str:
    return subprocess.run([*SUDO, "stat", "-c", what, file], check=True, text=True, capture_output=True).stdout.strip()


def test_another_user_of_the_machine_reads_nothing_of_a_lab(limited):
    state = Path(limited.login.key).parent
    disk = Path(limited.run("df --output=source . | tail -1").stdout.strip()).name
    home = Path(Path("/sys/block", disk, "loop/backing_file").read_text().strip()).parent
    limited.put("a key", "secret", 0o644)   # as a server may write it
    for folder in (state, home):
        assert folder.stat().st_mode & 0o777 == 0o700
        seen = subprocess.run([*SUDO, "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "find", folder],
                              text=True, capture_output=True)
        assert seen.stdout.split() == [str(folder)] and "Permission denied" in seen.stderr
    assert int(stat_as_root("%a", home / "h1.disk"), 8) & 0o077 == 0
    holds_secret = [file for file in state.rglob("*") if file.is_file() and b"PRIVATE KEY" in file.read_bytes()]
    assert sorted(file.name for file in holds_secret) == ["host_key", "key"]
    assert [file for file in holds_secret if file.stat().st_mode & 0o077] == []
