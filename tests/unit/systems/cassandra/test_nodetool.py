"""Parsing what Cassandra writes and prints: logs, names of files, output of nodetool."""

import re
from datetime import datetime
import shutil
import subprocess
from pathlib import PurePosixPath
from types import SimpleNamespace

import pytest

from labbook.errors import SystemFailure
from labbook.systems.cassandra import logs
from labbook.systems.cassandra import sstables as files
from labbook.systems.cassandra.nodetool import parse_busy, parse_ring, size

OLD_JOIN = """ INFO [main] 2026-11-21 18:34:00,100 Starting up server gossip
 INFO [main] 2026-11-21 18:34:00,200 JOINING: waiting for ring and schema information
 INFO [main] 2026-11-21 18:34:05,200 JOINING: schema complete, ready to bootstrap
 INFO [main] 2026-11-21 18:34:05,201 JOINING: getting bootstrap token
 INFO [main] 2026-11-21 18:34:05,210 JOINING: sleeping 5000 ms for pending range setup
 INFO [main] 2026-11-21 18:34:10,230 JOINING: Starting to bootstrap...
 INFO [main] 2026-11-21 18:34:13,730 Bootstrap/Replace/Move completed! Now serving reads.
"""
# What 5.0.8 logged of a join with its waits as shipped.
NEW_JOIN = """INFO  [main] 2026-11-21 22:02:24,546 Starting up server gossip
INFO  [main] 2026-11-21 22:02:26,064 JOINING: waiting for ring information
INFO  [GossipStage:1] 2026-11-21 22:02:26,990 InetAddress /198.18.1.10:7000 is now UP
INFO  [main] 2026-11-21 22:02:32,085 Waiting for gossip to settle...
INFO  [main] 2026-11-21 22:02:40,091 No gossip backlog; proceeding
INFO  [main] 2026-11-21 22:02:40,093 JOINING: schema complete, ready to bootstrap
INFO  [main] 2026-11-21 22:02:40,093 JOINING: waiting for pending range calculation
INFO  [main] 2026-11-21 22:02:40,094 JOINING: calculation complete, ready to bootstrap
INFO  [main] 2026-11-21 22:02:40,096 JOINING: getting bootstrap token
INFO  [main] 2026-11-21 22:02:40,209 JOINING: sleeping 30000 ms for pending range setup
INFO  [main] 2026-11-21 22:03:10,216 JOINING: Starting to bootstrap...
INFO  [main] 2026-11-21 22:03:10,500 [Stream #56dcf4c0, ID#0] Beginning stream session with /198.18.1.10:7000
INFO  [Stream-Deserializer-/198.18.1.10:7000-145f0adc] 2026-11-21 22:03:10,673 [Stream #56dcf4c0 ID#0] Prepare completed. Receiving 11 files(101.102MiB), sending 0 files(0B)
INFO  [main] 2026-11-21 22:03:15,144 Bootstrap completed for tokens [7378697629483820646]
INFO  [main] 2026-11-21 22:03:15,272 JOINING: Finish joining ring
INFO  [main] 2026-11-21 22:03:15,378 Waiting for gossip to settle...
"""
OLD_LEAVE = """ INFO [RMI TCP Connection(4)] 2026-11-21 18:00:00,000 LEAVING: sleeping 5000 ms for pending ra
 INFO [RMI TCP Connection(4)] 2026-11-21 18:00:05,000 LEAVING: streaming data to other nodes
 INFO [RMI TCP Connection(4)] 2026-11-21 18:00:07,000 Announcing that I have left the ring for 5000m
 INFO [RMI TCP Connection(4)] 2026-11-21 18:00:12,000 DECOMMISSIONED
"""


@pytest.mark.parametrize("log, spans, waits, streaming", [
    (OLD_JOIN, logs.JOINING, 10.02, 3.5), (NEW_JOIN, logs.JOINING, 44.036, 4.928),
    (OLD_LEAVE, logs.LEAVING, 10, 2)])
def test_waits_and_streaming_by_a_nodes_log(log, spans, waits, streaming):
    assert logs.seconds(log, spans["waits"]) == pytest.approx(waits)
    assert logs.seconds(log, spans["streaming"]) == pytest.approx(streaming)


def test_an_unfinished_phase_has_no_seconds():
    early = "\n".join(OLD_JOIN.splitlines()[:5])
    assert logs.seconds(early, logs.JOINING["waits"][:1]) == pytest.approx(5)
    assert logs.seconds(early, logs.JOINING["waits"]) is None   # half of them are no whole
    assert logs.seconds(early, logs.JOINING["streaming"]) is None
    assert logs.seconds("", logs.JOINING["waits"]) is None


def joiner(log):
    def run(*words, check=True):
        if words[0] == "date":
            return SimpleNamespace(stdout="+0900\n")
        lines = [line for line in log.splitlines() if re.search(words[2], line)]
        output = str(len(lines)) if "c" in words[1] else "\n".join(lines)
        return SimpleNamespace(stdout=output, exit_code=0)

    process = SimpleNamespace(log="a.log", log_tail=lambda: "its end")
    return SimpleNamespace(run=run, process=process, host=SimpleNamespace(name="node2", is_remote=False))


def test_a_phase_that_the_log_lacks_is_a_failure():
    found = logs.phases(joiner(NEW_JOIN), logs.JOINING)
    began, ended = found.pop("streamed_from_s"), found.pop("streamed_to_s")
    assert found == {
        "fixed_wait_s": pytest.approx(44.036), "streaming_s": 4.928, "from_request_s": pytest.approx(49.08)}
    assert ended - began == pytest.approx(4.928)
    first = next(line for line in NEW_JOIN.splitlines() if "Starting to bootstrap" in line)
    at = re.search(r"(\S+) (\d\d:\d\d:\d\d),(\d+)", first)
    assert began == pytest.approx(datetime.fromisoformat(f"{at[1]}T{at[2]}.{at[3]}+09:00").timestamp()), "its own zone"
    early = "\n".join(OLD_JOIN.splitlines()[:5])
    assert logs.phases(joiner(early), logs.JOINING, partly=True) == {
        "fixed_wait_s": None, "streaming_s": None, "from_request_s": None, "streamed_from_s": None,
        "streamed_to_s": None}
    with pytest.raises(SystemFailure, match="node2: its log a.log has no lines for fixed_wait_s from 'JOINING: "
                                            "sleeping' to 'JOINING: Starting.*' and streaming_s from ") as e:
        logs.phases(joiner(early), logs.JOINING)
    assert e.value.log == "its end"


@pytest.mark.parametrize("log, spans", [(OLD_JOIN, logs.JOINING), (OLD_LEAVE, logs.LEAVING)])
def test_one_wait_that_the_log_lacks_is_a_failure(log, spans):
    """The others alone were taken for all fixed waits."""
    less = "\n".join(line for line in log.splitlines() if "sleeping" not in line)
    with pytest.raises(SystemFailure, match="no lines for fixed_wait_s from '(JOINING|LEAVING): sleeping' to"):
        logs.phases(joiner(less), spans)


def test_counting_files_received_whole():
    begin = "INFO  [Stream-Deserializer-/198.18.1.10:7000-263b2a2b] 2026-11-21 22:08:34,847"
    place = "/srv/labbook/cassandra/data/{}-ed920a90/nb-1-big-{}.db length 4.009MiB"
    log = "\n".join(f"{begin} {how.format(part)} to {place.format(table, part)}"
                    for how in ("Writing component {}.db", "Block Writing component")
                    for part in ("Data", "Index")
                    for table in ("system_auth/roles", "labbook/pairs"))
    assert logs.whole_files(joiner(log)) == 1
    assert logs.whole_files(joiner(OLD_JOIN)) == 0


OLD_FILES = """file 100 pairs-hc-1-Data.db
file 10 pairs-hc-1-Index.db
file 200 pairs-hc-2-Data.db
file 20 pairs-hc-2-Index.db
file 0 pairs-hc-2-Compacted
file 50 pairs-tmp-hc-3-Data.db
"""
NEW_FILES = """file 100 nb-1-big-Data.db
file 10 nb-1-big-Index.db
file 200 nb-2-big-Data.db
file 400 nb-11-big-Data.db
file 77 nb_txn_compaction_ab.log
file 800 nb-12-big-Data.db
file 78 nb_txn_stream_cd.log
log
ADD:[/srv/x/nb-11-big-,0,8][1]
REMOVE:[/srv/x/nb-2-big-,1700,8][2]
COMMIT:[,0,0][3]
log
ADD:[/srv/x/nb-12-big-,0,8][1]
"""


def test_only_complete_and_live_files_count():
    assert files.live_bytes(OLD_FILES) == 110
    assert files.live_bytes(NEW_FILES) == 100 + 10 + 400
    going_on = NEW_FILES.replace("COMMIT:[,0,0][3]\n", "")
    assert files.live_bytes(going_on) == 100 + 10 + 200
    assert files.live_bytes("") == 0
    assert files.table_files(listing(NEW_FILES)) == [400, 100]


def listing(listed):
    run = lambda command, **more: SimpleNamespace(stdout=listed)
    return SimpleNamespace(host=SimpleNamespace(run=run), home=PurePosixPath("/srv/x"))


def test_free_bytes_are_the_least_of_a_disk_and_the_disk_below_it(tmp_path):
    def run(command):
        done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
        return SimpleNamespace(stdout=done.stdout)

    here = files.free_bytes(SimpleNamespace(root=tmp_path, run=run))
    assert here == pytest.approx(shutil.disk_usage(tmp_path).free, rel=0.2)
    printed = lambda command: SimpleNamespace(stdout="   Avail\n500\n   Avail\n300\n")
    assert files.free_bytes(SimpleNamespace(root=tmp_path, run=printed)) == 300


OLD_RING = """Address         DC          Rack        Status State   Load            Owns    Token
                                                                               34028236692093846346
198.18.0.2      datacenter1 rack1       Up     Normal  16.5 MB         80.00%  0
198.18.0.3      datacenter1 rack1       Down   Joining ?               20.00%  34028236692093846346
"""
NEW_RING = """
Datacenter: datacenter1
==========
Address               Rack        Status State   Load            Owns                Token
                                                                                     36893488147419
198.18.0.2            rack1       Up     Normal  120.25 KiB      80.00%              0
198.18.0.3            rack1       Up     Leaving 1.5 GiB         ?                   -9223372036854775807

  Warning: "nodetool ring" is used to output all the tokens of a node.
"""


def test_parsing_nodetools_ring():
    assert parse_ring(OLD_RING) == {
        "198.18.0.2": {"state": "NORMAL", "up": True, "token": 0, "load_bytes": 17301504},
        "198.18.0.3": {"state": "JOINING", "up": False, "token": 34028236692093846346,
                       "load_bytes": None}}
    ring = parse_ring(NEW_RING)
    assert [ring[a]["state"] for a in sorted(ring)] == ["NORMAL", "LEAVING"]
    assert ring["198.18.0.3"]["token"] == -2**63 + 1
    assert ring["198.18.0.2"]["load_bytes"] == 123136 and size("512 bytes") == 512


POOLS = """Pool Name                    Active   Pending      Completed   Blocked  All time blocked
ReadStage                         3         7            100         0                 0
FlushWriter                       0         0              4         0                 0
MemtablePostFlusher               1         0              4         0                 0

Message type           Dropped
READ                         0
"""
COMPACTIONS = """pending tasks: 2
          compaction type        keyspace   column family bytes compacted     bytes total  progress
               Compaction         labbook           pairs        12582912        67108864    18.75%
"""


def test_parsing_compactions_and_flushes():
    assert parse_busy(COMPACTIONS, POOLS) == [
        "2 compactions wait", "Compaction labbook pairs", "MemtablePostFlusher: 1 active, 0 waiting"]
    assert parse_busy("pending tasks: 0\n", POOLS.replace("  1         0", "  0         0")) == []
