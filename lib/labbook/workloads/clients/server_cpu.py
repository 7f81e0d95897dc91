"""The CPU that a load cost its servers."""

from concurrent.futures import ThreadPoolExecutor

from labbook.errors import SystemFailure
from labbook.targets import processes


def server_cpu(target) -> float | None:
    """CPU seconds the servers have used so far, to 10 ms each; None without their processes.

    `target` has a `process` or several `processes`.
    """
    serving = processes(target)
    if not serving:
        return None
    with ThreadPoolExecutor(len(serving)) as pool:
        return sum(pool.map(cpu_seconds, serving))


def cpu_seconds(process) -> float:
    """Of the process with its threads, without its children."""
    host = process.host
    said = host.run(f"cat /proc/{process.pid}/stat && getconf CLK_TCK", check=False)
    if said.exit_code:
        raise SystemFailure(f"{host.name}: {process.name} has ended, so nobody knows its CPU",
                            log=process.log_tail())
    stat = said.stdout
    fields, ticks = stat.rpartition(")")[2].split()[:-1], int(stat.split()[-1])
    return (int(fields[11]) + int(fields[12])) / ticks
