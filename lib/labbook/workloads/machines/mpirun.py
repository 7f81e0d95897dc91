"""Run MPI programs on machines: mpirun's command line, and the program's output."""

import ipaddress
import json
import shlex
from contextlib import suppress

from labbook.errors import InputError, LabError, SystemFailure
from labbook.workloads.machines.machine import GRACE_SECONDS, Machine, output_of, run_on_all

# TCP between machines and shared memory within one; by default it tries other networks first. Processes
# that wait yield the core, since machines may share cores.
ALWAYS = ["--allow-run-as-root", "--bind-to", "none", "--map-by", "slot",
          "--mca", "pml", "ob1", "--mca", "btl", "self,vader,tcp",
          "--mca", "mpi_yield_when_idle", "1"]
SHARED = ("via", "folder")
VERSION = "mpirun --version | head -n 1"
SHARED_LOGIN = ("user", "key", "known_hosts")     # of machines that are reached over ssh


def run(machines, ranks: int, command: list[str], seconds: float, what: str) -> str:
    """Run an MPI program: its output and mpirun's. `command`: the program and its arguments.

    Ranks are spread evenly, consecutive ones together. On one machine mpirun runs there, and a single
    process runs without it; for several, mpirun runs on the host from which they are reached, and
    starts the ranks over ssh. SystemFailure when it fails or takes too long; LabError instead when
    the machines' versions of Open MPI differ.
    """
    check(machines, ranks)
    name = f"mpi-{machines[0].name}"
    if len(machines) == 1:
        command_line = command if ranks == 1 else [*on_one(ranks), *command]
        return machines[0].finish(name, shlex.join(command_line), seconds, what)
    subnet = common_network([machine.data or machine.address for machine in machines], machines[0].via)
    command_line = ["timeout", "-k", str(GRACE_SECONDS), f"{seconds + GRACE_SECONDS:g}",
                    *on_several(machines, ranks, subnet), *command]
    try:
        return output_of(machines[0].via, name, shlex.join(command_line), seconds, what)
    except SystemFailure:
        versions = _versions(machines)
        if len(versions) > 1:
            raise LabError(f"{what} failed, and the versions of Open MPI differ: {', '.join(versions)}",
                           remedy=f"Install the same on {machines[0].via.name} and on its machines") from None
        raise


def _versions(machines) -> list[str]:
    """The versions of Open MPI on the machines and on the host that reaches them, each once; none when
    they cannot be asked."""
    via = machines[0].via
    with suppress(LabError):
        return sorted(set(run_on_all([Machine(via.name, via, via.address), *_away(machines)], VERSION)))
    return []


def on_one(ranks: int) -> list[str]:
    return ["mpirun", *ALWAYS, "--oversubscribe", "-np", str(ranks)]


def on_several(machines, ranks: int, subnet: str) -> list[str]:
    each = ranks // len(machines)
    return ["mpirun", *ALWAYS, "-np", str(ranks),
            "--host", ",".join(f"{machine.address}:{each}" for machine in machines),
            "--mca", "btl_tcp_if_include", subnet, "--mca", "oob_tcp_if_include", subnet,
            "--mca", "plm_rsh_no_tree_spawn", "1",      # they have no keys for each other
            "--mca", "plm_rsh_args", " ".join(_away(machines)[0].ssh_options())]


def check(machines, ranks: int) -> None:
    if not machines:
        raise InputError("no machines", key="machines", allowed="one or more")
    if ranks < 1 or ranks % len(machines):
        raise InputError(f"{ranks!r} ranks on {len(machines)} machines", key="ranks",
                         allowed=f"a multiple of {len(machines)}")
    if len({machine.address for machine in machines}) < len(machines):
        raise InputError("two machines have one address", key="machines")
    for name, where in [*((name, machines) for name in SHARED),
                        *((name, _away(machines)) for name in SHARED_LOGIN)]:
        if len({str(getattr(machine, name)) for machine in where}) > 1:
            raise InputError(f"machines of one run must have the same {name}", key="machines")


def _away(machines) -> list:
    return [machine for machine in machines if not machine.here]


def common_network(addresses, host) -> str:
    """The network (a.b.c.d/n) of one of the host's interfaces that has all these addresses."""
    listed = host.run("ip -o -4 addr show").stdout
    found = network_of(addresses, listed)
    if found is None:
        raise LabError(f"{host.name} has no interface in the network of {', '.join(addresses)}, so "
                       "mpirun there and the ranks could not talk")
    return found


def network_of(addresses, listed: str) -> str | None:
    """From the output of `ip -o -4 addr show`: the narrowest network with all the addresses."""
    fields = [line.split() for line in listed.splitlines()]
    networks = {ipaddress.ip_interface(line[line.index("inet") + 1]).network
                for line in fields if "inet" in line}
    holding = [network for network in networks
               if all(ipaddress.ip_address(a) in network for a in addresses)]
    return str(max(holding, key=lambda network: network.prefixlen)) if holding else None


def parse(output: str, what: str) -> dict:
    """The program's line of JSON among the output; SystemFailure without one."""
    for line in output.splitlines():
        if line.startswith("{"):
            try:
                return json.loads(line)
            except ValueError:
                continue
    raise SystemFailure(f"{what} printed no results", log=output[-2000:])
