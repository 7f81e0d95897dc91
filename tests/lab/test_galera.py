"""A real Galera cluster over two sites: up, written everywhere, killed and cut."""

import shlex
import subprocess
import threading

import pymysql
import pytest
from listeners import check_listeners
from small_labs import describe, new_id, put_as

from labbook.errors import SystemFailure
from labbook.lab import Environment, Lab
from labbook.lab.cache.build import build_once
from labbook.systems.galera.cluster import Galera
from labbook.systems.galera.node import NOT_COPIED, GaleraNode

NOBODY = "65534"
BOOTSTRAP = "SET GLOBAL wsrep_provider_options = 'pc.bootstrap=1'"
SITES = {"db1": "a", "db2": "a", "db3": "b"}


@pytest.fixture(scope="module")
def lab():
    description = describe({name: (site, {}) for name, site in SITES.items()},
                           [{"between": ["a", "b"]}])
    with Lab.up(description, Environment("local"), new_id()) as lab:
        yield lab


@pytest.fixture(scope="module")
def data(lab, tmp_path_factory):
    """The data directory of a stopped cluster of one node, with a table and a row."""
    patch = pytest.MonkeyPatch()
    patch.setattr("labbook.lab.cache.build.cache_dir", lambda: tmp_path_factory.mktemp("cache"))
    node = GaleraNode(lab.host("db1")).up()
    node.query("CREATE DATABASE kept")
    node.query("CREATE TABLE people (name VARCHAR(40) PRIMARY KEY)", "kept")
    node.query("INSERT INTO people VALUES ('seeded')", "kept")
    node.stop()
    yield build_once("seed", lambda folder: take(node, folder / "data")) / "data"
    patch.undo()


def take(node, folder):
    left_out = " ".join(f"--exclude=./{name}" for name in NOT_COPIED)
    node.host.run(f"tar -cf {node.home}/data.tar {left_out} -C {node.data} .")
    folder.mkdir()
    node.host.get(node.home / "data.tar", folder.parent / "data.tar")
    subprocess.run(["tar", "-xf", folder.parent / "data.tar", "-C", folder], check=True)
    (folder.parent / "data.tar").unlink()


@pytest.fixture(scope="module")
def hosts(lab):
    return [lab.host(name) for name in SITES]


@pytest.fixture
def three(hosts, data):
    cluster = Galera(hosts, segments=[0, 0, 1], data=data).up()
    yield cluster
    cluster.destroy()


def add(node, name: str):
    node.query(f"INSERT INTO people VALUES ('{name}')", "kept")


def names(cluster) -> dict:
    """The names on each node, by its host; a commit on another node is visible at once."""
    rows = cluster.query_each("SELECT name FROM people ORDER BY name", "kept")
    return {host: [name for name, in found] for host, found in rows.items()}


def test_up_from_a_copied_data_directory_with_other_segments(three, hosts, data):
    assert [node.transfer() for node in three.nodes] == [None] * 3
    check_listeners(hosts, "galera")
    for node in three.nodes:
        add(node, node.host.name)
    assert names(three) == {name: ["db1", "db2", "db3", "seeded"] for name in SITES}
    counted = three.counters()
    assert counted["replicated"] == 3 and counted["replicated_bytes"] > 0
    assert counted["cert_failures"] == counted["bf_aborts"] == 0 and counted["questions"] > 3
    facts = three.facts()
    assert facts["segments"] == [0, 0, 1] and facts["nodes"] == 3 and facts["weights"] == [1, 1, 1]
    assert "MariaDB" in facts["version"] and facts["resident_mb"] and facts["provider"]

    three.stop()
    assert not any(process.alive() for process in three.processes)
    assert three.status() == dict.fromkeys(SITES)
    three.start()  # from their own data
    assert names(three)["db3"] == ["db1", "db2", "db3", "seeded"]

    again = Galera(hosts, segments=[0, 0, 0], weights=[2, 1, 1], send_window=64, data=data).up()
    options_of = again.query_each("SELECT @@wsrep_provider_options")
    for host, ((options,),) in options_of.items():
        assert "gmcast.segment = 0" in options and "evs.send_window = 64" in options
        assert f"pc.weight = {2 if host == 'db1' else 1}" in options
    assert names(again)["db2"] == ["seeded"]
    for node in again.nodes:  # as in a power failure
        node.process.kill()
    with pytest.raises(SystemFailure, match="none is known to have all transactions"):
        again.start()


def test_a_node_that_leaves_is_reported_at_once_and_restarted(three):
    node = three.node("db3")
    node.query("SET GLOBAL wsrep_provider_options = 'gmcast.isolate=2'")    # the node closes its connection
    three.synced(["db1", "db2"])
    add(three.nodes[0], "while db3 is away")
    assert node.process.alive() and node.left() and not three.nodes[0].left()
    three.await_joined(node)
    three.synced()
    assert names(three)["db3"] == ["seeded", "while db3 is away"] and not node.left()

    node.query("SET GLOBAL wsrep_provider_options = 'gmcast.isolate=2'")
    three.synced(["db1", "db2"])
    with pytest.raises(SystemFailure, match="db3: it left its cluster"):
        node.await_answer()
    assert not node.process.alive()


def test_a_killed_node_rejoins_by_ist_or_sst(three):
    node = three.node("db3")
    for by in ("IST", "SST"):
        node.process.kill()
        three.synced(["db1", "db2"])
        assert three.status()["db3"] is None
        add(three.nodes[0], f"while db3 is away, {by}")
        end = threading.Event()
        writing = threading.Thread(target=write_until, args=(three.nodes[1], by, end))
        writing.start()
        try:
            rejoined = node.rejoin(by=by)
        finally:
            end.set()
            writing.join()
        assert rejoined["by"] == by and rejoined["seconds"] > 0
        three.synced()
        found = names(three)
        assert found["db1"] == found["db2"] == found["db3"] and f"{by} 0" in found["db3"]


def write_until(node, word, end):
    count = 0
    while not end.wait(0.05):
        add(node, f"{word} {count}")
        count += 1


@pytest.fixture
def link(lab):
    link = lab.link("a", "b")
    yield link
    link.heal()


def falls_apart(cluster, *names):
    """Wait until none of these nodes may write."""
    cluster.host.wait_for(lambda: not any(cluster.status()[name]["primary"] for name in names),
                          f"{names} to be without a quorum", 30)


def test_a_disconnected_node_may_not_write_and_rejoins(link, three):
    link.cut()
    three.synced(["db1", "db2"])
    falls_apart(three, "db3")
    add(three.nodes[1], "meanwhile")
    with pytest.raises(pymysql.Error, match="not yet prepared node for application use"):
        add(three.nodes[2], "alone")
    link.heal()
    three.synced()
    assert names(three)["db3"] == ["meanwhile", "seeded"]


def test_both_halves_stop_unless_one_has_more_weight(link, hosts, data):
    halves = Galera(hosts[1:], data=data).up()
    link.cut()
    falls_apart(halves, "db2", "db3")
    halves.node("db2").query(BOOTSTRAP)  # as a user would who knows that the other half takes no writes
    halves.synced(["db2"])
    add(halves.nodes[0], "bootstrapped")
    link.heal()
    halves.synced()
    assert names(halves)["db3"] == ["bootstrapped", "seeded"]

    halves = Galera(hosts[1:], weights=[2, 1], data=data).up()
    link.cut()
    falls_apart(halves, "db3")
    halves.synced(["db2"])
    add(halves.nodes[0], "weighs more")
    link.heal()
    halves.synced()
    halves.destroy()


def test_an_ordinary_user_starts_an_empty_cluster_and_a_failed_node_ends_it(hosts, monkeypatch):
    """As on hosts with a login that is not root."""
    for host in hosts[1:]:
        host.run("rm -rf processes && mkdir processes && chmod 777 . processes")
        monkeypatch.setattr(host, "put", put_as(NOBODY, host))
        monkeypatch.setattr(host, "run", as_nobody(host.run))
    two = Galera(hosts[1:], segments=[0, 1]).up()
    assert two.node("db3").transfer() == "SST"
    pid = two.nodes[1].process.pid
    assert two.nodes[1].host.run(f"stat -c %u /proc/{pid}").stdout.strip() == NOBODY
    two.query("CREATE DATABASE made")
    two.host.wait_for(lambda: ("made",) in two.query_each("SHOW DATABASES")["db3"], "a copy", 20)
    two.destroy()

    monkeypatch.setattr(two.nodes[1], "command", lambda: "/usr/sbin/mariadbd --no-such-option")
    with pytest.raises(SystemFailure, match="db3: .*ended with exit code"):
        two.up()
    assert not any(process and process.alive() for process in two.processes)
    two.destroy()


def as_nobody(run):
    prefix = f"setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups"
    return lambda command, **options: run(f"{prefix} sh -c {shlex.quote(command)}", **options)
