"""Which results tell of the clients, not of the server.

The clients' ceiling is what keyvalue() gives for the same load against a NullServer, which
answers at next to no cost. Where the null server needs less CPU a call than a client (both are
in the metrics) and has a core to itself, it does not limit; where it does, the ceiling comes
out too low, and too many points are marked, never too few.
"""

# The share of the clients' ceiling, or of their CPU, above which a result tells of the clients.
THRESHOLD = 0.7


def client_limited(rate: float, ceiling_rate: float, cpu_share: float,
                   threshold: float = THRESHOLD) -> bool:
    """Whether the clients may have set this rate (calls/s).

    `cpu_share`: the part of the client hosts' CPU that the clients used.
    """
    return rate > threshold * ceiling_rate or cpu_share > threshold
