"""A real Ceph cluster: up with two metadata servers and a standby, kills, failures, standby-replay."""

import time

import pytest
from listeners import check_listeners
from small_labs import new_id

from labbook.errors import InputError, LabbookError, SystemFailure
from labbook.lab import Environment, Lab, LabDescription
from labbook.systems.ceph.cluster import Ceph

GRACE_S = 3     # the shortest: a death is detected early
NOBODY = "65534"
PYTHON = "/usr/bin/python3"


def host(role):
    return {"site": "lan", "role": role}


@pytest.fixture(scope="module")
def lab():
    description = LabDescription.parse({"sites": ["lan"], "hosts": {
        "mon": host("mon"), "osd[1-2]": host("osd"), "mds[1-3]": host("mds")}})
    with Lab.up(description, Environment("local"), new_id()) as lab:
        yield lab


@pytest.fixture(scope="module")
def hosts(lab):
    return list(lab.hosts.values())


@pytest.fixture
def ceph(hosts):
    ceph = Ceph(hosts, active=2, standby=1, replication=2, beacon_grace_s=GRACE_S).up()
    yield ceph
    ceph.destroy()


def test_up_with_two_ranks_and_a_standby(ceph):
    seen = ceph.fs_map()
    assert sorted(seen.ranks) == [0, 1] and not seen.failed and not seen.followers
    assert sorted(seen.daemons) == ["mds1", "mds2", "mds3"]
    assert all(process.alive() for process in ceph.processes) and len(ceph.processes) == 6
    facts = ceph.facts()
    assert facts["version"].split(".")[0].isdigit() and facts["replication"] == 2
    assert facts["mds_beacon_grace"] == GRACE_S and facts["mds_bal_interval"] == 10
    assert {pool["size"] for pool in ceph.command("osd dump")["pools"]} == {2}
    assert ceph.up_s > 0
    check_listeners(ceph.hosts, "ceph", "ceph_mon", "ceph_osd", "ceph_mds")
    for each in ceph.hosts:     # no other user of a host can read a key
        assert not each.run("find . -name '*key*' -type f -perm /077").stdout
    assert ceph.ask(seen.ranks[1].name, "status")["whoami"] == 1
    with pytest.raises(InputError, match="mds9"):
        ceph.ask("mds9", "status")
    with pytest.raises(SystemFailure, match="no-such-command|refused|invalid"):
        ceph.command("no-such-command")


def test_a_standby_takes_over_from_a_killed_and_from_a_failed_mds(ceph):
    before, since_s = ceph.ranks(), time.time()
    with ceph.watch(0.1) as watch:
        name, at_s = ceph.kill(1)
        assert name == before[1].name and not ceph.mdss[name].process.alive()
        after = ceph.await_active(2)
        assert after.ranks[1].name != name and after.ranks[0].name == before[0].name
        ceph.start_mds(name)
        ceph.host.wait_for(lambda: [one.name for one in ceph.standbys()] == [name], "the MDS to stand by", 30)
        ceph.fail(0)
        again = ceph.await_active(2)
        assert again.ranks[0].name == name
    faults = ceph.fault_log(since_s)
    of_rank = faults.states[faults.states["rank"] == 1]
    assert list(of_rank["state"]) == ["replay", "resolve", "reconnect", "rejoin", "active"]
    assert set(of_rank["daemon"]) == {after.ranks[1].name} and (of_rank["t_s"] >= at_s).all()
    killed, failed = (faults.noticed[faults.noticed["daemon"] == one.name].iloc[0]
                      for one in (before[1], before[0]))
    assert at_s < killed["t_s"] <= killed["taken_s"] and not killed["by_hand"]
    assert failed["by_hand"] and failed["taken_s"] > 0
    assert set(faults.states["rank"]) == {0, 1}
    assert faults.crashes.empty and faults.evicted.empty and not faults.blocklisted
    rows = watch.rows
    assert set(rows["daemon"]) == {"mds1", "mds2", "mds3"}
    assert set(rows.loc[rows["daemon"] == name, "rank"].dropna()) == {0, 1}     # before and after its restart
    assert rows.loc[rows["rank"] == 0, "owned"].map(lambda paths: paths == ["/"]).any()
    assert (rows.loc[rows["state"] == "active", "inodes"] > 0).all()


def test_without_a_standby_the_rank_waits_for_the_same_daemon(hosts):
    ceph = Ceph(hosts, active=1, beacon_grace_s=GRACE_S).up()
    since_s = time.time()
    name, _ = ceph.kill(0)
    ceph.host.wait_for(lambda: ceph.ranks()[0].laggy, "the monitor to notice", 30)
    with pytest.raises(SystemFailure, match=f"1 ranks to be active.*{name} active laggy"):
        ceph.await_active(1, seconds=0.5)
    ceph.start_mds(name)
    assert ceph.await_active(1).ranks[0].name == name
    faults = ceph.fault_log(since_s)
    assert faults.noticed["laggy_s"].notna().all()
    first, *_, last = faults.states.to_dict("records")
    assert (first["daemon"], first["state"]) == (name, "active laggy") and last["state"] == "active"
    assert since_s < first["t_s"] < last["t_s"]
    with pytest.raises(InputError, match="active: 2 metadata servers of 1"):
        ceph.active(2)
    ceph.destroy()


def test_a_standby_follows_its_rank_and_ranks_are_added(hosts):
    ceph = Ceph(hosts, active=1, standby=2, replay=True, beacon_grace_s=GRACE_S).up()
    seen = ceph.fs_map()
    follower, = seen.followers.values()
    assert follower.rank == 0 and len(seen.standbys) == 1
    ceph.kill(0)
    assert ceph.await_active(1).ranks[0].name == follower.name
    ceph.standby_replay(False)
    assert not ceph.fs_map().followers
    assert sorted(ceph.active(2).ranks) == [0, 1]
    ceph.destroy()


def test_an_ordinary_user_starts_a_cluster_and_nothing_is_left(hosts, monkeypatch):
    """Objects on disk, on hosts with a login that is not root."""
    from test_galera import as_nobody

    for each in hosts:
        each.run("rm -rf processes && mkdir processes && chmod 777 . processes")
        monkeypatch.setattr(each, "python", PYTHON)     # the checkout may be readable by root only
        monkeypatch.setattr(each, "put", as_nobodys(each))
        monkeypatch.setattr(each, "run", as_nobody(each.run))
    ceph = Ceph(hosts, osds="disk", balancer=False, cache_mb=64).up()
    facts = ceph.facts()
    assert facts["mds_bal_interval"] == 0 and facts["mds_cache_memory_limit"] == 64 << 20
    pid = ceph.mdss["mds1"].process.pid
    assert hosts[-3].run(f"stat -c %u /proc/{pid}").stdout.strip() == NOBODY
    ceph.destroy()
    for each in hosts:
        assert not each.run("pgrep -l '^ceph|python' || true").stdout
        assert not each.run("ls -d ceph* || true").stdout


def as_nobodys(host):
    """Files that are put belong to the ordinary user."""
    put, run = host.put, host.run

    def own(data, remote, mode=0o644):
        put(data, remote, mode)
        run(f"chown {NOBODY}:{NOBODY} {host.root / remote}")

    return own


def test_a_cluster_that_does_not_come_up_is_stopped_with_the_reason(hosts, monkeypatch):
    ceph = Ceph(hosts)
    monkeypatch.setattr(type(ceph.osds[0]), "command", lambda self: "ceph-osd --no-such-option -i x")
    with pytest.raises(LabbookError, match="ceph_osd"):
        ceph.up()
    assert not any(process and process.alive() for process in ceph.processes)
    ceph.destroy()
