"""What a lab on real hosts has to know before and after it is one: no host is asked."""

import json
import os
import threading
from dataclasses import replace
from pathlib import PurePosixPath
from types import SimpleNamespace

import pytest

from labbook.errors import LabError, Lost
from labbook.lab import LabDescription
from labbook.lab.environment.inventory import RealHost
from labbook.lab.host import as_root
from labbook.lab.host.host import Host
from labbook.lab.journal import Journal
from labbook.lab.remote import claim, make, parallel, provider, root, unmake
from labbook.lab.remote.assign import parse_cpus, share_cores
from labbook.lab.ssh import config as ssh_config
from labbook.lab.ssh.jump import Jumps
from labbook.lab.ssh.login import Login

JUMP = Login("192.0.2.1", "op", "/k", "/known", 2222)
LOGIN = Login("10.0.0.1", "me", "/my keys/%k", "/known", jump=JUMP)


def description(**limits):
    hosts = {name: {"site": "a", "role": "db", "limits": given} for name, given in limits.items()}
    return LabDescription.parse({"sites": ["a"], "hosts": hosts})


SIZES = description(small={"cores": 1}, client={"cores": 2}, large={"cores_of": ["small", "client"]},
                    node={"cores_of": "small"}, free={})


@pytest.mark.parametrize("names, cpus, given", [
    (["small"], [0, 1], {"small": [0]}),
    (["small", "client"], [0, 1, 2], {"small": [0], "client": [1, 2]}),
    (["small", "node", "free"], [4, 5], {"small": [4], "node": [4]}),
    (["node", "client"], [0, 1, 2], {"client": [0, 1], "node": [2]}),     # as many, not the same
    (["small", "large"], [0, 1, 2, 3], {"small": [0], "large": [0, 1, 2]}),
    (["large", "client"], [0, 1, 2], {"client": [0, 1], "large": [0, 1, 2]}),
])
def test_shares_of_processors(names, cpus, given):
    assert share_cores(SIZES, names, cpus, "r1") == given


@pytest.mark.parametrize("names", [["small", "client"], ["large"]])
def test_too_few_processors_are_reported(names):
    with pytest.raises(LabError, match="r1: .* more cores than its 2"):
        share_cores(SIZES, names, [0, 1], "r1")


def test_lists_of_processors():
    assert parse_cpus("0-2,8") == [0, 1, 2, 8] and parse_cpus("3") == [3]


def taken(name, **more):
    return claim.ClaimedHost(name, "10.0.0.1", LOGIN, "/home/me/labs", "python3", ("limits",), **more)


def test_hosts_are_written_down_and_struck_out(tmp_path):
    for name in ("r1", "r2"):
        claim.note_claimed(tmp_path, taken(name, new_folders=("/home/me/labs",)))
    claim.note_released(tmp_path, taken("r1"))
    assert claim.still_claimed(tmp_path) == [taken("r2", new_folders=("/home/me/labs",))]
    assert claim.still_claimed(tmp_path)[0].login.jump == JUMP


def test_only_software_takes_no_root():
    assert taken("r1").sudo
    assert not claim.ClaimedHost("r", "", LOGIN, "/r", "python3", ("software",)).sudo


def test_a_mark_is_ours_by_id_and_driver(monkeypatch):
    mark = claim.claimed(claim.claim_text("l1", "today"))
    assert claim.ours(mark, "l1") and not claim.ours(mark, "l2") and not claim.ours(None, "l1")
    monkeypatch.setattr("platform.node", lambda: "another")
    assert not claim.ours(mark, "l1")
    assert claim.ours(mark, "l1", by=mark["by"])        # noted when the host was claimed
    assert not claim.ours(claim.claimed("cut sho"), "l1")


def test_the_way_in_goes_through_each_jump_host_by_its_own_key():
    text = ssh_config.text(dict.fromkeys(["h1", "h2"], LOGIN))
    assert text.count("Host ") == 3 and text.count("ProxyJump jump-op-192.0.2.1-2222") == 2
    assert 'IdentityFile "/my keys/%%k"' in text and "Port 2222" in text
    by_six = replace(LOGIN, jump=replace(JUMP, address="2001:db8::1"))
    assert "ProxyJump jump-op-2001_db8__1-2222" in ssh_config.text({"h1": by_six}), "which may have no colon"


def test_state_needs_no_root_and_is_for_its_user(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    folder = provider.open_state("l1")
    assert folder == tmp_path / "labbook" / "labs" / "l1" and provider.folders() == [folder]
    assert folder.stat().st_mode & 0o777 == 0o700
    provider.down("l1")
    provider.down("l1")
    assert provider.folders() == []
    with pytest.raises(LabError, match="not a lab's id"):
        provider.open_state("../l1")


@pytest.fixture
def version_2(tmp_path):
    """Files as a kernel with control groups of version 2 has them, once h1's folder is made."""
    root = tmp_path / "groups"
    host = root / "labbook-l1" / "h1"
    host.mkdir(parents=True)
    (root / "cgroup.controllers").write_text("cpuset cpu io memory")
    (root / "cgroup.subtree_control").write_text("memory pids")
    (host / "cgroup.procs").touch()
    return root


def test_groups_of_version_2_are_written_down_before_they_are_made(version_2, tmp_path):
    wanted = {"cores": 1, "quota": 0.2, "memory": 1 << 20}
    host = version_2 / "labbook-l1" / "h1"
    made = root.make_limits(str(tmp_path), "l1", "h1", wanted, [3], None, os.getuid(), str(version_2))
    assert made == {"groups": [str(host)], "freezer": False}    # these files have no cgroup.freeze
    assert [(e["made"], e.get("name", e.get("folder"))) for e in Journal(tmp_path).entries()] == [
        ("controller", "cpu"), ("controller", "cpuset"), ("cgroup", str(host))]
    assert (host / "cpu.max").read_text() == "2000 10000"
    assert (host / "cpuset.cpus").read_text() == "3"
    assert (host / "memory.max").read_text() == str(1 << 20)
    for file in (*host.iterdir(), *(p for p in host.parent.iterdir() if p.is_file())):
        file.unlink()   # the kernel's own go with their folder
    for _ in range(2):
        root.undo_limits([str(host)], ["cpu"], str(version_2))
    assert not host.parent.exists()
    assert (version_2 / "cgroup.subtree_control").read_text() == "-cpu"


@pytest.mark.parametrize("stops", [True, False])
def test_hosts_of_a_machine_freeze_in_one_call_and_all_or_none_stay_frozen(monkeypatch, stops):
    def call(host, function, lab, groups, frozen, timeout_s):
        calls.append((list(groups), frozen))
        if frozen and not stops and host.name == "h2":
            raise LabError("h2: a process does not stop")

    calls = []
    monkeypatch.setattr(as_root, "call", call)
    far = Login("10.0.0.2", "me", "/k", "/known")
    hosts = [Host(name, "a", "db", "10.0.0.9", login, PurePosixPath("/labs/l1", name), "python3", groups=(f"/g/{name}",))
             for name, login in (("h1", LOGIN), ("h2", far), ("h3", LOGIN))]
    both = [["h1", "h3"], ["h2"]]
    if stops:
        provider.freeze("l1", hosts, True)
        assert sorted(calls) == sorted((names, True) for names in both)
    else:
        with pytest.raises(LabError, match="does not stop"):
            provider.freeze("l1", hosts, True)
        assert sorted(calls[-2:]) == sorted((names, False) for names in both)


@pytest.mark.parametrize("without, stops", [(None, True), ("h2", True), (None, False)])
def test_hosts_of_one_call_freeze_or_all_go_on(tmp_path, monkeypatch, without, stops):
    def freeze(place):
        if place.name == "h2" and not stops:
            raise OSError("the processes of h2 did not stop")
        frozen.add(place.name)

    frozen = set()
    groups = {name: [str(tmp_path / name)] for name in ("h1", "h2") if name != without} | {
        name: [] for name in (without,) if name}
    for name, own in {"folder": lambda lab, name: tmp_path / name, "works": lambda place: True, "freeze": freeze,
                      "thaw": lambda place: frozen.discard(place.name)}.items():
        monkeypatch.setattr(root.freezer, name, own)
    if stops and not without:
        root.freeze("l1", groups, True)
        assert frozen == {"h1", "h2"}
        root.freeze("l1", groups, False)
    else:
        with pytest.raises((ValueError, OSError), match="h2"):
            root.freeze("l1", groups, True)
    assert not frozen


def test_one_that_does_not_thaw_keeps_no_other_frozen(tmp_path, monkeypatch):
    def thaw(place):
        if place.name == "h1":
            raise OSError("h1: no such device")
        thawed.append(place.name)

    thawed = []
    for name, own in {"folder": lambda lab, name: tmp_path / name, "works": lambda place: True, "thaw": thaw}.items():
        monkeypatch.setattr(root.freezer, name, own)
    with pytest.raises(OSError, match="h1"):
        root.freeze("l1", {name: [str(tmp_path / name)] for name in ("h1", "h2")}, False)
    assert thawed == ["h2"]


class Breaking:
    def __init__(self, times):
        self.times, self.dropped = times, 0

    def disconnect(self):
        self.dropped += 1

    def __call__(self):
        self.times -= 1
        if self.times >= 0:
            raise Lost("r1: connection lost")
        return "done"


def test_once_more_when_a_connection_is_lost_and_no_more():
    once, again = Breaking(1), Breaking(2)
    assert parallel.twice(once, once) == "done" and once.dropped == 1
    with pytest.raises(Lost, match="r1"):
        parallel.twice(again, again)


def test_what_is_stopped_is_not_tried_again():
    once = Breaking(1)
    with pytest.raises(Lost):
        parallel.twice(once, once, lambda: True)


def test_all_that_began_have_ended_when_one_fails():
    ended = []

    def work(item):
        if item == 1:
            raise LabError("one")
        ended.append(item)

    stopped = []
    with pytest.raises(LabError, match="one"):
        parallel.each([0, 1, 2], work, stopped.append)
    assert 0 in ended and stopped == [0, 1, 2]


class Connection:
    is_connected = True

    def close(self):
        self.is_connected = False


def test_a_jump_host_s_connection_is_shared_and_ends_with_the_last():
    jumps = Jumps(lambda login: Connection())
    first, second = jumps.take(JUMP), jumps.take(JUMP)
    assert first is second
    jumps.release(first)
    assert first.is_connected and jumps.take(JUMP) is first
    jumps.release(first)
    jumps.release(first)
    assert not first.is_connected and jumps.take(JUMP) is not first


def test_one_that_broke_is_replaced_while_others_still_hold_it():
    jumps = Jumps(lambda login: Connection())
    broken = jumps.take(JUMP)
    broken.close()
    fresh = jumps.take(JUMP)
    assert fresh is not broken
    jumps.release(broken)
    assert jumps.take(JUMP) is fresh


def test_one_that_is_being_taken_is_not_closed_by_who_gives_it_back():
    class Given:
        """Its user gives it back while another asks whether it is open."""

        closed = False

        @property
        def is_connected(self):
            is_open = not self.closed
            if not leaving.ident:
                leaving.start()
                leaving.join(0.3)
            return is_open

        def close(self):
            self.closed = True

    jumps = Jumps(lambda login: Given())
    first = jumps.take(JUMP)
    leaving = threading.Thread(target=jumps.release, args=(first,))
    taken = jumps.take(JUMP)
    leaving.join(20)
    assert taken is first and not taken.closed


def test_what_is_published_of_a_host_names_no_address():
    looked = claim.Looked(cpus="0-3", facts={"memory_kib": "2097152", "kernel": "6.1", "arch": "x",
                                            "system": "Debian"})
    assert json.loads(json.dumps(looked.machine)) == {
        "cpu": "x", "cores": 4, "memory_gib": 2.0, "kernel": "6.1", "system": "Debian"}


@pytest.mark.parametrize("boot, switched_off", [("this", ["cpu"]), ("an earlier one", [])])
def test_controllers_that_were_switched_on_since_a_reboot_are_another_s(
        monkeypatch, boot, switched_off):
    calls = []
    monkeypatch.setattr(as_root, "call", lambda *_, **given: calls.append(given))
    work = unmake._Unmaking(taken("r1"), "l1", None)
    work._sh = lambda *_, **__: ""
    entries = [{"made": "lab", "boot": boot, "mark": "m"}, {"made": "controller", "name": "cpu"},
               {"made": "cgroup", "folder": "/sys/fs/cgroup/labbook-l1/h1"}]
    work._undo(entries, "this")
    assert [call["controllers"] for call in calls] == [switched_off]


def test_rules_of_the_firewall_go_even_if_a_process_does_not_end():
    """One that waits for a disk for good would leave the owner's host without these packets."""
    def sh(script, root=False):
        if "processes do not end" in script:
            raise LabError("r1: processes do not end: 17")
        scripts.append(script)

    scripts = []
    work = unmake._Unmaking(taken("r1"), "l1", None)
    work._sh = sh
    with pytest.raises(LabError, match="do not end"):
        work._undo([{"made": "lab", "boot": "this", "mark": "m"}, {"made": "chain", "chain": "lb-l1-b"}], "this")
    assert "iptables -w -t mangle -X lb-l1-b" in scripts[0]


@pytest.mark.parametrize("boot, hurried", [("this", True), ("an earlier one", False)])
def test_a_modelled_disk_is_hurried_before_processes_that_may_wait_for_it_are_ended(monkeypatch, boot, hurried):
    did = []
    monkeypatch.setattr(as_root, "call", lambda host, function, below, **given: did.append((function, given)))
    work = unmake._Unmaking(taken("r1"), "l1", None)
    work._sh = lambda script, root=False: did.append("end" if "processes do not end" in script else "")
    disk = {"made": "modelled disk", "file": "/home/me/labs/l1/h1.disk"}
    work._undo([{"made": "lab", "boot": boot, "mark": "m"}, disk], "this")
    assert did == [(root.hurry_disks, {"lab": "/home/me/labs/l1"}), "end"] * hurried


def test_all_modelled_disks_of_a_lab_are_hurried(tmp_path, monkeypatch):
    files, hurried = ["/l/h1.disk", "/l/h2.disk"], []
    for file in files:
        Journal(tmp_path).write("modelled disk", file=file)
    monkeypatch.setattr(root.modelled, "hurry", lambda entry: hurried.append(entry["file"]))
    assert root.hurry_disks(str(tmp_path)) == {} and hurried == files


@pytest.mark.parametrize("allow, installed", [
    ({"packages"}, [(("bonnie++",), "/labs/m/l1/h1")]), ({"limits"}, [])])
def test_packages_that_a_study_names_are_installed_where_that_is_allowed(
        monkeypatch, allow, installed):
    calls = []
    monkeypatch.setattr(make, "provide", lambda host, needs, _stopped: calls.append((tuple(needs), str(host.root))))
    real = RealHost("r1", "10.0.0.1", 22, "op", "/k", "/known", data="10.0.0.1",
                    root=PurePosixPath("/labs/m"), allow=frozenset(allow))
    lab = LabDescription.parse({"sites": ["a"], "needs": {"packages": ["bonnie++"]},
                                "hosts": {"h1": {"site": "a", "role": "db"}}})
    make._Work("l1", lab, real, ["h1"])._packages()
    assert calls == installed


@pytest.mark.parametrize("entries, puts_right", [
    ([], False), ([{"asked": ["gcc"]}], True), ([{"asked": ["gcc"]}, {"installed": {"gcc": "1"}}], False),
    ([{"asked": ["gcc"]}, {"installed": {}}, {"asked": ["make"]}], True)])
def test_an_install_that_was_killed_is_put_right_when_the_lab_goes_down(entries, puts_right):
    """Its policy-rc.d would keep the owner's own services from starting for good."""
    scripts = []
    host = SimpleNamespace(
        run=lambda script, timeout, root: scripts.append((script, root)) or SimpleNamespace(stdout=""))
    work = unmake._Unmaking(taken("r1"), "l1", host)
    work._undo([{"made": "packages", **entry} for entry in entries], "boot")
    found = [root for script, root in scripts if "quiet_apt.py" in script]
    assert found == [True] * puts_right
