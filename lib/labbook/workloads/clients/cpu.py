"""CPU of client hosts and servers, and which results the clients themselves may have limited.

The clients' ceiling is what the same load gives against a NullServer, which answers at next to no
cost. Where the null server needs less CPU a call than a client (both are among the metrics) and has
a core to itself, it does not limit; where it does, the ceiling comes out too low, and too many
points are marked, never too few.
"""

from concurrent.futures import ThreadPoolExecutor
from math import inf

from labbook.errors import LabError, SystemFailure
from labbook.targets import Server, processes

# The share of the clients' ceiling, or of their CPU, above which a result may be the clients'.
THRESHOLD = 0.7
TICKS = 100     # a second, of /proc's times: USER_HZ of every Linux on x86 and Arm


def client_limited(rate: float, ceiling_rate: float, cpu_share: float,
                   threshold: float = THRESHOLD) -> bool:
    """Whether the clients may have limited this rate (calls/s).

    `cpu_share`: the part of the client hosts' CPU that the clients used.
    """
    return rate > threshold * ceiling_rate or cpu_share > threshold


def limited_by_clients(issued, ceilings, cpu_share: float) -> bool:
    """Whether the clients of any host may have limited a load.

    `issued`: of each host, calls a second while its clients issued calls (issued_per_s, or a row of
    `paces`). `ceilings`: such lists, of the same load against a null server. `cpu_share`: as above.
    """
    highest = [max(of_host) for of_host in zip(*ceilings)]
    return any(client_limited(rate, ceiling, cpu_share)
               for rate, ceiling in zip(issued, highest or [inf] * len(issued)))


def ceilings_in(summary, metric: str = "issued_per_s") -> list:
    """The lists of this metric of measured ceilings; LabError for one that was measured without."""
    if not len(summary):
        return []
    if metric not in summary or summary[metric].isna().any():
        raise LabError(f"the clients' ceiling was measured without {metric}, by an earlier version",
                       remedy="Measure again with --remeasure")
    return [list(of_hosts) for of_hosts in summary[metric]]


def cpus(host) -> float:
    """How many CPUs' time a host has."""
    quota = (host.limits or {}).get("quota")
    cores = len(host.cores) if host.cores else int(host.run("nproc").stdout)
    return min(cores, quota) if quota else cores


def cpus_together(hosts) -> float:
    """How many CPUs' time hosts have together. Local hosts are of one machine, and may share
    CPUs."""
    if any(host.is_remote for host in hosts):
        return sum(map(cpus, hosts))
    every = set().union(*(host.cores or () for host in hosts))
    return len(every) if all(host.cores for host in hosts) else max(map(cpus, hosts))


def busy_shares(hosts, shares: list[float]) -> list[float]:
    """Of clients that work at the same time on one host each: how much of its CPU is busy, at least by each one's own.

    `shares`: clients_cpu_share of each host's clients, in the order of `hosts`. Local hosts, which may share CPUs,
    are as busy as all of them together; hosts that are machines of their own are not added.
    """
    used = list(zip(hosts, shares))
    if any(host.is_remote for host, _ in used):
        return list(shares)
    together = sum(share * cpus(host) for host, share in used) / cpus_together([host for host, _ in used])
    return [max(share, together) for share in shares]


def server_cpu(target: Server) -> float | None:
    """CPU seconds that the servers have used so far, to 10 ms each; None without their processes.

    `target` has a `process` or several `processes`.
    """
    serving = processes(target)
    if not serving:
        return None
    with ThreadPoolExecutor(len(serving)) as pool:
        return sum(pool.map(cpu_seconds, serving))


def core_seconds(host, cores=None) -> tuple[float, float]:
    """(seconds in which these cores of a host's machine were busy, all their seconds) since it started; None: all
    cores. To wait for a disk is not to be busy."""
    names = {"cpu"} if cores is None else {f"cpu{core}" for core in cores}
    lines = [line.split() for line in host.run("cat /proc/stat").stdout.splitlines()]
    times = [[int(field) for field in line[1:9]] for line in lines if line and line[0] in names]
    every = sum(map(sum, times))
    return (every - sum(of_core[3] + of_core[4] for of_core in times)) / TICKS, every / TICKS


def cpu_seconds(process) -> float:
    """Of a process with its threads, without its children. SystemFailure when it has ended."""
    host = process.host
    # By the shell alone: programs would use the host's quota, and wait for it, just before a load and after it.
    found = host.run(f'read -r line < /proc/{process.pid}/stat && echo "$line"', check=False)
    if found.exit_code:
        raise SystemFailure(f"{host.name}: {process.name} has ended, so its CPU time is unknown",
                            log=process.log_tail())
    fields = found.stdout.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS
