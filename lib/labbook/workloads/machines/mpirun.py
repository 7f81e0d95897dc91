"""MPI programs over machines: what mpirun is told, and what the program says."""

import ipaddress
import json
import shlex
from contextlib import suppress

from labbook.errors import InputError, LabError, SystemFailure
from labbook.workloads.machines.machine import GRACE_SECONDS, Machine, finished, run_on_all

# Ethernet between machines and memory within one; else it looks for other networks first. A process that
# waits lets others go on, since machines may share cores.
ALWAYS = ["--allow-run-as-root", "--bind-to", "none", "--map-by", "slot",
          "--mca", "pml", "ob1", "--mca", "btl", "self,vader,tcp",
          "--mca", "mpi_yield_when_idle", "1"]
SHARED = ("via", "folder")
VERSION = "mpirun --version | head -n 1"
SHARED_WAY = ("user", "key", "known_hosts")     # of those that are reached over ssh


def run(machines, ranks: int, command: list[str], seconds: float, what: str) -> str:
    """All that an MPI program and mpirun said; `command` is the program and its words.

    Ranks are spread evenly, neighbours together. One machine runs its mpirun itself, one process
    does without; for several, mpirun runs on the host from which they are reached, and starts
    them there over ssh. SystemFailure when it fails or takes too long; LabError, if so, where Open MPI
    is not the same everywhere.
    """
    check(machines, ranks)
    name = f"mpi-{machines[0].name}"
    if len(machines) == 1:
        words = command if ranks == 1 else [*words_at_one(ranks), *command]
        return machines[0].finish(name, shlex.join(words), seconds, what)
    subnet = common_network([machine.data or machine.address for machine in machines], machines[0].via)
    words = ["timeout", "-k", str(GRACE_SECONDS), f"{seconds + GRACE_SECONDS:g}",
             *words_at_several(machines, ranks, subnet), *command]
    try:
        return finished(machines[0].via, name, shlex.join(words), seconds, what)
    except SystemFailure:
        versions = _versions(machines)
        if len(versions) > 1:
            raise LabError(f"{what} failed, and Open MPI is not the same on all: {', '.join(versions)}",
                           remedy=f"Have the same one on {machines[0].via.name} and in its machines") from None
        raise


def _versions(machines) -> list[str]:
    """Of Open MPI in machines and on the host that reaches them, each once; none when that cannot be asked,
    since what went wrong first is what must be told."""
    via = machines[0].via
    with suppress(LabError):
        return sorted(set(run_on_all([Machine(via.name, via, via.address), *_away(machines)], VERSION)))
    return []


def words_at_one(ranks: int) -> list[str]:
    return ["mpirun", *ALWAYS, "--oversubscribe", "-np", str(ranks)]


def words_at_several(machines, ranks: int, subnet: str) -> list[str]:
    each = ranks // len(machines)
    return ["mpirun", *ALWAYS, "-np", str(ranks),
            "--host", ",".join(f"{machine.address}:{each}" for machine in machines),
            "--mca", "btl_tcp_if_include", subnet, "--mca", "oob_tcp_if_include", subnet,
            "--mca", "plm_rsh_no_tree_spawn", "1",      # they have no keys for one another
            "--mca", "plm_rsh_args", " ".join(_away(machines)[0].ssh_options())]


def check(machines, ranks: int) -> None:
    if not machines:
        raise InputError("no machine to run on", key="machines", allowed="one or more")
    if ranks < 1 or ranks % len(machines):
        raise InputError(f"{ranks!r} ranks on {len(machines)} machines", key="ranks",
                         allowed=f"a multiple of {len(machines)}")
    if len({machine.address for machine in machines}) < len(machines):
        raise InputError("a machine is named twice", key="machines")
    for name, where in [*((name, machines) for name in SHARED),
                        *((name, _away(machines)) for name in SHARED_WAY)]:
        if len({str(getattr(machine, name)) for machine in where}) > 1:
            raise InputError(f"machines that run together have more than one {name}", key="machines")


def _away(machines) -> list:
    return [machine for machine in machines if not machine.here]


def common_network(addresses, host) -> str:
    """The network of one of the host's interfaces in which all these addresses lie: a.b.c.d/n."""
    listed = host.run("ip -o -4 addr show").stdout
    found = network_of(addresses, listed)
    if found is None:
        raise LabError(f"{host.name} has no interface in the network of {', '.join(addresses)}, so "
                       "mpirun there and the ranks could not talk")
    return found


def network_of(addresses, listed: str) -> str | None:
    """From what `ip -o -4 addr show` says: the narrowest network that holds all the addresses."""
    words = [line.split() for line in listed.splitlines()]
    networks = {ipaddress.ip_interface(line[line.index("inet") + 1]).network
                for line in words if "inet" in line}
    holding = [network for network in networks
               if all(ipaddress.ip_address(a) in network for a in addresses)]
    return str(max(holding, key=lambda network: network.prefixlen)) if holding else None


def parse(said: str, what: str) -> dict:
    """The program's line of JSON among what was said; SystemFailure without one."""
    for line in said.splitlines():
        if line.startswith("{"):
            try:
                return json.loads(line)
            except ValueError:
                continue
    raise SystemFailure(f"{what} told nothing", log=said[-2000:])
