"""Which resource limits the calls: how busy the nodes' disks and their cores are in some seconds of a load."""

import time
from concurrent.futures import ThreadPoolExecutor

from labbook.workloads.clients.cpu import core_seconds, server_cpu


class Windows:
    """Looks at the ring's nodes in windows of time; `rest(seconds)` waits and looks meanwhile.

    windows: a dict for each rest, with donor_disk and most_disk (the share of the time in which the donor's
    disk, and the busiest of the ring's, had a request), cores (the busy share of the nodes' cores, whoever used them;
    of nodes without cores of their own, of all of the donor's machine), and nodes_cpus (CPUs' time that the nodes'
    processes used).
    """

    def __init__(self, lab, ring):
        self.lab, self.ring, self.windows = lab, ring, []

    def rest(self, seconds: float) -> None:
        hosts = [self.lab.host(name) for name in self.ring.joined]
        before = self._read(hosts)
        time.sleep(seconds)
        after = self._read(hosts)
        took, busy, whole, cpu, *disks = (late - early for early, late in zip(before, after))
        self.windows.append({"donor_disk": disks[0] / took, "most_disk": max(disks) / took, "cores": busy / whole,
                             "nodes_cpus": cpu / took})

    def metrics(self) -> dict:
        """Metrics of the first window (before) and the last (after): {donor_disk, most_disk, cores,
        nodes_cpus}_{before, after}; and shared_cores_busy: cores_before, 0 for nodes with cores of their own."""
        ends = {"before": self.windows[0], "after": self.windows[-1]}
        found = {f"{what}_{when}": value for when, window in ends.items() for what, value in window.items()}
        first = [self.lab.host(node.host.name) for node in self.ring.nodes[:2]]
        return found | {"shared_cores_busy": found["cores_before"] if share_cores(first) else 0.0}

    def _read(self, hosts) -> list[float]:
        """Seconds of a clock, busy and all seconds of the cores, CPU seconds of the nodes, busy seconds of disks."""
        cores = set().union(*(self.lab.host(node.host.name).cores or () for node in self.ring.nodes)) or None
        with ThreadPoolExecutor(len(hosts)) as pool:
            disks = list(pool.map(lambda host: self.lab.disk(host.name).busy_s(), hosts))
        return [time.monotonic(), *core_seconds(hosts[0], cores), server_cpu(self.ring), *disks]


def share_cores(hosts) -> bool:
    """Whether two hosts have cores in common."""
    first, second = hosts
    return bool(set(first.cores or ()) & set(second.cores or ()))
