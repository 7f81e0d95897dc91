"""The monitor's maps, and an MDS's answers about its subtrees."""

import json

import pytest

from labbook.errors import InputError
from labbook.systems.ceph import fsmap
from labbook.systems.ceph.on_host.ceph_tools import parse
from labbook.systems.ceph.watch import rows

MODIFIED = "2026-11-21T22:05:51.360911+0000"


def info(name, rank, state, gid, **more) -> dict:
    return {"gid": gid, "name": name, "rank": rank, "state": f"up:{state}",
            "addr": f"198.18.1.{gid % 100}:6801/{gid}", **more}


def dump(epoch, *infos, failed=(), standbys=(), modified=MODIFIED) -> dict:
    """The answer to `fs dump`."""
    fs = {"epoch": epoch, "modified": modified, "max_mds": 2, "failed": list(failed), "damaged": [],
          "info": {f"gid_{each['gid']}": each for each in infos}}
    return {"epoch": epoch, "standbys": list(standbys), "filesystems": [{"mdsmap": fs, "id": 1}]}


@pytest.mark.parametrize("killed, there, wanted", [
    ([], {"mds1": "active", "mds3": "active"}, "mds2"),
    (["mds2"], {"mds1": "active", "mds3": "replay"}, "mds3"),
    (["mds2"], {"mds1": "active"}, "mds3"),
    (["mds1"], {}, "mds2"),
    (["mds1", "mds2", "mds3"], {}, "mds1")])
def test_a_server_that_was_killed_is_the_last_to_be_suspected(killed, there, wanted):
    seen = fsmap.parse_map(dump(1, *(info(name, rank, state, 4100 + rank)
                                     for rank, (name, state) in enumerate(there.items()))))
    assert fsmap.suspect(["mds3", "mds2", "mds1"], seen, killed) == wanted


def test_a_map_is_parsed():
    seen = fsmap.parse_map(dump(9, info("mds1", 1, "replay", 4110),
                            info("mds2", 0, "active", 4112, laggy_since=MODIFIED),
                            info("mds3", 0, "standby-replay", 4113),
                            standbys=[info("mds4", -1, "standby", 4114)]))
    assert seen.ranks[1] == fsmap.Daemon("mds1", 1, "replay", 4110, "198.18.1.10:6801/4110")
    assert seen.ranks[0].laggy and seen.followers[0].name == "mds3"
    assert seen.standbys[0].rank is None and seen.standbys[0].state == "standby"
    assert seen.modified_s == pytest.approx(1795298751.360911, abs=1e-5)
    assert sorted(seen.daemons) == ["mds1", "mds2", "mds3", "mds4"]
    assert "0: mds2 active laggy, 1: mds1 replay" in seen.summary() and "['mds4']" in seen.summary()
    empty = fsmap.parse_map({"epoch": 1, "standbys": [], "filesystems": []})
    assert not empty.ranks and not empty.settled(1)


def test_a_map_is_settled_when_all_ranks_are_active_and_alive():
    both = info("mds1", 0, "active", 1), info("mds2", 1, "active", 2)
    assert fsmap.parse_map(dump(1, *both)).settled(2)
    assert not fsmap.parse_map(dump(1, *both)).settled(1)               # one too many
    assert not fsmap.parse_map(dump(1, both[0])).settled(2)
    assert not fsmap.parse_map(dump(1, *both)).settled(2, dead={2})     # killed but still in the map
    assert not fsmap.parse_map(dump(1, both[0], failed=[1])).settled(1)
    assert not fsmap.parse_map(dump(1, both[0], info("mds2", 1, "rejoin", 2))).settled(2)
    assert not fsmap.parse_map(dump(1, both[0], info("mds2", 1, "active", 2, laggy_since=""))).settled(2)


def test_states_are_the_changes_between_maps():
    zero = info("mds2", 0, "active", 4112)
    found = fsmap.states([fsmap.parse_map(each) for each in (
        dump(7, info("mds3", 1, "active", 4111), zero),
        dump(8, info("mds3", 1, "active", 4111), zero, standbys=[info("mds1", -1, "standby", 9)]),
        dump(9, zero, failed=[1], modified=at(51)),
        dump(10, info("mds1", 1, "replay", 9), zero, modified=at(52)),
        dump(11, info("mds1", 1, "active", 9), {**zero, "laggy_since": ""}, modified=at(53)))])
    assert found.drop(columns="t_s").fillna("nobody").values.tolist() == [
        [9, 1, "nobody", "failed"], [10, 1, "mds1", "replay"], [11, 0, "mds2", "active laggy"],
        [11, 1, "mds1", "active"]]
    assert list(found["t_s"].diff().dropna()) == [1, 1, 0]
    assert fsmap.states([]).empty


def at(second: int) -> str:
    return f"2026-11-21T22:05:{second}.000000+0000"


# A directory that was migrated by hand, rank 1's own, and a fragment of a directory.
SUBTREES = [
    {"auth_first": 0, "auth_second": -2, "dir": {"path": "", "dirfrag": "0x1", "states": ["auth"]}},
    {"auth_first": 1, "auth_second": -2,
     "dir": {"path": "/d1", "dirfrag": "0x100000002be", "states": ["auth", "complete"]}},
    {"auth_first": 1, "auth_second": -2, "dir": {"path": "~mds1", "dirfrag": "0x101", "states": []}},
    {"auth_first": 1, "auth_second": 0,
     "dir": {"path": "/d2", "dirfrag": "0x100000002bf.0*", "states": ["auth", "frozentree"]}},
]


def test_subtrees_that_an_mds_owns_or_migrates():
    assert parse.owned(SUBTREES, 1) == ["/d1", "/d2#0*"] and parse.owned(SUBTREES, 0) == ["/"]
    assert parse.migrating(SUBTREES) == ["/d2#0*"]
    assert parse.subtree_list(b"mds not active, only active rank has subtrees") == []
    assert parse.subtree_list(json.dumps(SUBTREES).encode()) == SUBTREES
    counters = {group: dict.fromkeys((key for g, key in parse.COUNTERS.values() if g == group), 7)
                for group, _ in parse.COUNTERS.values()}
    found = parse.sample({"whoami": 1, "state": "up:active"}, counters, SUBTREES)
    assert found["rank"] == 1 and found["state"] == "active" and found["inodes"] == 7
    assert parse.sample({"whoami": -1, "state": "up:standby"}, counters, [])["rank"] is None


def test_rows_of_samplers_are_joined_without_an_incomplete_last_line():
    line = {"rank": 0, "state": "active", **dict.fromkeys(parse.COUNTERS, 3), "owned": ["/", "/a"]}
    texts = {"mds1": json.dumps({"t_s": 2.0, **line}) + "\n" + '{"t_s": 3.0, "ra',
            "mds2": json.dumps({"t_s": 1.0, **line, "rank": None, "owned": []}) + "\n"}
    found = rows(texts)
    assert list(found["daemon"]) == ["mds2", "mds1"] and list(found["subtrees"]) == [0, 2]
    assert found["rank"].isna().tolist() == [True, False]
    assert rows({"mds1": ""}).empty
