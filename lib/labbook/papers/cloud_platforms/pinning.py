"""The tested server's processors on cores of their own, and all else of the platforms on the others.

Servers that are emulated share the machine's cores with the platforms' own services and with each other. While
a server is measured, its QEMU has the upper half of its host's cores, and whatever else runs on the platforms'
hosts has the lower half.
"""

from contextlib import contextmanager
from functools import partial

from labbook.systems.cluster import in_parallel

QEMU = "qemu-system"
# Threads and processes may end meanwhile. A process that starts later has the cores of the one that starts it.
ALL = """for one in /proc/[0-9]*; do taskset -acp {cores} ${{one#/proc/}}; done > /dev/null 2>&1; true"""
SERVERS = """for pid in $(pgrep -f '^[^ ]*{qemu}'); do
  cores={rest}
  for id in {ids}; do tr '\\0' ' ' < /proc/$pid/cmdline | grep -qF " $id " && cores={own}; done
  taskset -acp $cores $pid
done > /dev/null 2>&1; true"""


def halves(cores: list[int]) -> tuple[list[int], list[int]]:
    """(a tested server's cores, the others'); the same for both where there is one core only."""
    least = len(cores) // 2
    return (cores[least:], cores[:least]) if least else (cores, cores)


@contextmanager
def pinned(hosts: list):
    """A context for measuring servers of platforms that run on these hosts, all on the same cores. It yields
    a function: given ids of servers, it gives these their own cores, and all other servers the rest."""
    own, rest = halves(hosts[0].cores)
    _on_all(hosts, ALL.format(cores=_listed(rest)))
    try:
        yield partial(_pin, hosts, own, rest)
    finally:
        _on_all(hosts, ALL.format(cores=_listed(hosts[0].cores)))


def _pin(hosts, own, rest, ids) -> None:
    _on_all(hosts, SERVERS.format(qemu=QEMU, ids=" ".join(ids), own=_listed(own), rest=_listed(rest)))


def _on_all(hosts, command) -> None:
    in_parallel(hosts, lambda host: host.run(command))


def _listed(cores) -> str:
    return ",".join(map(str, cores))
