"""CPUs of client hosts of which several may be the same."""

from labbook.workloads.clients.start import cpus


def cpus_together(hosts) -> float:
    """How many CPUs' time hosts were given together. Those that a lab made are of one machine, and
    may have the same CPUs."""
    if any(host.is_remote for host in hosts):
        return sum(map(cpus, hosts))
    every = set().union(*(host.cores or () for host in hosts))
    return len(every) if all(host.cores for host in hosts) else max(map(cpus, hosts))
