"""Configuration of Ceph's daemons, and settings that its hosts do not fit."""

import base64
import struct
import sys
from dataclasses import replace
from pathlib import PurePosixPath
from types import SimpleNamespace

import pytest
from here import here_host

from labbook import systems
from labbook.errors import InputError, LabError
from labbook.lab.host.host import Host
from labbook.lab.ssh.login import Login
from labbook.systems.ceph import config, daemons
from labbook.systems.ceph.cluster import Ceph
from labbook.systems.ceph.daemons import MOST_BYTES, CephMDS, CephMon, CephOSD, Identity


def hosts(mon=1, osd=2, mds=3, client=1) -> list[Host]:
    counts = {"mon": mon, "osd": osd, "mds": mds, "client": client}
    return [Host(f"{role}{n}", "lan", role, f"198.18.0.{len(role)}{n}",
                 Login("198.18.0.1", "me", "", ""), PurePosixPath("/srv/labbook"), sys.executable)
            for role, count in counts.items() for n in range(1, count + 1)]


def test_hosts_get_daemons_by_their_roles():
    ceph = Ceph(hosts(), active=2, standby=1, replication=2)
    assert list(ceph.daemons()) == ["mon", "osd.0", "osd.1", "mds1", "mds2", "mds3"]
    assert [d.host.name for d in ceph.daemons().values()] == [
        "mon1", "osd1", "osd2", "mds1", "mds2", "mds3"]
    assert (ceph.address, ceph.port) == ("198.18.0.31", 3300)
    assert list(Ceph(hosts(), active=1).mdss) == ["mds1"]   # no more than are asked for
    followed = Ceph(hosts(), active=1, replay=True)
    assert followed.settings.standby == 1 and list(followed.mdss) == ["mds1", "mds2"]


def test_osds_without_a_disk_of_their_own_share_the_machines():
    made = hosts(osd=4)
    for host in [host for host in made if host.role == "osd"][:2]:
        host.limits["disk"] = {"size": 8 << 30}
    assert [osd.sharing for osd in Ceph(made, active=1, osds="disk").osds] == [1, 1, 2, 2]


def test_osds_on_different_machines_share_no_disk():
    made = hosts(osd=4)
    first, second, third, _ = (host for host in made if host.role == "osd")
    for number, host in enumerate((first, second, third)):
        host.allow, host.login = frozenset(), replace(host.login, address=f"192.0.2.{number}")
    second.login = replace(first.login)     # of one machine
    assert [osd.sharing for osd in Ceph(made, active=1, osds="disk").osds] == [2, 2, 1, 1]


@pytest.mark.parametrize("counts, settings, message", [
    ({}, {"active": 4}, "active: 4 active metadata servers need .* there are 3 .allowed: 1 to 3 together"),
    ({}, {"active": 2, "standby": 2}, "standby: 2 active metadata servers and 2 standbys need"),
    ({}, {"active": 2, "replay": True}, "standby: 2 active metadata servers and 2 standbys need"),
    ({"mds": 0}, {}, "active: 1 active metadata servers need"),
    ({"osd": 0}, {}, "no OSD: no host of role osd .allowed: osd: 1 and more"),
    ({}, {"replication": 3}, "replication: 3 copies need as many OSDs, and there are 2"),
    ({"mon": 2}, {}, "2 hosts of role mon"),
    ({}, {"actve": 2}, "actve.*did you mean 'active'"),
    ({}, {"osds": "tape"}, "osds: 'tape' is not allowed .allowed: memory, disk"),
    ({}, {"active": 0}, "active: 0"),
    ({}, {"beacon_grace_s": 1}, "beacon_grace_s: 1"),
])
def test_hosts_that_do_not_fit_the_settings(counts, settings, message):
    with pytest.raises(InputError, match=message):
        Ceph(hosts(**counts), **settings)


def test_its_parts_are_systems_that_cannot_run_alone():
    for role, name in Ceph.PARTS.items():
        part = systems.find(name)
        assert part.KIND == role and set(part.NEEDS.packages) <= set(Ceph.NEEDS.packages)
    assert systems.over_several(systems.find("ceph"))
    assert len(set(Ceph.NEEDS.packages)) == len(Ceph.NEEDS.packages)
    with pytest.raises(InputError, match="ceph_mds is a part of ceph"):
        CephMDS(hosts()[0])


def test_configuration_of_a_daemon_and_of_a_client():
    ceph = Ceph(hosts(), active=2, cache_mb=64, balancer=False, replication=2)
    ceph._identity.renew(daemon.name for daemon in ceph.daemons().values())
    options = options_of(ceph.mdss["mds2"].configuration())
    assert options["fsid"] == ceph._identity.fsid and options["admin_socket"] == "socket"
    assert options["mon_host"] == "[v2:198.18.0.31:3300,v1:198.18.0.31:6789]"
    assert options["public_addr"] == "198.18.0.32" and options["osd_pool_default_size"] == "2"
    assert options["mds_cache_memory_limit"] == str(64 << 20) and options["mds_bal_interval"] == "0"
    assert options["paxos_propose_interval"] == "0.2" and options["mds_beacon_mon_down_grace"] == "0"
    assert options["mds_data"] == "/srv/labbook/ceph_mds/data"
    assert "mds_beacon_grace" not in options
    osd = options_of(ceph.osds[1].configuration())
    assert osd["osd_objectstore"] == "memstore" and osd["crush_location"].endswith("host=osd2")
    assert osd["public_addr"] == osd["cluster_addr"]     # without the latter, all interfaces
    disk = Ceph(hosts(), osds="disk", propose_s=None)
    disk._identity.renew(())
    disk = options_of(disk.osds[0].configuration())
    assert disk["osd_objectstore"] == "bluestore" and "paxos_propose_interval" not in disk

    text = ceph.client_config(admin_socket="socket", client_cache_size=100, unset=None)
    head, _, own = text.partition("[client]")
    assert ceph._identity.fsid in head and "client_cache_size = 100\n" in own and "unset" not in own
    key = ceph._identity.keys["client.admin"]
    assert f"[client.admin]\n\tkey = {key}\n" in ceph.client_keyring
    earlier = dict(ceph._identity.keys)
    ceph._identity.renew(earlier)
    assert not set(earlier.values()) & set(ceph._identity.keys.values())  # new ones each time


def options_of(text: str) -> dict:
    return dict(line.split(" = ", 1) for line in text.splitlines() if " = " in line)


def test_keys_have_cephxs_format():
    kind, made_s, made_ns, length = struct.unpack("<HIIH", base64.b64decode(
        config.new_key(1_795_000_000.5))[:12])
    assert (kind, made_s, made_ns, length) == (1, 1_795_000_000, 0, 16)
    assert len(base64.b64decode(config.new_key(1.0))) == 12 + 16
    text = config.keyring({"mon.": "AQ==", "mds.mds1": "AR=="})
    assert text == ('[mon.]\n\tkey = AQ==\n\tcaps mon = "allow *"\n[mds.mds1]\n\tkey = AR==\n'
                    '\tcaps mon = "allow profile mds"\n\tcaps osd = "allow *"\n'
                    '\tcaps mds = "allow *"\n')


@pytest.mark.parametrize("grace_s", [3, 5, 15, 60])
def test_a_monitor_ticks_often_enough_to_detect_a_death(grace_s):
    options = config.detection(grace_s)
    assert options["mon_tick_interval"] + options["mds_beacon_interval"] < options["mds_beacon_grace"]
    assert config.detection(None) == {}


def test_a_shorter_round_of_the_balancer_scales_its_other_times():
    assert config.balancing(None) == {} and config.balancing(10) == config.BALANCING
    assert config.balancing(1) == {"mds_bal_interval": 1, "mds_decay_halflife": 0.5, "mds_bal_sample_interval": 0.3}


def test_the_file_system_has_the_number_of_ranks_that_is_set():
    made = config.file_system({"active": 2, "replay": True})
    assert [each["prefix"] for each in made] == ["osd pool create"] * 2 + ["fs new"] + ["fs set"] * 2
    assert {each["var"]: each["val"] for each in made[3:]} == {"max_mds": "2",
                                                               "allow_standby_replay": "true"}


def test_osds_on_one_disk_share_its_free_space(tmp_path, monkeypatch):
    osd = CephOSD(here_host(tmp_path, "osd1"), "0", Identity("10.0.0.1", {}), "disk", sharing=8)
    free = 9 << 30
    monkeypatch.setattr(osd, "run", lambda *_: SimpleNamespace(stdout=f"Avail\n{free}\n"))
    assert 1 << 30 < osd._room() < free // 8
    free = 900 << 30
    assert osd._room() == MOST_BYTES
    free = 8 << 30
    with pytest.raises(LabError, match="osd1: 8192 MB of disk are free, and 8 OSDs need 8448"):
        osd._room()


def test_a_monitor_is_killed_also_where_its_proxy_is_not():
    killed = []

    def process(name):
        def kill():
            if name == daemons.PROXY:
                raise LabError("no answer")
            killed.append(name)

        return SimpleNamespace(kill=kill)

    host = SimpleNamespace(name="mon1", address="10.0.0.1", root=PurePosixPath("/srv"), process=process)
    with pytest.raises(LabError, match="no answer"):
        CephMon(host, "a", Identity("10.0.0.1", {})).kill()
    assert killed == ["ceph_mon"]


@pytest.mark.parametrize("kind, id", [(CephMon, "a"), (CephMDS, "mds1")])
def test_keyrings_are_their_owners_alone(tmp_path, monkeypatch, kind, id):
    monkeypatch.setattr(daemons, "MAKE_MONITOR", "true")
    cluster = Identity("10.0.0.1", {})
    cluster.renew(["mon.", "mds.mds1"])
    daemon = kind(here_host(tmp_path, "h1"), id, cluster)
    daemon.deploy()
    secret = cluster.keys[daemon.name].split()[-1]
    assert secret not in repr(cluster)
    found = [file for file in (tmp_path / "h1").rglob("*")
             if file.is_file() and secret in file.read_text(errors="replace")]
    assert found and {file.stat().st_mode & 0o777 for file in found} == {0o600}
