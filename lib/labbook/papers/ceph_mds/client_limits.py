"""Which phases of a benchmark the clients may have limited: each by its own time on their cores.

The clients' cores run the clients themselves and ceph-fuse, which turns a call on a file into a request to a
metadata server, or answers it from its cache. Reading from that cache uses up the core where creating does not,
so that each phase is judged by what was used in its own window, and held against the ceiling of its own calls.
"""

import math

from labbook.workloads.clients.cpu import ceilings_in, limited_by_clients
from labbook.workloads.files.load import PHASES

ISSUED = "_issued_per_s"     # with a phase before it: of each client host, calls a second while it issued calls
OPS = ("create", "stat", "reread", "delete")
ORDERS = ("sequential", "random")


def client_limits(metrics: dict, phases, ceilings, fuse_cpu, cores: float) -> dict:
    """Metrics: {phase}_clients_share, of the clients' `cores` in this phase; {phase}_per_s_limited, 1 where the
    clients, with ceph-fuse, may have been its limit, and so for what both orders make together;
    client_limited, 1 where all phases were limited; fuse_cpu_share, of ceph-fuse in all phases.

    metrics: the load's, with clients_cpu_s, which is spread over the phases by their operations. ceilings: rows
    of the ceilings for as many clients. fuse_cpu(from_s, to_s): CPU seconds of ceph-fuse in that time.
    """
    found, fuse_s, core_s = {}, 0.0, 0.0
    own = metrics["clients_cpu_s"] / max(1, phases["operations"].sum())
    for one in phases.itertuples():
        seconds = (one.to_s - one.from_s) * cores
        fuse = fuse_cpu(one.from_s, one.to_s)
        share = (fuse + own * one.operations) / seconds
        found[f"{one.phase}_clients_share"] = share
        found[f"{one.phase}_per_s_limited"] = float(limited_by_clients(
            issued_in(one.phase, metrics), ceilings_in_phase(ceilings, one.phase), share))
        fuse_s, core_s = fuse_s + fuse, core_s + seconds
    limited = [found[f"{phase}_per_s_limited"] for phase in phases["phase"]]
    return found | of_both_orders(found) | {
        "client_limited": float(bool(limited) and all(limited)),
        "fuse_cpu_share": fuse_s / core_s if core_s else math.nan}


def of_both_orders(limited: dict) -> dict:
    """The marks of the metrics that are made of both orders' phases: limited where one of these was."""
    found = {}
    for op in OPS:
        marks = [limited.get(f"{order}_{op}_per_s_limited") for order in ORDERS]
        if None not in marks:
            found |= dict.fromkeys((f"{op}_per_s_limited", f"{op}_random_over_sequential_limited"), max(marks))
    return found


def ceilings_of(ceilings, clients: int):
    """The ceilings of `clients` clients, or of the next larger measured number; empty without one."""
    enough = ceilings[ceilings["clients"] >= clients] if len(ceilings) else ceilings
    return enough[enough["clients"] == enough["clients"].min()] if len(enough) else enough


def ceilings_in_phase(ceilings, phase: str) -> list[list[float]]:
    """Of each ceiling, the calls a second of each client host in a phase of this name, of rereading in one of
    reading; in those of other patterns, in the slowest phase that was measured."""
    phase = phase.replace("reread", "stat")
    known = [f"{name}{ISSUED}" for name in ([phase] if phase in PHASES["bonnie"] else PHASES["bonnie"])]
    return [list(map(min, zip(*lists))) for lists in zip(*(ceilings_in(ceilings, metric) for metric in known))]


def issued_in(phase: str, metrics: dict) -> list[float]:
    """Calls a second of each client host in a phase; those of bonnie++, which works on one, are its rate."""
    return metrics.get(f"{phase}{ISSUED}", [metrics.get(f"{phase}_per_s", 0.0)])
