"""How much the clients themselves can do: the same load against a server that costs next to nothing."""

from labbook.workloads.keyvalue import Load, keyvalue

# The share of the clients' ceiling, or of their CPU, above which a result tells of the clients.
THRESHOLD = 0.7


def ceiling(crew, null_server, **load) -> Load:
    """keyvalue()'s load against the null server of the same protocol; its rate is the ceiling.

    The null server's own CPU a call is in the measures: where it has a core of its own and needs
    less than a client's call does, it does not limit. Where it does, the ceiling comes out too
    low, and too many points are marked, never too few.
    """
    return keyvalue(crew, null_server, **load)


def client_limited(rate: float, ceiling_rate: float, cpu_share: float,
                   threshold: float = THRESHOLD) -> bool:
    """Whether the clients, not the server, may have set this rate (calls/s).

    `cpu_share`: the part of the client hosts' CPU that the clients used.
    """
    return rate > threshold * ceiling_rate or cpu_share > threshold
