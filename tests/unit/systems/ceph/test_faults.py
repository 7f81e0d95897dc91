"""Faults parsed from logs of Ceph 16.2.15."""

from types import SimpleNamespace

import pandas as pd
import pytest

from labbook.errors import SystemFailure
from labbook.systems.ceph import faults
from labbook.systems.ceph.admin_socket import Refused

# One MDS was killed (gid 4105) and a spare took over; then another (4106) was failed by hand.
MON = """\
2026-11-21T22:17:45.876+0000 7f6304ff96c0  1 mon.a@0(leader).mds e10 no beacon from mds.1.8 \
(gid: 4105 addr: [v2:198.18.33.13:6800/3938153621,v1:198.18.33.13:6801/3938153621] state: up:active) \
since 5.63736

2026-11-21T22:17:45.876+0000 7f6304ff96c0  1 mon.a@0(leader).mds e10  marking 4105 \
[v2:198.18.33.13:6800/3938153621,v1:198.18.33.13:6801/3938153621] mds.1.8 up:active laggy

2026-11-21T22:17:45.876+0000 7f6304ff96c0  0 log_channel(cluster) log [WRN] : Replacing daemon \
mds.mds1 as rank 1 with standby daemon mds.mds2

2026-11-21T22:17:45.880+0000 7f6304ff96c0  1 mon.a@0(leader).mds e10 fail_mds_gid 4105 mds.mds1 role 1
2026-11-21T22:17:50.876+0000 7f6304ff96c0  1 mon.a@0(leader).mds e10 no beacon from mds.1.8 \
(gid: 4105 addr: [v2:198.18.33.13:6800/3938153621] state: up:active) since 10.6
2026-11-21T22:17:52.940+0000 7f62f1ffb6c0  1 mon.a@0(leader).mds e16 fail_mds_gid 4106 mds.mds3 role 0
2026-11-21T22:17:52.944+0000 7f62f1ffb6c0  0 log_channel(cluster) log [INF] : daemon mds.mds3 marked \
failed by client.admin
cluster 2026-11-21T22:17:52.947666+0000 mon.a (mon.0) 152 : cluster [INF] daemon mds.mds3 marked failed
"""
NAMES = {4105: "mds1", 4106: "mds3"}
BEGAN_S = 1795299465.876    # of the first line
RESPAWNED = """\
2026-11-21T22:17:52.996+0000 7f7385ffb6c0  1 mds.mds3 Map removed me [mds.mds3{0:4106} state up:active] \
from cluster; respawning! See cluster/monitor logs for details.
2026-11-21T22:17:52.996+0000 7f7385ffb6c0  1 mds.mds3 respawn!
--- begin dump of recent events ---
   -93> 2026-11-21T22:05:58.024+0000 7f0e8e88d6c0  5 asok(0x55e7307781c0) register_command assert hook
    -1> 2026-11-21T22:17:52.996+0000 7f7385ffb6c0  1 mds.mds3 respawn!
"""
ASSERT = """\
2026-11-21T22:20:00.000+0000 7f7385ffb6c0 -1 ./src/mds/MDCache.cc: 3 FAILED ceph_assert(dir->is_auth())
2026-11-21T22:20:00.100+0000 7f7385ffb6c0 -1 *** Caught signal (Aborted) **
"""
EVICTED = """\
2026-11-21T22:17:54.484+0000 7fdde73b56c0  1 mds.0.18 Evicting (and blocklisting) client session 4112 \
(198.18.33.16:0/3681018161)
2026-11-21T22:17:54.484+0000 7fdde73b56c0  0 log_channel(cluster) log [INF] : Evicting (and \
blocklisting) client session 4112 (198.18.33.16:0/3681018161)
2026-11-21T22:18:54.484+0000 7fdde73b56c0  0 log_channel(cluster) log [WRN] : evicting unresponsive \
client node:admin (4113), after 302.9 seconds
"""


def lines(log):
    return list(faults.lines(log))


def test_deaths_noticed_by_the_monitor():
    found = faults.noticed(lines(MON), NAMES)
    killed, failed = found.to_dict("records")
    assert (killed["daemon"], killed["rank"], killed["gid"], killed["by_hand"]) == (
        "mds1", 1, 4105, False)
    assert killed["t_s"] == killed["laggy_s"] == pytest.approx(BEGAN_S)     # the first missed beacon
    assert killed["taken_s"] - killed["t_s"] == pytest.approx(0.004, abs=1e-3)
    assert (failed["daemon"], failed["rank"], failed["by_hand"]) == ("mds3", 0, True)
    assert pd.isna(failed["laggy_s"])
    later = faults.noticed(lines(MON), NAMES, BEGAN_S + 6)
    assert list(later["daemon"]) == ["mds3"]
    assert faults.noticed([], {}).empty


def test_a_respawn_is_a_crash_unless_the_mds_was_failed_by_hand():
    logs = {"mds3": lines(RESPAWNED), "mds1": lines(ASSERT)}
    asked = faults.by_hand(lines(MON))
    assert [name for _, name in asked] == ["mds3"]
    found = faults.crashes(logs, failed_by_hand=asked)
    assert list(found["daemon"]) == ["mds1", "mds1"] and "is_auth" in found["words"].iloc[0]
    unasked = faults.crashes({"mds3": lines(RESPAWNED)})
    assert unasked["words"].tolist() == ["mds.mds3 respawn!"]   # once: the dump of recent lines is skipped
    assert faults.crashes(logs, since_s=2e9).empty
    gone = faults.crashes({}, ended=[("mds2", 134)])
    assert gone["words"].tolist() == ["ended with exit code 134"] and gone["t_s"].isna().all()


def test_evicted_clients():
    found = faults.evictions({"mds1": lines(EVICTED), "mds2": []})
    assert found[["client", "address", "by"]].fillna("unsaid").values.tolist() == [
        [4112, "198.18.33.16:0/3681018161", "mds1"], [4113, "unsaid", "mds1"]]
    assert faults.clients_of([{"addr": "198.18.33.16:0/3681018161", "until": ""},
                              {"addr": "198.18.33.13:6800/3938153621", "until": ""}]) == [
        "198.18.33.16:0/3681018161"]


def test_maps_that_the_monitor_has_dropped_end_the_history_and_a_silent_one_is_an_error(monkeypatch):
    """A silent monitor was taken for one that has dropped its maps, and one dropped map for all twenty."""
    monkeypatch.setattr(faults, "parse_map", lambda dump: dump)
    oldest, newest, asked = 7, 30, []

    def send(prefix, epoch=newest):
        if epoch < oldest:
            raise Refused("dropped")
        return SimpleNamespace(epoch=epoch, modified_s=epoch)

    mon = SimpleNamespace(send=send, send_all=lambda wanted: asked.append(wanted) or [send(**one) for one in wanted])
    assert [found.epoch for found in faults._maps(mon, since_s=0)] == list(range(oldest, newest + 1))
    assert [found.epoch for found in faults._maps(mon, since_s=25)][0] == 10 and len(asked) == 3

    def silent(wanted):
        raise SystemFailure("no answer")

    mon.send_all = silent
    with pytest.raises(SystemFailure, match="no answer"):
        faults._maps(mon, since_s=0)


def test_each_hosts_times_are_by_the_drivers_clock(monkeypatch):
    """An MDS's lines were filtered, and told from those of `ceph mds fail`, by the monitor's clock."""
    ahead = {"mon": 0.0, "mds1": -50.0, "mds3": 40.0}
    monkeypatch.setattr(faults, "ahead_s", ahead.get)
    monkeypatch.setattr(faults, "_maps", lambda mon, since_s: [])

    def daemon(host, log):
        return SimpleNamespace(host=host, grep_logs=lambda pattern: log,
                               process=SimpleNamespace(alive=lambda: True))

    mon = daemon("mon", MON)
    mon.send = lambda prefix: []
    respawned = RESPAWNED.replace("22:17:52", "22:18:32")       # by its clock, 40 s ahead
    evicted = EVICTED.replace("22:17:54", "22:17:04")           # by its clock, 50 s behind
    ceph = SimpleNamespace(host="mon", mon=mon, killed=dict,
                           mdss={"mds3": daemon("mds3", respawned), "mds1": daemon("mds1", evicted)})
    found = faults.fault_log(ceph, BEGAN_S)
    assert found.crashes.empty
    assert found.evicted["t_s"].iloc[0] == pytest.approx(BEGAN_S + 8.608)
    assert list(found.noticed["daemon"]) == ["mds1", "mds3"]
