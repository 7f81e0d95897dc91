"""What a cluster went through: deaths noticed, ranks taken over, clients cut, crashes.

From the monitor's maps, of which it keeps the last hundreds with their times, and the daemons' logs.
"""

import re
from dataclasses import dataclass
from datetime import datetime

import pandas as pd

from labbook.errors import SystemFailure
from labbook.lab.clock import ahead_s
from labbook.systems.ceph.fsmap import FsMap, parsed, states
from labbook.systems.cluster import each

MAPS_AT_ONCE = 20
LINE = re.compile(r"^(\d{4}-\d\d-\d\dT[\d:.]+[+-]\d{4}) \S+ +-?\d+ (.*)$", re.M)
NO_WORD = re.compile(r"no beacon from mds\.(-?\d+)\S* \(gid: (\d+)")
LAGGY = re.compile(r" marking (\d+) .* laggy")
TAKEN = re.compile(r"fail_mds_gid (\d+) mds\.(\S+) role (-?\d+)")
BY_HAND = re.compile(r"daemon mds\.(\S+) marked failed by")
COMPLAINT = re.compile(r"log_channel\(cluster\) log \[(WRN|ERR)\] : (.*)")
EVICTED = re.compile(r"[Ee]victing .*?client(?: session)? (?:(\d+) \(([^)]*)\)|\S+ \((\d+)\))")
CRASH = re.compile(r"Caught signal|FAILED ceph_assert|respawn!|suicide")
# What the hosts are asked for of their logs, to bring no more than that.
OF_MON = r"no beacon from|laggy|fail_mds_gid|marked failed by|log \[(WRN|ERR)\]"
OF_MDS = r"victing|Caught signal|FAILED ceph_assert|respawn!|suicide|log \[(WRN|ERR)\]"
MAP_S = 0.5         # between a line in the log and the time that a map has
BY_HAND_S = 5       # within which an MDS that was failed by hand is made anew
NOTICED = ("t_s", "rank", "daemon", "gid", "by_hand", "laggy_s", "taken_s")
FRAMES = {"evicted": ("t_s", "client", "address", "by"), "crashes": ("t_s", "daemon", "words"),
          "complaints": ("t_s", "daemon", "level", "words")}


@dataclass(frozen=True)
class Faults:
    """Times in epoch seconds, the monitor's by our clock, others by their hosts'; each DataFrame a
    row an event.

    states: t_s, epoch, rank, daemon, state: every change of the map (ceph_map.states).
    noticed: each death that the monitor noticed: t_s (when it first missed a word, or was told by
    hand), rank, daemon, gid, by_hand, laggy_s (marked as such: there was no spare), taken_s (when
    it took the rank away); NaN: never.
    evicted: t_s, client (id), address, by (the MDS). blocklisted: clients' addresses, now.
    crashes: t_s, daemon, words: asserts, signals, made anew (respawn) without having been asked to,
    processes that ended though nobody killed them here (t_s NaN).
    complaints: t_s, daemon, level (WRN, ERR), words.
    """

    states: pd.DataFrame
    noticed: pd.DataFrame
    evicted: pd.DataFrame
    blocklisted: list[str]
    crashes: pd.DataFrame
    complaints: pd.DataFrame

    @property
    def map_updated(self) -> bool:
        """Whether each death that was noticed came into the map, whatever the monitor's log says
        that it does about it: another state of the rank since then, or another daemon in it."""
        return all(((self.states["rank"] == one.rank) & (self.states["t_s"] >= one.t_s - MAP_S)).any()
                   for one in self.noticed.itertuples())


def fault_log(ceph, since_s: float) -> Faults:
    """Ask the cluster for all that happened since then (by our clock)."""
    ahead = ahead_s(ceph.host)
    since_s += ahead
    maps = _maps(ceph.mon, since_s)
    names = {one.gid: one.name for each_map in maps for one in each_map.daemons.values()}
    mon = ceph.mon.said(OF_MON)
    said = dict(zip(ceph.mdss, each(ceph.mdss.values(), lambda mds: mds.said(OF_MDS))))
    changed = states(maps)
    return Faults(
        states=_by_ours(changed[changed["t_s"] >= since_s].reset_index(drop=True), ahead),
        noticed=_by_ours(noticed(mon, names, since_s), ahead), evicted=evictions(said, since_s),
        blocklisted=clients_of(ceph.mon.tell("osd blocklist ls")),
        crashes=crashes(said, since_s, by_hand(mon), _ended(ceph)),
        complaints=complaints({"mon": mon, **said}, since_s))


def _by_ours(frame, ahead_s: float):
    """The times of the monitor's clock by ours."""
    times = [name for name in ("t_s", "laggy_s", "taken_s") if name in frame]
    return frame.assign(**{name: frame[name] - ahead_s for name in times})


def lines(text: str, since_s: float = 0):
    """(epoch seconds, words) of each line of a log that has its time; what a daemon that dies
    tells beside, of times before, has none in front."""
    for stamp, words in LINE.findall(text):
        t_s = datetime.strptime(stamp, "%Y-%m-%dT%H:%M:%S.%f%z").timestamp()
        if t_s >= since_s:
            yield t_s, words


def noticed(mon: str, names: dict[int, str], since_s: float = 0) -> pd.DataFrame:
    """Of a monitor's log; `names` by gid. See Faults."""
    found, told = {}, set()
    for t_s, words in lines(mon, since_s):
        if match := NO_WORD.search(words):
            rank, gid = map(int, match.groups())
            found.setdefault(gid, {"t_s": t_s, "rank": rank, "daemon": names.get(gid)})
        elif match := LAGGY.search(words):
            found.get(int(match[1]), {}).setdefault("laggy_s", t_s)
        elif match := TAKEN.search(words):
            gid = int(match[1])
            row = found.setdefault(gid, {"t_s": t_s, "rank": int(match[3])})
            row |= {"daemon": match[2], "taken_s": t_s}
        elif match := BY_HAND.search(words):
            told |= {gid for gid, row in found.items()
                     if row["daemon"] == match[1] and row.get("taken_s", 0) >= t_s - 1}
    rows = [{**row, "gid": gid, "by_hand": gid in told} for gid, row in found.items()]
    frame = pd.DataFrame(rows, columns=list(NOTICED))
    return frame.astype({"laggy_s": float, "taken_s": float})


def by_hand(mon: str) -> list[tuple[float, str]]:
    """(when, name) of each MDS that was failed by hand, of a monitor's log."""
    return [(t_s, match[1]) for t_s, words in lines(mon) if (match := BY_HAND.search(words))]


def crashes(said: dict[str, str], since_s: float = 0, asked=(), ended=()) -> pd.DataFrame:
    """Of the MDSs' logs; `asked`: (when, name) of those that were failed by hand, `ended`: (name,
    exit code) of processes that nobody killed."""
    rows = [(t_s, daemon, words) for daemon, text in said.items()
            for t_s, words in lines(text, since_s)
            if CRASH.search(words) and not _was_asked(t_s, daemon, words, asked)]
    rows += [(float("nan"), name, f"ended with exit code {code}") for name, code in ended]
    return pd.DataFrame(rows, columns=list(FRAMES["crashes"])).sort_values("t_s")


def _was_asked(t_s, daemon, words, asked) -> bool:
    return "respawn" in words and any(daemon == name and 0 <= t_s - when + 1 <= BY_HAND_S
                                      for when, name in asked)


def evictions(said: dict[str, str], since_s: float = 0) -> pd.DataFrame:
    """Of the MDSs' logs, each client once a rank's MDS."""
    found = {}
    for daemon, text in said.items():
        for t_s, words in lines(text, since_s):
            if match := EVICTED.search(words):
                client = int(match[1] or match[3])
                found.setdefault((daemon, client), (t_s, client, match[2], daemon))
    return pd.DataFrame(found.values(), columns=list(FRAMES["evicted"])).sort_values("t_s")


def complaints(said: dict[str, str], since_s: float = 0) -> pd.DataFrame:
    """Warnings and errors that daemons had for the cluster's log."""
    rows = [(t_s, daemon, *match.groups()) for daemon, text in said.items()
            for t_s, words in lines(text, since_s) if (match := COMPLAINT.search(words))]
    return pd.DataFrame(rows, columns=list(FRAMES["complaints"])).sort_values("t_s")


def clients_of(blocklist: list[dict]) -> list[str]:
    """Addresses of clients; those of servers, which are shut out when they are replaced, have a
    port."""
    return sorted(entry["addr"] for entry in blocklist if ":0/" in entry["addr"])


def _maps(mon, since_s) -> list[FsMap]:
    """From the last one before that time, or the oldest there is, to the newest."""
    newest = parsed(mon.tell("fs dump"))
    maps = [newest]
    while maps[0].epoch > 1 and maps[0].modified_s >= since_s:
        first = max(1, maps[0].epoch - MAPS_AT_ONCE)
        wanted = [{"prefix": "fs dump", "epoch": epoch} for epoch in range(first, maps[0].epoch)]
        try:
            maps = [parsed(dump) for dump in mon.tell_all(wanted)] + maps
        except SystemFailure:   # as old ones are not kept
            break
    return maps


def _ended(ceph) -> list[tuple[str, int]]:
    """MDSs whose process is gone although nobody killed it here, with their exit codes."""
    killed = ceph.killed()
    return [(name, mds.process.exit_code()) for name, mds in ceph.mdss.items()
            if name not in killed and not mds.process.alive()]
