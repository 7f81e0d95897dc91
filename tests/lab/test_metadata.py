"""Metadata clients, inventories and a crash, on mounts of a small Ceph cluster."""

import time

import pytest
from small_ceph import ceph, lab, mounts  # noqa: F401 (fixtures)

from labbook.papers.ceph_mds.crash_outcomes import failed_migrations, outcome
from labbook.papers.ceph_mds.recovery import metrics_through, recovery_metrics
from labbook.workloads.crew.crew import Crew
from labbook.workloads.files.bonnie import bonnie
from labbook.workloads.files.inventory import compare, take, verdicts
from labbook.workloads.files.load import begin_metadata, metadata
from labbook.workloads.files.sample_tree import sample_tree

LOAD = dict(directories=4, files=64, seed=1, seconds_at_most=120)


def paths(mounts):
    return [str(mount.path) for mount in mounts]


def server_counts(ceph):
    """By rank, what its server counts: files made, trees given away."""
    dumps = {rank: ceph.ask(one.name, "perf dump") for rank, one in ceph.ranks().items()}
    return {rank: (one["mds_server"]["req_create_latency"]["avgcount"], one["mds"]["exported"])
            for rank, one in dumps.items()}


def test_files_come_and_go_in_directories_of_both_ranks(lab, ceph, mounts):
    """Which are each one's from the beginning on: none has to migrate."""
    homes = [ceph.pin_folder(mounts[0], f"rank{rank}", rank) for rank in (0, 1)]
    before = server_counts(ceph)
    load = metadata(Crew.of(lab), paths(mounts), pattern="bonnie", clients=2, homes=homes, **LOAD)
    for rank, (created, exported) in server_counts(ceph).items():
        assert (created - before[rank][0], exported - before[rank][1]) == (2 * 256, 0)
    assert load.rows.ok.all(), load.rows.error.unique()
    assert load.rows.groupby("host", observed=True).size().nunique() == 1
    done = load.rows[load.rows.op == "create"].groupby("directory").size()
    assert list(done) == [4 * 65] * 3 + [4 * 61]
    found = take(mounts[0].host, mounts[0].path)
    assert list(found.name) == [".", "rank0", "rank0/home", "rank1", "rank1/home"]
    assert load.metrics["truncated"] == 0
    assert mounts[0].call(f"rmdir -p {' '.join(homes)}", 20).exit_code == 0


def test_clients_share_directories(lab, mounts):
    load = metadata(Crew.of(lab), paths(mounts), pattern="hot", clients=4, **LOAD)
    assert load.rows.ok.all(), load.rows.error.unique()
    assert (load.rows.op == "create").sum() == (load.rows.op == "unlink").sum() == 4 * 64


def test_our_calls_are_bonnies(ceph, lab, mounts):
    """As many requests to the servers as bonnie++ makes for the same files. (One server has them: a
    migration or a call that is sent on makes further ones.)"""
    path, request_counts = mounts[0].path / "one", {}
    done = mounts[0].call(f"mkdir {path.name} && {lab.role('client')[0].python} -I -S -c "
                          f"'import os; os.setxattr(\"{path.name}\", \"ceph.dir.pin\", b\"0\")'", 20)
    assert done.exit_code == 0, done.stderr
    for name, act in (("bonnie", lambda: bonnie(mounts[0].host, path, directories=2,
                                                files=512, seconds_at_most=300)),
                      ("own", lambda: metadata(Crew.of(lab), [str(path)], pattern="bonnie",
                                               **LOAD | {"directories": 2, "files": 512}))):
        before = requests(ceph)
        act()
        request_counts[name] = requests(ceph) - before
    assert request_counts["own"] == pytest.approx(request_counts["bonnie"], rel=0.05)
    assert mounts[0].call(f"rmdir {path.name}", 20).exit_code == 0


def requests(ceph) -> int:
    return sum(ceph.ask(mds.name, "perf dump")["mds_server"]["handle_client_request"]
               for mds in ceph.ranks().values())


def test_a_kill_under_load_loses_nothing(lab, ceph, mounts):
    stream = begin_metadata(Crew.of(lab), paths(mounts), clients=2, pins=(0, 1), **LOAD)
    # made apart from the load, so that nothing but the crash can change it
    host, path = mounts[0].host, f"{mounts[0].path}/kept"
    made = mounts[0].call("mkdir kept && cd kept && touch a b && ln -s a link && mkdir sub && chmod 640 b", 60)
    assert made is not None and made.exit_code == 0, made
    before = take(host, path)
    name, killed_s = ceph.kill(1)
    ceph.await_active(2)
    deadline = time.monotonic() + 60
    while not mounts[1].alive(20) and time.monotonic() < deadline:
        pass
    load = stream.end()
    assert load.rows.ok.any() and load.metrics["blocked"] == 0
    came = recovery_metrics(ceph.fault_log(killed_s).states, 1, killed_s)
    assert 0 < came["detection_s"] < came["recovery_s"] and came["takeover_s"] > 0
    outage = metrics_through(load.rows, killed_s - load.started, came["active_at_s"] - load.started)
    assert outage["longest_blocked_s"] > came["takeover_s"] and outage["errors"] == 0
    fresh = ceph.mount(host, name="fresh").up()
    try:
        for place in (path, f"{fresh.path}/kept"):
            counts = compare(before, take(host, place, list(before.name)))
            assert outcome(counts) == "right" and counts["asked"] == len(before) == 5, counts
    finally:
        fresh.destroy()


def test_a_server_that_gives_no_word_has_others_wait_who_say_so(lab, ceph, mounts):
    """Here one that stands still: its directory's inode is the other one's, and both may change it. So may
    they the root's sizes, but a file beside it is one server's alone."""
    place = ceph.pin_folder(mounts[0], "held", 1).removesuffix("/home")
    ino = int(mounts[0].call(f"stat -c %i {place}", 20).stdout)
    alone = int(mounts[0].call("touch alone; stat -c %i alone", 20).stdout)
    owned_trees = ceph.owned()[1]
    reported = ceph.owned(dead=1)[1]        # without what lies below the dead one's own
    assert f"/{place}" in reported and set(reported) <= set(owned_trees) and ceph.owned(dead=0)[0][0] == "/"
    assert ceph.locked_inodes([ino], dead=1) == set()
    process = ceph.mdss[ceph.ranks()[1].name].process
    assert mounts[0].call(f"touch {place}/a", 20).exit_code == 0    # by which the other one changes it
    process.signal("STOP")
    try:
        assert mounts[1].call(f"stat {place}", 2) is None
        assert {"rank": 0, "ino": 1, "name": place} in mounts[1].unanswered()
        assert ceph.owned(dead=1)[1] == reported and ceph.locked_inodes([ino, alone], dead=1) == {ino}
    finally:
        process.signal("CONT")
    ceph.host.wait_for(lambda: not ceph.locked_inodes([ino], dead=1), "the word to be given", 30)


def test_a_migration_that_a_crash_meets_leaves_all_names_to_one_server(lab, ceph, mounts):
    mount = mounts[0]
    tree = sample_tree(mount.host, mount.path, directories=1, files=200, seed=1, pins=[1])
    path = f"/{tree.rpartition('/')[2]}/d000"
    ceph.host.wait_for(lambda: path in ceph.owned()[1], "the directory to come to rank 1", 30)
    done = mount.call(f"{mount.host.python} -I -S -c "
                      f"'import os; os.setxattr(\".{path}\", \"ceph.dir.pin\", b\"-1\")'", 20)
    assert done.exit_code == 0, done.stderr
    for one in ceph.ranks().values():   # it is the migration that the crash is to meet, nothing else
        ceph.ask(one.name, "flush journal", 120)
    before = take(mount.host, tree)     # to unpin has changed the directory's ctime
    giver = ceph.ranks()[1].name
    name, _ = ceph.kill(0, before=lambda: ceph.ask(giver, "export dir", path=path, rank=0))
    assert name != giver and set(ceph.migrating()) <= {giver}      # of the dead one nothing is known
    ceph.start_mds(name)
    ceph.await_active(2)
    ceph.host.wait_for(lambda: not any(ceph.migrating().values()), "nothing to move", 30)
    after = take(mount.host, tree, list(before.name))
    counts, seen = compare(before, after), verdicts(before, after)
    assert outcome(counts) == "right", entries(seen[seen.verdict != "right"].name, before, after)
    assert not failed_migrations(ceph.migrating(), ceph.owned(), path, counts["right"] == counts["asked"])


def entries(names, *inventories) -> str:
    """What each of several inventories has of the names."""
    return "\n".join(one[one.name.isin(names)].to_json(orient="records") for one in inventories)


def test_no_answer_at_all_is_reported_and_nothing_hangs(lab, ceph, mounts):
    stream = begin_metadata(Crew.of(lab), paths(mounts), clients=2, call_seconds=1, **LOAD)
    time.sleep(3)   # beside other tests clients may hear of their start a second after it
    stopped = [ceph.mdss[mds.name].process for mds in ceph.ranks().values()]
    try:
        for process in stopped:
            process.signal("STOP")
        time.sleep(1)
        load = stream.end()
        blocked = load.rows[load.rows.error == "blocked"]
        assert sorted(blocked.client) == [0, 1] and load.rows.ok.any()
        found = take(mounts[0].host, mounts[0].path, ["a", "b"], call_seconds=1, seconds=5)
        assert set(found.state) == {"unobtainable"}
        for mount in mounts:
            mount.destroy()
            assert not mount.mounted()
    finally:
        for process in stopped:
            process.signal("CONT")
