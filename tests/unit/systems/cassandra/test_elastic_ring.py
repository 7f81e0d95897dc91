"""How an elastic ring's nodes are configured, and when a join succeeds; servers are in tests/lab."""

from contextlib import nullcontext
from pathlib import PurePosixPath
from types import SimpleNamespace

import pytest

from labbook import systems
from labbook.errors import InputError, SystemFailure
from labbook.systems.cassandra import logs, sstables
from labbook.systems.cassandra.elastic_node import ElasticNode
from labbook.systems.cassandra.elastic_ring import ElasticRing
from labbook.systems.cassandra.join import Joiner, Joins, check_received

MB = 1 << 20


def hosts(count):
    return [SimpleNamespace(name=f"node{i + 1}", address=f"198.18.0.{i + 1}",
                            limits={"memory": 2 << 30}, root=PurePosixPath("/srv"))
            for i in range(count)]


def test_it_is_a_system_over_several_hosts():
    found = systems.find("elastic_ring")
    assert found is ElasticRing and systems.over_several(found)
    assert found.speaks() == "thrift" and found.speaks(version="5.0.8") == "cql"
    assert "cassandra-all:5.0.8" in str(found.needs(version="5.0.8").artifacts[0])


def test_a_joiner_bootstraps_and_the_donor_does_not():
    ring = ElasticRing(hosts(3), ring_delay_ms=5000, stream_mbit=80)
    joiner = ring.make_node(ring.hosts[1], 17, joins=True, together=True)
    assert joiner.configuration()["auto_bootstrap"] is True
    assert joiner.configuration()["initial_token"] == "17"
    assert joiner.configuration()["stream_throughput_outbound_megabits_per_sec"] == 80
    assert joiner.settings.seeds == [ring.address] == [ring.donor.address]
    assert ring.donor.configuration()["auto_bootstrap"] is False
    assert ring.donor.settings.token == 0 and ring.donor.settings.heap_mb == 256
    assert "-Dcassandra.ring_delay_ms=5000" in ring.donor.command()
    assert "rangemovement" not in joiner.command()  # the papers' have no such check


def test_gets_may_be_left_without_a_read_ahead_from_the_donor_s_next_start_on(monkeypatch):
    ring, did = ElasticRing(hosts(2)), []
    monkeypatch.setattr(type(ring.donor), "compile_advise", lambda node: did.append(node.host.name))
    assert "LD_PRELOAD" not in ring.donor.command()
    ring.read_ahead_of_gets(False)
    assert ring.donor.command().startswith("env LD_PRELOAD=/srv/") and did == ["node1"]
    assert "LABBOOK_NOTHING_AHEAD=ReadStage java " in ring.donor.command()
    ring.read_ahead_of_gets(True)
    assert ring.donor.command().startswith("java ") and did == ["node1"]
    with pytest.raises(InputError, match="share open files"):
        ElasticRing(hosts(2), version="5.0.8").read_ahead_of_gets(False)


def test_todays_nodes_may_join_together_and_may_wait_as_shipped():
    quick, shipped = (ElasticRing(hosts(2), version="5.0.8", ring_delay_ms=delay)
                      for delay in (5000, None))
    alone, together = (quick.make_node(quick.hosts[1], 17, joins=True, together=many).command()
                       for many in (False, True))
    assert "rangemovement" not in alone and "-Dcassandra.consistent.rangemovement=false" in together
    assert "skip_wait_for_gossip_to_settle=0" in alone and "jmx.local.port" in alone
    assert "settle" not in shipped.donor.command() and "ring_delay" not in shipped.donor.command()


def test_todays_nodes_have_a_limit_on_memory_outside_the_heap():
    command = ElasticRing(hosts(1), version="5.0.8", heap_mb=256).donor.command().split()
    assert command[:2] == ["java", "-XX:MaxDirectMemorySize=128M"]
    assert "-Dio.netty.maxDirectMemory=67108864" in command
    assert "Direct" not in ElasticRing(hosts(1)).donor.command()


@pytest.mark.parametrize("files, strategy", [
    ("by_size", "'class': 'SizeTieredCompactionStrategy', 'enabled': 'false'"),
    ("by_range", "'class': 'LeveledCompactionStrategy', 'sstable_size_in_mb': '4', 'enabled': 'false'")])
def test_the_strategy_of_merging(files, strategy, monkeypatch):
    queries = []
    client = nullcontext(SimpleNamespace(query=queries.append))
    ring = ElasticRing(hosts(1), version="5.0.8", files=files)
    monkeypatch.setattr(ring.donor.admin, "client", lambda: client)
    monkeypatch.setattr(ring.donor, "await_agreed", lambda what: None)
    ring.compaction(False)
    assert queries == [f"ALTER TABLE labbook.pairs WITH compaction = {{{strategy}}}"]


@pytest.mark.parametrize("version, throttle", [("1.0.7", 16), ("5.0.8", 64)])
@pytest.mark.parametrize("failing", [(), ("quiet",), ("quiet", False)])
def test_merging_leaves_compaction_as_it_was(monkeypatch, version, throttle, failing):
    """Also where merging fails, and where what was before cannot be restored."""
    ring, calls = ElasticRing(hosts(1), version=version), []

    def call(what):
        calls.append(what)
        if what in failing:
            raise SystemFailure("still busy") if what == "quiet" else ConnectionRefusedError

    monkeypatch.setattr(sstables, "table_bytes", lambda node: 5)
    monkeypatch.setattr(sstables, "free_bytes", lambda host: 5)
    monkeypatch.setattr(sstables, "table_files", lambda node: [4, 1])
    monkeypatch.setattr(ring.donor, "nodetool", lambda *words: calls.append(words))
    monkeypatch.setattr(ring, "compaction", call)
    monkeypatch.setattr(ring, "await_quiet", lambda seconds: call("quiet"))
    monkeypatch.setattr(ring.donor.admin, "look_for_merges", lambda *table: calls.append(table))
    ring._compacting = False
    if failing:
        with pytest.raises(SystemFailure, match="still busy"):
            ring.merge()
    else:
        assert ring.merge() == [4, 1]
    assert calls == [("setcompactionthroughput", 0), True, ("labbook", "pairs"), "quiet",
                    ("setcompactionthroughput", throttle), False]


def test_a_node_that_answers_late_is_waited_for_and_one_that_has_ended_is_an_error(monkeypatch):
    """One late answer of a busy donor ended an hour's merge, and a node that had ended was no reason."""
    ring, answers = ElasticRing(hosts(1), version="5.0.8"), [TimeoutError("30 s"), {"merging": 1}, {}]
    ring._running, alive = ["node1"], [True]

    def busy():
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(ring.donor.admin, "busy", busy)
    ring.donor._process = SimpleNamespace(alive=lambda: alive[0], log_tail=lambda: "OutOfMemory", name="cassandra",
                                          log="log", exit_code=lambda: 3)
    ring.host.wait_for = lambda predicate, what, timeout, process, interval: [*iter(predicate, True)]
    ring.await_quiet()
    assert not answers
    alive[0] = False
    with pytest.raises(SystemFailure, match="node1: its Cassandra ended"):
        ring.await_quiet()


def test_clients_call_the_donor_or_all_nodes_in_the_ring():
    ring, spread = (ElasticRing(hosts(3), coordinators=who) for who in ("donor", "all"))
    for one in (ring, spread):
        one._running, one._tokens = ["node1", "node2", "node3"], {"node1": 0, "node2": 5}
    assert ring.addresses == ["198.18.0.1"] and spread.addresses == ["198.18.0.1", "198.18.0.2"]
    assert (ring.port, ring.protocol) == (9160, "thrift")
    assert [node.host.name for node in ring.running] == ["node1", "node2", "node3"]


@pytest.mark.parametrize("count, settings, message", [
    (0, {}, "elastic_ring: hosts"),
    (2, {"version": "0.7.0"}, "version: '0.7.0' is not allowed .*1.0.7, 5.0.8"),
    (2, {"whole_files": True}, "whole_files: Cassandra 1.0.7 has no such"),
    (2, {"disk_access": "mmap"}, "disk_access: .*cannot map files on Java 17"),
    (2, {"coordinators": "some"}, "coordinators: 'some' is not allowed .*donor, all"),
    (2, {"files": "by_age"}, "files: 'by_age' is not allowed .*by_size, by_range"),
    (2, {"files": "by_range"}, "files: Cassandra 1.0.7 does not stream SSTables whole .*by_size"),
    (2, {"version": "5.0.8", "heap_mb": 1200}, "heap_mb: 1200 does not fit .*64 to 1024"),
    (2, {"ring_delay": 5}, "did you mean 'ring_delay_ms'"),
    (2, {"ring_delay_ms": -1}, "ring_delay_ms"),
    (2, {"compression": "lz4"}, "compression"),
    (2, {"token": 5}, "unknown key"),
    (2, {"heap_mb": 9000}, "heap_mb: 9000 does not fit"),
])
def test_wrong_settings(count, settings, message):
    with pytest.raises(InputError, match=message):
        ElasticRing(hosts(count), **settings)


def test_what_a_joiner_had_before_takes_no_room_of_what_is_to_come(monkeypatch):
    """A node that was killed while it joined was not to join again: its own files filled its disk."""
    ring, used = ElasticRing(hosts(2)), {"node2": 90 * MB}
    ring._running, ring._tokens = ["node1"], {"node1": 0}
    monkeypatch.setattr(sstables, "table_bytes", lambda node: 100 * MB)
    monkeypatch.setattr(sstables, "free_bytes", lambda host: 100 * MB - used[host.name])
    monkeypatch.setattr(ElasticNode, "destroy", lambda node: used.update({node.host.name: 0}))
    monkeypatch.setattr(ring, "make_node", lambda *_, **__: (_ for _ in ()).throw(SystemFailure("it would start")))
    with pytest.raises(SystemFailure, match="it would start"):
        ring.join([0.5])


def test_impossible_requests_are_refused_before_anything_starts(monkeypatch):
    ring = ElasticRing(hosts(3))
    ring._running, ring._tokens = ["node1"], {"node1": 0}
    monkeypatch.setattr(ElasticNode, "destroy", lambda node: None)
    monkeypatch.setattr(sstables, "table_bytes", lambda node: 100 * MB)
    monkeypatch.setattr(sstables, "free_bytes", lambda host: 30 * MB)
    with pytest.raises(InputError, match="leave nothing"):
        ring.join([0.5, 0.5])
    with pytest.raises(InputError, match="node3: 41943040 bytes are to come.*31457280 free"):
        ring.join([0.2, 0.2])  # who joins together with others gets their ranges as well
    with pytest.raises(InputError, match="rows: 100000 rows of 16384 bytes take .* node1 has 31457280"):
        ring.check_room(100_000, 16384)
    with pytest.raises(InputError, match="restore: there is no snapshot .*data.*after snapshot"):
        ring.restore()
    with pytest.raises(InputError, match="leave: 'node1' cannot leave"):
        ring.leave("node1")
    with pytest.raises(InputError, match="no node on a host 'node9' .*node1, node2, node3"):
        ring.data_bytes("node9")
    with pytest.raises(InputError, match="merge: 104857600 bytes are to be merged, and node1 has 3145"):
        ring.merge()


def node(name, alive=True):
    process = SimpleNamespace(alive=lambda: alive, log_tail=lambda: f"log of {name}",
                              kill=lambda: None)
    return SimpleNamespace(host=SimpleNamespace(name=name), address=name, process=process)


def joins(owners, *joiners, donor=None, held=100 * MB):
    came, ended = [], []
    ring = SimpleNamespace(donor=donor or node("node1"), owners=owners, mark_joined=came.append,
                           mark_stopped=ended.append)
    made = Joins(ring, [Joiner(j, 7, 0.2, asked_s=0.0) for j in joiners], held, held)
    return made, came, ended


@pytest.fixture
def on_disk(monkeypatch):
    """Bytes by node, and logs that show nothing."""
    found = {}
    for ask in ("table_bytes", "arriving_bytes"):
        monkeypatch.setattr(sstables, ask, lambda node: found.get(node.host.name, 0))
    monkeypatch.setattr(logs, "phases", lambda *_, **more: {"fixed_wait_s": 10.0, "streaming_s": 1.0})
    monkeypatch.setattr(logs, "whole_files", lambda node: 3)
    monkeypatch.setattr(logs, "has_failed", lambda node: node.host.name == "stuck")
    return found


def test_a_join_ends_when_the_donor_knows_the_owner_and_the_data_are_there(on_disk):
    on_disk.update(node1=100 * MB, node2=20 * MB)
    answers = [{"node1": 0}, TimeoutError("busy"), {"node1": 0, "node2": 8},
               {"node1": 0, "node2": 7}]

    def owners():
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    made, came, _ = joins(owners, node("node2"))
    row, = made.wait(10)
    assert not answers and came == ["node2"]
    assert (row["node"], row["token"], row["share"]) == ("node2", 7, 0.2)
    assert row["received_bytes"] == row["expected_bytes"] == 20 * MB
    assert row["join_s"] == row["normal_s"] > 0 and row["killed_s"] is None
    assert (row["fixed_wait_s"], row["streaming_s"], row["whole_files_sent"]) == (10.0, 1.0, 3)
    assert row["donor_bytes_before"] == row["donor_bytes_after"] == 100 * MB


@pytest.mark.parametrize("received", [0, 1 * MB, 12 * MB])
def test_a_join_without_all_its_data_is_a_failure(on_disk, received):
    on_disk["node2"] = received
    made, _, _ = joins(lambda: {"node2": 7}, node("node2"))
    with pytest.raises(SystemFailure, match=rf"node2 has joined with {received} bytes.*0.2 of") as e:
        made.wait(10)
    assert e.value.log == "log of node2"
    joiner = Joiner(node("node2"), 7, 0.2, received_bytes=19 * MB)
    check_received(joiner, 100 * MB)


def test_joiners_that_fail(on_disk):
    with pytest.raises(SystemFailure, match="node2: its Cassandra ended while nodes joined"):
        joins(dict, node("node2", alive=False))[0].wait(10)
    with pytest.raises(SystemFailure, match="node1: its Cassandra ended"):
        joins(dict, node("node2"), donor=node("node1", alive=False))[0].wait(10)
    with pytest.raises(SystemFailure, match="stuck: it could not get its data"):
        joins(dict, node("stuck"))[0].wait(10)
    with pytest.raises(SystemFailure, match="node2, node3: not in the ring 0 s after"):
        joins(dict, node("node2"), node("node3"))[0].wait(0)


def test_a_killed_joiner_has_a_row_with_its_data_so_far(on_disk):
    on_disk.update(node2=5 * MB, node3=20 * MB)
    made, came, ended = joins(lambda: {"node3": 7}, node("node2"), node("node3"))
    made.kill("node2")
    killed, whole = made.wait(10)
    assert ended == ["node2"] and came == ["node3"]
    assert killed["received_bytes"] == 5 * MB and killed["killed_s"] > 0
    assert killed["normal_s"] is killed["join_s"] is None and whole["join_s"] > 0
    with pytest.raises(InputError, match="'node9' does not join .*node2, node3"):
        made.kill("node9")
