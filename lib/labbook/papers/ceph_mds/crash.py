"""The paper's crash (section 4, figure 9): kill one of two metadata servers, then read all metadata again.

One cluster sees several crashes, one after the other: the dead server is started again after each, and the next
one has files and clients of its own. Where a server does not come back, the next crash has a new cluster.

Parameters of a point, beside the cluster's (grace_s is the silence after which a server counts as dead): spare (whether
there is a standby), rank (that is killed), load ("idle"; "load": clients make, rename and delete files of their own;
"migrating": a directory begins to migrate from rank 1 to rank 0), directories and files (of each directory),
moved_files (of the migrating one), load_clients, load_directories, load_files (of the load); look_s (time limit for a
client to read all metadata), mount_s (time limit for a fresh client to mount), last_s (how long clients retry once all
servers are back), known_within_s (for the map to show the death), active_within_s (for all ranks to be active),
settled_within_s (for migrations to finish), migration_within_s (for the export of the migrating directory to begin),
seconds_at_most and call_seconds (time limits of the load and of each of its calls), second_client_every (n: in every
n-th repeat a second client reads all metadata before the crash; 0: in none).
"""

import time
from contextlib import suppress
from itertools import chain

import pandas as pd

from labbook.errors import LabbookError, SystemFailure
from labbook.papers.ceph_mds import crash_outcomes
from labbook.papers.ceph_mds.clusters import (
    all_active,
    await_pinned,
    bring_up_whole,
    check_points,
    has_left,
    mounted,
    reached,
)
from labbook.papers.ceph_mds.recovery import recovery_metrics
from labbook.workloads.crew.crew import Crew
from labbook.workloads.files.expected import expected, off, places
from labbook.workloads.files.inventory import MISSING, THERE, compare, take
from labbook.workloads.files.load import begin_metadata
from labbook.workloads.files.sample_tree import sample_tree

MOVED_SEED = 100_000    # of the migrating tree; far from the seeds of the other trees
NAN = float("nan")
LOAD_METRICS = ("load_names", "load_lost", "load_back", "load_off")


def measure_crashes(experiment) -> None:
    """Measure a crash for each point.

    In every n-th repeat (`second_client_every`) a second client reads all metadata before the crash, and
    its results are compared with the first client's. Such a read makes the first client flush its cached
    changes, so the other repeats have no second client. The metric second_client is 1 in repeats with one.
    """
    check_points(experiment)
    for point in experiment.remaining():
        with experiment.study.attempt(point) as attempt:
            ceph = bring_up_whole(attempt)
            facts = ceph.facts()        # while all servers can answer
            second_client = has_second_client(point)
            with mounted(attempt, ceph, 1 + second_client) as mounts:
                run = CrashRun(attempt, ceph, mounts[0][0], mounts[1][0] if second_client else None)
                metrics = run.metrics() | {"second_client": float(second_client), "crash_number": float(point.order)}
            attempt.record(metrics=metrics, facts=facts)


def has_second_client(point) -> bool:
    """Whether a second client reads all metadata before this point's crash."""
    return point.second_client_every > 0 and point.repeat % point.second_client_every == 0


class CrashRun:
    """One crash. `mount`: the client that survives it; `other`: a second client to compare with, or None."""

    def __init__(self, attempt, ceph, mount, other=None):
        self.point, self.crew = attempt.point, Crew.of(attempt.lab)
        self.ceph, self.mount, self.other = ceph, mount, other
        self.fresh_host = self.crew.hosts[-1]
        self.seed = 100 * self.point.repeat + self.point.order     # no other tree of this cluster has it
        self.moved = self.giver = self.stream = None    # the migrating directory and its server; the load

    def metrics(self) -> dict:
        """Run the crash; returns the metrics of crash_outcomes.crash_metrics and others."""
        point, ceph = self.point, self.ceph
        folders = self.make_trees()
        if self.moved:
            self.unpin()
        before = inventory(self.mount, folders)
        differ = self.compare_clients(before)
        self.begin_load()
        owned, session = ceph.owned(), (self.mount.sessions(), *self.mount.identity())

        name, at_s = ceph.kill(point.rank, before=self.begin_migration if self.moved else None)
        under_way = self.migrates()     # until the death is known
        reached(lambda: has_left(ceph, point.rank, name), point.known_within_s)
        with suppress(SystemFailure):   # if another server has died, the earlier answer is used
            owned = ceph.owned(dead=point.rank)     # the balancer may have moved some meanwhile
        if point.spare:
            all_active(ceph, point.active_within_s)

        evidence, parts, request_count = self.ask_clients(before, owned, name)
        evidence |= self.symptoms(session, name, at_s)
        waits, keeps = self.migrates(), ceph.ranks().get(point.rank)

        ceph.start_mds(name)
        back = all_active(ceph, point.active_within_s)
        load = self.end_load()
        last, load_metrics = self.ask_again(before, load) if back else ({"survivor": None, "fresh": None}, None)
        evidence |= self.faults(name, at_s, under_way, last, back)
        return crash_outcomes.crash_metrics(evidence, last) | {
            "names": float(len(before)), "names_on_the_dead": float(len(parts["dead"])),
            "names_held": float(len(parts["held"])), "clients_differ": differ,
            "survivor_asked": NAN if self.stream else float(request_count), "came_back": float(back),
            "map_keeps_dead": float(keeps is not None and keeps.name == name),
            "migration_under_way": float(under_way) if self.moved else NAN,
            "migration_waits": float(waits) if self.moved else NAN,
            "load_went_on": float(load is not None) if self.stream else NAN,
            **(load_metrics or dict.fromkeys(LOAD_METRICS, NAN))}

    def make_trees(self) -> list[str]:
        """Make the files, half of the directories on each rank, and on rank 1 the directory that will migrate.

        Returns their folders. The folder itself is pinned as well, since the balancer might move it.
        """
        point, mount = self.point, self.mount
        trees = [sample_tree(mount.host, mount.path, directories=point.directories, files=point.files,
                             seed=self.seed, pins=[0, 1], pin=0)]
        if point.load == "migrating":
            trees += [sample_tree(mount.host, mount.path, directories=1, files=point.moved_files,
                                  seed=MOVED_SEED + self.seed, pins=[1])]
        folders = [tree.rpartition("/")[2] for tree in trees]
        for folder, number in zip(folders, (point.directories // 2, 1)):
            await_pinned(self.ceph, folder, number)
        if point.load == "migrating":
            self.moved, self.giver = f"/{folders[1]}/d000", self.ceph.ranks()[1].name
        return folders

    def unpin(self) -> None:
        """Unpin the directory that will migrate; it stays on its rank.

        A separate client does this, since the unpinning client caches a ctime that differs from the
        servers'.
        """
        helper, folder = self.ceph.mount(self.fresh_host, name="unpins").up(), self.moved.removeprefix("/")
        code = f"import os; os.setxattr('{folder}', 'ceph.dir.pin', b'-1')"
        done = helper.call(f'{self.fresh_host.python} -I -S -c "{code}"', 20)
        helper.end()
        if done is None or done.exit_code:
            raise SystemFailure(f"{folder} could not be unpinned", log=done.stderr if done else "")

    def compare_clients(self, before) -> float:
        """Number of names with other metadata on the second client; NaN without a second client, and where it got none
        of some in time, which is no other metadata."""
        if not self.other:
            return NAN
        counts = compare(before, take(self.other.host, str(self.other.path), list(before["name"])))
        self.other.end()
        return NAN if counts["unobtainable"] else float(counts["wrong"] + counts["missing"])

    def begin_load(self) -> None:
        point = self.point
        if point.load != "load":
            return
        self.stream = begin_metadata(self.crew, [[str(self.mount.path)]], **load_sizes(point), pins=[0, 1],
                                     seed=self.seed, seconds_at_most=point.seconds_at_most,
                                     call_seconds=point.call_seconds)
        await_pinned(self.ceph, self.stream.folder, point.load_clients * point.load_directories // 2)

    def end_load(self):
        """The load's calls; None without a load, or where its clients could not continue."""
        with suppress(LabbookError, RuntimeError):
            return self.stream and self.stream.end()
        return None

    def begin_migration(self) -> None:
        """Make rank 1 export the directory, and wait until it does: a first export takes seconds to begin."""
        self.ceph.ask(self.giver, "export dir", path=self.moved, rank=0)
        reached(lambda: exports(self.ceph, self.giver, self.moved), self.point.migration_within_s, 0.0)

    def migrates(self) -> bool:
        return self.moved in chain(*self.ceph.migrating().values())

    def ask_clients(self, before, owned, dead):
        """Read all names by the surviving client and by a fresh one.

        Returns {client: {part: counts}}, {part: names}, and the number of requests that the survivor's
        read caused at the living servers.
        """
        request_count = requests(self.ceph, dead)
        after = self.look(self.mount, before)
        request_count = requests(self.ceph, dead) - request_count
        parts = self.parts(self.mount, before, owned)
        survivor = by_parts(before, after, parts)

        def look(newcomer):
            after = self.look(newcomer, before)
            return by_parts(before, after, self.parts(newcomer, before, owned))

        return {"survivor": survivor, "fresh": self.with_fresh_client(look)}, parts, request_count

    def look(self, mount, before) -> pd.DataFrame:
        """The metadata that a client reads of these names, as DataFrame."""
        return take(mount.host, str(mount.path), list(before["name"]), seconds=self.point.look_s,
                    call_seconds=self.point.look_s / 2)

    def parts(self, mount, before, owned) -> dict:
        """{part: names}, by the server of each name at the crash."""
        names = []
        with suppress(SystemFailure):       # a server that died holds no locks
            names = locked_names(self.ceph, mount, before, self.point.rank)
        return crash_outcomes.parts_of(before["name"], owned, self.point.rank, names)

    def with_fresh_client(self, act):
        """The result of `act(client)` for a new mount; None if mounting fails, which is an outcome."""
        newcomer, result = self.ceph.mount(self.fresh_host, name="fresh"), None
        mounts = False
        with suppress(SystemFailure):
            mounts = bool(newcomer.up(self.point.mount_s))
        if mounts:
            result = act(newcomer)
        newcomer.end()
        return result

    def ask_again(self, before, load):
        """Read all names again by both clients, once all servers are back.

        Returns {client: {part: counts}} for the migrated directory and all others, and metrics of the
        load's files.
        """
        reached(lambda: not any(self.ceph.migrating().values()), self.point.settled_within_s)
        of_moved = before["name"].str.startswith(f"{self.moved}/".removeprefix("/"))
        parts = {"moved": list(before["name"][of_moved]), "others": list(before["name"][~of_moved])}

        def look(newcomer):
            return self.look_until_all(newcomer, before, parts), self.load_metrics(newcomer, load)

        survivor = self.look_until_all(self.mount, before, parts)
        fresh, load_metrics = self.with_fresh_client(look) or (None, None)
        return {"survivor": survivor, "fresh": fresh}, load_metrics

    def look_until_all(self, mount, before, parts) -> dict:
        """Read until all names can be read, for last_s at most; {part: counts} of the last read."""
        until = time.monotonic() + self.point.last_s
        while True:
            counts = by_parts(before, self.look(mount, before), parts)
            incomplete = any(one["unobtainable"] or one["unasked"] for one in counts.values())
            if not incomplete or time.monotonic() > until:
                return counts

    def load_metrics(self, mount, load) -> dict:
        """Metrics of the load's files compared with its calls; empty where a client cannot read them."""
        if not load:
            return {}
        where = places(self.point.load_clients, self.point.load_directories)
        found = take(mount.host, f"{mount.path}/{self.stream.folder}", list(where))
        if not found["state"].isin([THERE, MISSING]).all():
            return {}
        return off(expected(load.rows, **load_sizes(self.point), seed=self.seed),
                   dict(zip(map(where.get, found["name"]), found["entries"])))

    def symptoms(self, session, name, at_s) -> dict:
        """Evidence of monitor and clients before any intervention. `session`: the client's sessions, number
        and address before the crash."""
        ceph, rank = self.ceph, self.point.rank
        faults = ceph.fault_log(at_s)
        states = faults.states[faults.states["rank"] == rank]
        living = {other: one.name for other, one in ceph.ranks().items()
                  if other != rank and one.name not in set(faults.crashes["daemon"])}
        sessions, number, address = session
        evicted = set(faults.evicted["by"][faults.evicted["client"] == number])
        now, shut_out = None, address in faults.blocklisted
        with suppress(SystemFailure):       # a client that does not answer counts as disconnected
            now, shut_out = self.mount.sessions(), shut_out or self.mount.blocklisted()
        active_s = recovery_metrics(faults.states, rank, at_s)["active_at_s"]
        return {"client_cut": crash_outcomes.cut_off(
                    living, sessions, now, evicted_by=[other for other, one in living.items() if one in evicted],
                    shut_out=shut_out),
                "noticed_s": since(faults.noticed["t_s"][faults.noticed["daemon"] == name], at_s),
                "map_updated_s": since(states["t_s"], at_s),    # from the map, not from the monitor's log
                "active_s": since(pd.Series([active_s], dtype=float), at_s), "spare": ceph.settings.standby > 0}

    def faults(self, name, at_s, under_way, last, back) -> dict:
        """Evidence of the servers at the end: others that died, and failed migrations. A migration that waits for a
        rank which is not back has not failed. Nor has one that the balancer begins once all others have ended."""
        moving = {}
        if not reached(lambda: not any(self.ceph.migrating().values()), self.point.settled_within_s) and back:
            moving = self.ceph.migrating()
        log, owned = self.ceph.fault_log(at_s), {}
        with suppress(SystemFailure):       # two answers, since a directory may move between those of two servers
            owned = crash_outcomes.in_both(self.ceph.owned(), self.ceph.owned())
        whole = not any(one["moved"]["missing"] or one["moved"]["unobtainable"] for one in last.values() if one)
        return {"others_died": sorted(set(log.crashes["daemon"]) - {name}),
                "migrations_failed": crash_outcomes.failed_migrations(
                    moving, owned, self.moved if under_way else None, whole)}


def load_sizes(point) -> dict:
    """The load's numbers of clients, directories and files."""
    return {"clients": point.load_clients, "directories": point.load_directories, "files": point.load_files}


def inventory(mount, folders) -> pd.DataFrame:
    """DataFrame of the metadata of all names in these folders; names are paths from the root.

    SystemFailure if some cannot be read.
    """
    entries = pd.concat([take(mount.host, f"{mount.path}/{folder}").assign(folder=folder) for folder in folders],
                      ignore_index=True)
    if (entries["state"] != THERE).any():
        raise SystemFailure("the files could not be read before the crash")
    return entries.assign(name=(entries.pop("folder") + "/" + entries["name"]).str.removesuffix("/."))


def by_parts(before, after, parts) -> dict:
    """{part: counts} of the outcomes of a client's read."""
    return {part: compare(before[before["name"].isin(names)], after) for part, names in parts.items()}


def locked_names(ceph, mount, before, rank) -> list[str]:
    """Names for which a living server's lock, or a call of this client, waits for `rank`."""
    calls = [call for call in mount.unanswered() if call["rank"] == rank]
    named = before.groupby(before["ino"].astype(int))["name"].agg(list).to_dict()
    folders = before[before["kind"] == "directory"]["ino"]
    locked = [name for ino in ceph.locked_inodes(map(int, folders), rank) for name in named[ino]]
    return locked + [f"{name}/{call['name']}" for call in calls
                     for name in ({1: [""]} | named).get(call["ino"], ())]


def requests(ceph, without) -> float:
    """Cumulative client requests to all ranks' servers except `without`; NaN if one does not answer."""
    with suppress(SystemFailure):
        return sum(ceph.ask(one.name, "perf dump")["mds_server"]["handle_client_request"]
                   for one in ceph.ranks().values() if one.name != without)
    return NAN


def since(times, from_s: float) -> float | None:
    """Seconds from `from_s` until the first of these times; None without times."""
    times = times.dropna()
    return float(times.min()) - from_s if len(times) else None


def exports(ceph, giver, folder) -> bool:
    """Whether the server is exporting this directory. One request only: an export lasts under a second."""
    return any(one["dir"]["path"] == folder and one["auth_second"] >= 0 for one in ceph.ask(giver, "get subtrees"))
