"""The faults of a cluster over time: dead MDSs, takeovers of ranks, evicted clients, crashes.

Sources are the maps that the monitor still has (some hundreds, with their times) and the daemons' logs.
"""

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

import pandas as pd

from labbook.lab.clock import ahead_s
from labbook.systems.ceph.admin_socket import Refused
from labbook.systems.ceph.fsmap import FsMap, parse_map, states
from labbook.systems.cluster import in_parallel

MAPS_AT_ONCE = 20   # maps in one query
LINE = re.compile(r"^(\d{4}-\d\d-\d\dT[\d:.]+[+-]\d{4}) \S+ +-?\d+ (.*)$", re.M)
NO_BEACON = re.compile(r"no beacon from mds\.(-?\d+)\S* \(gid: (\d+)")
LAGGY = re.compile(r" marking (\d+) .* laggy")
TAKEN = re.compile(r"fail_mds_gid (\d+) mds\.(\S+) role (-?\d+)")
BY_HAND = re.compile(r"daemon mds\.(\S+) marked failed by")
EVICTED = re.compile(r"[Ee]victing .*?client(?: session)? (?:(\d+) \(([^)]*)\)|\S+ \((\d+)\))")
CRASH = re.compile(r"Caught signal|FAILED ceph_assert|respawn!|suicide")
# Only these lines of the logs are fetched from the hosts.
MON_LINES = r"no beacon from|laggy|fail_mds_gid|marked failed by"
MDS_LINES = r"victing|Caught signal|FAILED ceph_assert|respawn!|suicide"
BY_HAND_S = 5       # an MDS that was failed by hand respawns within this time
NOTICED = ("t_s", "rank", "daemon", "gid", "by_hand", "laggy_s", "taken_s")
FRAMES = {"evicted": ("t_s", "client", "address", "by"), "crashes": ("t_s", "daemon", "words")}


@dataclass(frozen=True)
class Faults:
    """Each DataFrame has a row an event; times are epoch seconds by the driver's clock.

    states: t_s, epoch, rank, daemon, state: each change of the map (see fsmap.states).
    noticed: deaths that the monitor noticed: t_s (first missed beacon, or failed by hand), rank,
        daemon, gid, by_hand, laggy_s (marked laggy, since there was no standby), taken_s (the rank
        was taken away). NaN: never.
    evicted: t_s, client (id), address, by (the MDS).
    blocklisted: addresses of clients that are blocklisted now.
    crashes: t_s, daemon, words: assertions, signals, respawns without `ceph mds fail`, and (with t_s
        NaN) processes that ended without `Ceph.kill`.
    """

    states: pd.DataFrame
    noticed: pd.DataFrame
    evicted: pd.DataFrame
    blocklisted: list[str]
    crashes: pd.DataFrame


def fault_log(ceph, since_s: float) -> Faults:
    """Query maps and logs for the faults since this time (epoch seconds by the driver's clock)."""
    ahead = ahead_s(ceph.host)
    maps = _maps(ceph.mon, since_s + ahead)
    names = {one.gid: one.name for each_map in maps for one in each_map.daemons.values()}
    mon = list(lines(ceph.mon.grep_logs(MON_LINES), ahead))
    mdss = dict(zip(ceph.mdss, in_parallel(ceph.mdss.values(), _mds_lines)))
    changed = states(maps)
    changed["t_s"] -= ahead
    return Faults(
        states=changed[changed["t_s"] >= since_s].reset_index(drop=True),
        noticed=noticed(mon, names, since_s),
        evicted=evictions(mdss, since_s),
        blocklisted=clients_of(ceph.mon.send("osd blocklist ls")),
        crashes=crashes(mdss, since_s, by_hand(mon), _ended(ceph)))


def _mds_lines(mds) -> list[tuple[float, str]]:
    return list(lines(mds.grep_logs(MDS_LINES), ahead_s(mds.host)))


def lines(log: str, ahead_s: float = 0):
    """(epoch seconds by the driver's clock, text) of each line of a log that begins with a time. `ahead_s`: by
    how much the clock of the log's host is ahead of the driver's.

    The dump of recent lines by a crashing daemon has no times, and is skipped.
    """
    for stamp, message in LINE.findall(log):
        yield datetime.strptime(stamp, "%Y-%m-%dT%H:%M:%S.%f%z").timestamp() - ahead_s, message


def _since(log, since_s: float):
    return ((t_s, message) for t_s, message in log if t_s >= since_s)


def noticed(mon, names: dict[int, str], since_s: float = 0) -> pd.DataFrame:
    """From the `lines` of the monitor's log; `names` by gid. Columns as in Faults."""
    found, failed = {}, set()
    for t_s, message in _since(mon, since_s):
        if match := NO_BEACON.search(message):
            rank, gid = map(int, match.groups())
            found.setdefault(gid, {"t_s": t_s, "rank": rank, "daemon": names.get(gid)})
        elif match := LAGGY.search(message):
            found.get(int(match[1]), {}).setdefault("laggy_s", t_s)
        elif match := TAKEN.search(message):
            gid = int(match[1])
            row = found.setdefault(gid, {"t_s": t_s, "rank": int(match[3])})
            row |= {"daemon": match[2], "taken_s": t_s}
        elif match := BY_HAND.search(message):
            failed |= {gid for gid, row in found.items()
                     if row["daemon"] == match[1] and row.get("taken_s", 0) >= t_s - 1}
    rows = [{**row, "gid": gid, "by_hand": gid in failed} for gid, row in found.items()]
    frame = pd.DataFrame(rows, columns=list(NOTICED))
    return frame.astype({"laggy_s": float, "taken_s": float})


def by_hand(mon) -> list[tuple[float, str]]:
    """(epoch seconds, name) of each MDS that was failed by hand, from the `lines` of the monitor's log."""
    return [(t_s, match[1]) for t_s, message in mon if (match := BY_HAND.search(message))]


def crashes(logs: dict, since_s: float = 0, failed_by_hand=(), ended=()) -> pd.DataFrame:
    """Crashes in the `lines` of the MDSs' logs, by name.

    failed_by_hand: (epoch seconds, name) of MDSs that were failed by hand. ended: (name, exit code) of
    processes that ended without having been killed.
    """
    rows = [(t_s, daemon, message) for daemon, log in logs.items() for t_s, message in _since(log, since_s)
            if CRASH.search(message) and not _was_by_hand(t_s, daemon, message, failed_by_hand)]
    rows += [(float("nan"), name, f"ended with exit code {code}") for name, code in ended]
    return pd.DataFrame(rows, columns=list(FRAMES["crashes"])).sort_values("t_s")


def _was_by_hand(t_s, daemon, message, failed_by_hand) -> bool:
    return "respawn" in message and any(daemon == name and 0 <= t_s - when + 1 <= BY_HAND_S
                                        for when, name in failed_by_hand)


def evictions(logs: dict, since_s: float = 0) -> pd.DataFrame:
    """Evictions in the `lines` of the MDSs' logs, by name; each client once for each MDS."""
    found = {}
    for daemon, log in logs.items():
        for t_s, message in _since(log, since_s):
            if match := EVICTED.search(message):
                client = int(match[1] or match[3])
                found.setdefault((daemon, client), (t_s, client, match[2], daemon))
    return pd.DataFrame(found.values(), columns=list(FRAMES["evicted"])).sort_values("t_s")


def clients_of(blocklist: list[dict]) -> list[str]:
    """Addresses of the clients in a blocklist. (Entries of replaced servers have a port.)"""
    return sorted(entry["addr"] for entry in blocklist if ":0/" in entry["addr"])


def _maps(mon, since_s) -> list[FsMap]:
    """All maps since the last one before this time, or since the oldest that is left."""
    newest = parse_map(mon.send("fs dump"))
    maps = [newest]
    while maps[0].epoch > 1 and maps[0].modified_s >= since_s:
        first = max(1, maps[0].epoch - MAPS_AT_ONCE)
        wanted = [{"prefix": "fs dump", "epoch": epoch} for epoch in range(first, maps[0].epoch)]
        try:
            maps = [parse_map(dump) for dump in mon.send_all(wanted)] + maps
        except Refused:     # the monitor has dropped maps that old
            return _those_left(mon, wanted) + maps
    return maps


def _those_left(mon, wanted) -> list[FsMap]:
    """The maps of these questions, in their order, of which the monitor has dropped the first ones."""
    found = []
    with suppress(Refused):
        for question in reversed(wanted):
            found.insert(0, parse_map(mon.send(**question)))
    return found


def _ended(ceph) -> list[tuple[str, int]]:
    """(name, exit code) of MDSs whose process ended without `Ceph.kill`."""
    killed = ceph.killed()
    return [(name, mds.process.exit_code()) for name, mds in ceph.mdss.items()
            if name not in killed and not mds.process.alive()]
