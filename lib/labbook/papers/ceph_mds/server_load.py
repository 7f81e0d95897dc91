"""How busy the metadata servers are in each phase of a benchmark: whether they are the bottleneck.

A server that uses up its share of a core limits what clients get. One that does not waits for the clients, for
the OSDs' disks, or for a core that others use.
"""

from contextlib import ExitStack, contextmanager

from labbook.workloads.clients.cpu_watch import CpuWatch


@contextmanager
def servers_watched(ceph, between_s: float):
    """Context that samples the CPU time of each metadata server with a rank: {name: CpuWatch}."""
    with ExitStack() as stack:
        yield {one.name: stack.enter_context(CpuWatch([ceph.mdss[one.name].process], between_s))
               for one in ceph.ranks().values()}


def server_shares(watches: dict, phases, share: float) -> dict:
    """Metrics: {phase}_mds_share, the CPU time of the busiest server in this phase over that of its `share` of a
    core; mds_share_used, the same of the phase where it is highest. Empty without a server.

    phases: DataFrame with phase, from_s and to_s (epoch seconds).
    """
    found = {f"{one.phase}_mds_share": max(watch.used(one.from_s, one.to_s) for watch in watches.values())
             / ((one.to_s - one.from_s) * share) for one in phases.itertuples()} if watches else {}
    return found | ({"mds_share_used": max(found.values())} if found else {}) | (
        of_one_server(found) if len(watches) == 1 else {})


def of_one_server(shares: dict) -> dict:
    """Metrics of a cluster with one server, which say whether that is the bottleneck: {op}_one_mds_share, of its
    share of a core the part that it used; of both orders' phases, where it used less."""
    found = {}
    for name, share in shares.items():
        op = name.removesuffix("_mds_share").rpartition("_")[2]
        found[f"{op}_one_mds_share"] = min(share, found.get(f"{op}_one_mds_share", share))
    return found
