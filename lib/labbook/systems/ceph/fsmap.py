"""The monitor's map of the file system: the MDS of each rank, and how it changed."""

from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from datetime import datetime

import pandas as pd

ACTIVE, REPLAY = "active", "standby-replay"
STATE_COLUMNS = ("t_s", "epoch", "rank", "daemon", "state")
FAILED = "failed"   # state of a rank without an MDS


@dataclass(frozen=True)
class Daemon:
    """An MDS in the map.

    name: of its host. rank: held or followed; None for a standby. state: without the prefix `up:`.
    gid: new with each start. laggy: beacons are missing and there is no standby to replace it.
    """

    name: str
    rank: int | None
    state: str
    gid: int
    address: str
    laggy: bool = False


@dataclass(frozen=True)
class FsMap:
    """One map.

    ranks, followers (standby-replay): by rank. modified_s: epoch seconds of the last change of the
    file system's part. failed: ranks without an MDS. damaged: ranks that no MDS may take.
    """

    epoch: int
    modified_s: float
    max_mds: int
    ranks: dict[int, Daemon] = field(default_factory=dict)
    standbys: list[Daemon] = field(default_factory=list)
    followers: dict[int, Daemon] = field(default_factory=dict)
    failed: list[int] = field(default_factory=list)
    damaged: list[int] = field(default_factory=list)

    @property
    def daemons(self) -> dict[str, Daemon]:
        """All by name; the newer gid if a name occurs twice."""
        every = [*self.ranks.values(), *self.followers.values(), *self.standbys]
        return {one.name: one for one in sorted(every, key=lambda one: one.gid)}

    def settled(self, count: int, dead=()) -> bool:
        """Whether exactly the ranks 0 to count - 1 are active, and none by an MDS of the gids `dead`."""
        gids = {one.gid for one in self.ranks.values()}
        return (gids.isdisjoint(dead) and sorted(self.ranks) == list(range(count))
                and not self.failed and not self.damaged
                and all(one.state == ACTIVE and not one.laggy for one in self.ranks.values()))

    def summary(self) -> str:
        """One line for an error message."""
        ranks = [f"{rank}: {one.name} {one.state}{' laggy' * one.laggy}"
                 for rank, one in sorted(self.ranks.items())]
        return (f"epoch {self.epoch}, max_mds {self.max_mds}, ranks {{{', '.join(ranks)}}}, "
                f"failed {self.failed}, damaged {self.damaged}, following "
                f"{ {rank: one.name for rank, one in self.followers.items()} }, standing by "
                f"{[one.name for one in self.standbys]}")


def parse_map(dump: dict) -> FsMap:
    """Parse the monitor's `fs dump`, with one file system or none."""
    standbys = [_daemon(info) for info in dump["standbys"]]
    if not dump["filesystems"]:
        return FsMap(dump["epoch"], 0.0, 0, standbys=standbys)
    fs = dump["filesystems"][0]["mdsmap"]
    infos = [_daemon(info) for info in fs["info"].values()]
    return FsMap(dump["epoch"], seconds(fs["modified"]), fs["max_mds"],
                 {one.rank: one for one in infos if one.state != REPLAY}, standbys,
                 {one.rank: one for one in infos if one.state == REPLAY},
                 list(fs["failed"]), list(fs["damaged"]))


def suspect(names: Iterable[str], seen: FsMap | None, killed: Container[str]) -> str:
    """Of MDSs that should all be there but for those that were killed, the one that a wait in vain was probably for:
    one that is missing in the map, or else one that is not active."""
    there = seen.daemons if seen else {}
    return min(names, key=lambda name: (
        name in killed, name in there, name in there and there[name].state == ACTIVE, name))


def _daemon(info: dict) -> Daemon:
    state = info["state"].removeprefix("up:")
    rank = info["rank"] if info["rank"] >= 0 else None
    return Daemon(info["name"], rank, state, info["gid"], info["addr"], "laggy_since" in info)


def seconds(text: str) -> float:
    """Epoch seconds of a time in Ceph's JSON, such as 2026-11-21T21:54:05.779097+0000."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%f%z").timestamp()


def states(maps: list[FsMap]) -> pd.DataFrame:
    """Changes between consecutive maps, a row each: t_s, epoch, rank, daemon, state.

    A rank without an MDS has the state `failed` and no daemon. The states of the first map are not
    changes. A map in which only standbys changed has the time of the one before.
    """
    rows, before = [], None
    for one in maps:
        now = {rank: (d.name, d.gid, _state(d)) for rank, d in one.ranks.items()}
        now |= {rank: (None, None, FAILED) for rank in one.failed if rank not in now}
        for rank, (name, gid, state) in sorted(now.items()):
            if before is not None and before.get(rank) != (name, gid, state):
                rows.append((one.modified_s, one.epoch, rank, name, state))
        before = now
    return pd.DataFrame(rows, columns=list(STATE_COLUMNS))


def _state(daemon: Daemon) -> str:
    return f"{daemon.state} laggy" if daemon.laggy else daemon.state
