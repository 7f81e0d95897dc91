"""Clients on several hosts that start as one: who has how many, whose clock says what, and when."""

import time

ASK_SECONDS = 10


def shares(spec: dict, clients: int, hosts: int) -> list[dict]:
    """The spec of each host: clients spread evenly, numbered through."""
    most, more = divmod(clients, hosts)
    counts = [most + (i < more) for i in range(hosts)]
    return [dict(spec, clients=n, first_client=sum(counts[:i])) for i, n in enumerate(counts) if n]


def clocks(crew) -> tuple[list[float], float]:
    """How far the clock of each of the crew's hosts is ahead of ours, in seconds, and how far two
    starts told by these clocks may lie apart because that is not known exactly."""
    measured = getattr(crew, "clock_offsets", None)
    found = measured() if measured else [(0.0, 0.0)] * len(crew.hosts)
    return [offset for offset, _ in found], 2 * max(uncertainty for _, uncertainty in found)


def notice_seconds(crew, clients: int) -> float:
    """How long before the start its time is told, for it to be known everywhere by then."""
    begin = time.monotonic()
    crew.run(time.time, timeout=ASK_SECONDS)
    return 0.1 + 0.001 * clients + 2 * (time.monotonic() - begin)


def cpus(host) -> float:
    """How many CPUs' time the host was given."""
    quota = (host.limits or {}).get("quota")
    cores = len(host.cores) if host.cores else int(host.run("nproc").stdout)
    return min(cores, quota) if quota else cores
