"""A node leaves the ring in order: it gives its range away first."""

import time

from labbook.systems.cassandra import logs
from labbook.systems.cassandra import sstables as files
from labbook.systems.cluster import in_parallel

ASK_SECONDS = 0.2


def leave(ring, node, seconds: float) -> dict:
    """Returns when the ring's donor has the node no more; the node's process has ended then.

    Gives node, asked_s, gone_s, leave_s, fixed_wait_s, streaming_s, held_bytes (on the disk of the
    one that leaves) and moved_bytes (what the others grew by, if nobody writes meanwhile).
    """
    name, others = node.host.name, [other for other in ring.running if other is not node]
    held, before = files.table_bytes(node), sum(in_parallel(others, files.table_bytes))
    asked_s = time.time()
    node.nodetool(*node.version.get("leave", ["decommission"]), seconds=seconds)
    ring.host.wait_for(lambda: node.address not in ring.owners(), f"{name} to be gone", seconds,
                       ring.process, ASK_SECONDS)
    gone_s = time.time()
    told = logs.told(node, logs.LEAVING)
    node.process.kill()
    return {"node": name, "asked_s": asked_s, "gone_s": gone_s, "leave_s": gone_s - asked_s, **told,
            "held_bytes": held, "moved_bytes": sum(in_parallel(others, files.table_bytes)) - before}
