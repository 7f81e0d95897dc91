"""The experiments of the cloud report: functions, boots, and benchmarks on servers of a cloud.

A point's `release` is `older` or `newer`: a system of lab.yml, which is brought up in the lab, or the
user's cloud of this name in the environment file. Both are used through the same API. Releases are
paired: both are up at once, and are measured in turn (turns.py). Points also have `starts` (platforms.py),
`pairs` (slices of each arm) and, where servers are benchmarked, `pinned` (whether tested ones have cores of
their own).
"""

import math
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from labbook import paths
from labbook.errors import SystemFailure
from labbook.lab import Environment, LabDescription
from labbook.papers.cloud_platforms import turns
from labbook.papers.cloud_platforms.boot import boot
from labbook.papers.cloud_platforms.pinning import halves
from labbook.papers.cloud_platforms.platforms import COMPUTE, Platforms, host_sets
from labbook.papers.cloud_platforms.turns import Tested
from labbook.systems.cloud.model import Flavor
from labbook.systems.openstack import containers
from labbook.workloads.clouds.functions import cloud_function
from labbook.workloads.machines import npb as nas
from labbook.workloads.machines import unixbench as style
from labbook.workloads.machines.bonnie_disk import bonnie_disk
from labbook.workloads.machines.machine import Machine

FLAVOR_BY_CORES = {1: "m1.small", 2: "m1.large", 4: "c1.xlarge"}    # the report's table 5
COMPUTE_SITES = ("room", "rack")        # of lab.yml: of the platform, and of its compute hosts
PLATFORM_FACTS = ("platform", "hypervisor", "plumbing", "guest", "volume_way", "client")
BOTH = ("older", "newer")
WARM_SHARE = 0.2        # of a pass of Dhrystone, thrown away: the first seconds of load are unlike the others
FROM_NETWORK = "/mnt"   # where a server has its volume
BUILDING = threading.Lock()


class Experiments:
    """Measures the points of the study's experiments; each method takes one Experiment.

    own: names of the user's clouds among the releases. logs_in_to_own: whether the client's host has a way to their
    servers. programs: {benchmark: command} of benchmarks that the user has built, which replace this book's. InputError
    for an unknown release.
    """

    def __init__(self, study, releases):
        self.study = study
        self.description = LabDescription.load(study.folder / "lab.yml")
        environment = Environment.load(paths.checkout() / study.environment)
        self.own = {cloud.name for cloud in environment.clouds} & {*releases, "newer"}
        self.logs_in_to_own = environment.provider == "ssh"    # a host on this machine reaches its lab alone
        self.programs = environment.programs
        self.platforms = Platforms(self.description)
        for release in set(releases) - self.own:
            self.description.system(release)    # InputError for an unknown one

    # What a grid pairs and omits.

    def in_pairs(self, parameter: str, values) -> dict:
        """Arguments of study.experiment that pair a parameter. Of releases both that lab.yml has are among the
        values, since an arm alone is no pair; those that are not asked for are to be left out."""
        values = list(dict.fromkeys([*values, *(BOTH if parameter == "release" else ())]))
        return {"paired": {parameter: values}, "hosts": host_sets(self.description, values)}

    @staticmethod
    def others(*releases, but=lambda point: False):
        """A grid's `leave_out`: arms of releases that one of these lists lacks, and those for which `but` is true."""
        in_all = set.intersection(*map(set, releases))
        return lambda point: point.release not in in_all or but(point)

    def has_no_node(self, point) -> bool:
        """Whether the point cannot measure the bare node, which is measured once, with the lab's newer cloud."""
        return point.release != "newer" or "newer" in self.own

    def has_no_containers(self, point) -> bool:
        """Whether the point's servers cannot be containers: those of a user's cloud, and any on this machine where its
        control groups do not do."""
        return point.release in self.own or not containers.possible()

    def repeats_another_unixbench(self, point, parameters: dict) -> bool:
        """Whether another point measures the same.

        On one core, "all" copies are one copy. The node runs only as many copies as the largest server
        has cores.
        """
        if point.place == "node" and (self.has_no_node(point) or point.cores != max(parameters["cores"])):
            return True
        return point.cores == 1 and point.copies == "all" and "one" in parameters["copies"]

    def impossible(self, kernel: str, size: str, processes: int) -> bool:
        """Whether a kernel cannot run so many processes: ours may have too few planes for them, and NASA's SP and BT
        need a square number."""
        if "npb" in self.programs:
            return kernel in ("sp", "bt") and math.isqrt(processes) ** 2 != processes
        return processes > nas.most_ranks(kernel, size)

    # The experiments.

    def functions(self, experiment) -> None:
        """Call the point's function of the cloud's client; record whether it works.

        upload_image sends an image of `upload_mib`.
        """
        with tempfile.NamedTemporaryFile(suffix=".raw") as image:
            def prepare(bed, point):
                image.truncate(point.upload_mib << 20)
                bed.testbed.file, bed.testbed.fit = Path(image.name), point.fit
                return Tested(bed)

            self._measure(experiment, prepare, at_once(
                lambda tested, point: cloud_function(point.function, tested.bed.testbed)),
                types=lambda point: {"vm": point.vm, "large": point.large, "seconds": point.seconds_at_most})

    def boot(self, experiment) -> None:
        """Start `at_once` servers by one call; record when each was launched, ran and, where `until` is ssh,
        answered. Where it is running, servers are ended as soon as they run. Optional: rtt_ms, of the link between the
        platform and its compute hosts."""
        def prepare(bed, point):
            bed.testbed.clear()
            if "rtt_ms" in point.params:
                bed.lab.link(*COMPUTE_SITES).shape(rtt_ms=point.rtt_ms)
            if not bed.testbed.cloud.own:
                bed.testbed.flavor = as_large_as_the_image(bed)
            bed.testbed.cached(bed.testbed.cloud.image(f"guest-{point.image_gb:g}gb"), len(bed.lab.role(COMPUTE)) or 1)
            return Tested(bed)

        self._measure(experiment, prepare, at_once(boot), types=lambda point: {"vm": point.vm},
                      vcpus=lambda point: point.at_once, more=lambda tested, point: (placed(tested), {}))

    def unixbench(self, experiment) -> None:
        """Run the twelve tests in one server, or on the bare node. Beside a server of one core of the newer
        release a second one alike is tested, which shows what differs without the releases."""
        program = self.programs.get("unixbench", "")

        def prepare(bed, point):
            if point.place == "node":
                bed.testbed.clear()
                return Tested(bed, machines=self._with_suite([Machine.of(bed.lab.host("node"))]))
            twins = 2 if point.cores == 1 and point.release == "newer" and not program else 1
            bed.testbed.only(twins, bed.testbed.cloud.flavor(FLAVOR_BY_CORES[point.cores]))
            tested = of_servers(bed)
            self._with_suite(tested.machines)
            if twins == 1:
                return tested
            (one, other), (own, others) = tested.servers, tested.machines
            return Tested(bed, [one], [own], twin=Tested(bed, [other], [others]))

        def copies(point):
            return 1 if point.copies == "one" else point.cores

        def warm(tested, point):
            yield from ()
            style.one_pass(tested.machines[0], style.TESTS[0], copies=copies(point), share_of_time=WARM_SHARE)

        def visit(tested, point):
            machine, rows, started = tested.machines[0], [], time.time()
            if program:
                load = style.unixbench_style(machine, copies=copies(point), passes=point.passes, programs=program)
                load.metrics["twin_index_ratio"] = math.nan     # no second server is tested
                return load
            for test in style.TESTS:
                if rows:
                    yield
                rows.append(style.one_pass(machine, test, copies=copies(point), share_of_time=point.share_of_time))
            return style.load_of(rows, started)

        self._measure(experiment, prepare, visit, warm=None if program else warm, vcpus=lambda point: point.cores,
                      more=lambda tested, point: build_facts(style.facts(tested.machines[0].via), "unixbench"))

    def disk(self, experiment) -> None:
        """Run bonnie++ on a server's local disk, on a network volume, or on the node's disk."""
        def prepare(bed, point):
            if point.volume == "node":
                node = bed.lab.host("node")
                return Tested(bed, machines=[Machine.of(node)], folder=str(node.root / "bonnie"))
            server, = bed.testbed.only(1, bed.testbed.flavor)
            if point.volume == "network":
                with_volume(bed, server, -(-2 * point.size_mb // 1024))
            return of_servers(bed, folder="/var/tmp" if point.volume == "local" else FROM_NETWORK)

        self._measure(experiment, prepare, at_once(lambda tested, point: with_version(bonnie_disk(
            tested.machines[0], tested.folder, size_mb=point.size_mb, byte_mb=point.byte_mb, files=point.files,
            seconds_at_most=point.seconds_at_most))), types=lambda point: {"vm": point.vm})

    def shapes(self, experiment) -> None:
        """Run a parallel kernel on `ranks` cores, made of servers of `vm_cores` cores each."""
        def prepare(bed, point):
            return self._with_kernels(bed, point.ranks // point.vm_cores, bed.testbed.flavor)

        self._kernels(experiment, prepare, lambda point: point.ranks,
                      types=lambda point: {"vm": FLAVOR_BY_CORES[point.vm_cores]})

    def scaling(self, experiment) -> None:
        """Run a parallel kernel on `vms` servers of one core and `memory_mb` each, virtual machines or containers."""
        def prepare(bed, point):
            return self._with_kernels(bed, point.vms, one_core(bed, point.memory_mb))

        self._kernels(experiment, prepare, lambda point: point.vms)

    def swapping(self, experiment) -> None:
        """Run MG on servers of one core with an m1.small's memory, or with `enough_mb`. It swaps for minutes, so that
        a run to warm up would take as long and change little."""
        def prepare(bed, point):
            flavor = bed.testbed.flavor if point.memory == "small" else one_core(bed, point.enough_mb)
            return self._with_kernels(bed, point.ranks, flavor)

        self._kernels(experiment, prepare, lambda point: point.ranks, warm=False)

    def latency(self, experiment) -> None:
        """Send messages back and forth between two servers, or between two hosts of the lab."""
        def prepare(bed, point):
            if point.between == "servers":
                bed.testbed.only(2, bed.testbed.flavor)
                tested = of_servers(bed)
            else:
                bed.testbed.clear()
                tested = Tested(bed, machines=[Machine.of(bed.lab.host(name), bed.via) for name in ("node", "client")])
            equipped(tested.machines, nas, "npb/pingpong")
            return tested

        self._measure(experiment, prepare, at_once(
            lambda tested, point: nas.latency(tested.machines, rounds=point.rounds)), vcpus=lambda point: 2)

    # Shared steps.

    def _measure(self, experiment, prepare, visit, *, warm=None, types=None, vcpus=lambda point: 1,
                 more=lambda tested, point: ({}, {})) -> None:
        """Measure each point's arms in turn; see turns.measure. more(tested, point): further metrics and facts."""
        everyone = list(dict.fromkeys(arm for point in experiment.points() for arm in point.arm_values))
        for point in experiment.remaining():
            with self.study.attempt(point) as attempt:
                def after(tested, point):
                    metrics, facts = platform_metrics(tested, vcpus(point), point.params.get("pinned", False))
                    further = more(tested, point)
                    return metrics | further[0], facts | further[1]

                slices, found = turns.measure(attempt, self.platforms, everyone, types(point) if types else {
                    "vm": FLAVOR_BY_CORES[1]}, prepare, visit, after, warm)
                attempt.record_slices(slices, arm_metrics={arm: metrics for arm, (metrics, _) in found.items()},
                                      facts={str(arm): facts for arm, (_, facts) in found.items()})

    def _kernels(self, experiment, prepare, processes, types=None, warm=True) -> None:
        """Run the point's kernel on all servers in each slice; in new servers once before, where `warm` is true."""
        def once(tested, point, timed_s=0.0):
            return nas.npb(tested.machines, kernel=point.kernel, size=point.size, ranks=processes(point),
                           timed_s=timed_s, programs=self.programs.get("npb", ""),
                           seconds_at_most=point.seconds_at_most)

        def run(tested, point):
            return once(tested, point, point.params.get("timed_s", 0.0))

        def more(tested, point):
            via = tested.machines[0].via
            metrics, facts = build_facts(nas.facts(via), "npb")
            return metrics | placed(tested) | {"mpi": via.run("mpirun --version | head -1").stdout.strip()}, facts

        self._measure(experiment, prepare, at_once(run), warm=at_once(once) if warm else None, types=types,
                      vcpus=processes, more=more)

    def _with_suite(self, machines):
        return machines if "unixbench" in self.programs else equipped(machines, style, "unixbench/unixbench_style")

    def _with_kernels(self, bed, servers: int, flavor) -> Tested:
        bed.testbed.only(servers, flavor)
        tested = of_servers(bed)
        if "npb" not in self.programs:
            equipped(tested.machines, nas, "npb/ep")
        return tested


def at_once(measure):
    """A visit that is one step: `measure(tested, point)` returns what it measured."""
    def visit(tested, point):
        yield from ()
        return measure(tested, point)

    return visit


def of_servers(bed, folder: str = "") -> Tested:
    """All servers that the bed keeps."""
    servers = list(bed.testbed.standing)
    return Tested(bed, servers, [bed.testbed.reach(one) for one in servers], folder)


def build_facts(built: dict, name: str) -> tuple[dict, dict]:
    """(metrics, facts) of what was compiled."""
    return {"compiler": built.get(f"{name}_compiler", "not reported")}, built


def with_version(load):
    """The Load of a bonnie++, with its version among the metrics."""
    load.metrics["bonnie"] = load.csv.split(",")[1]
    return load


def with_volume(bed, server, size_gb: int) -> None:
    """Attach a volume to the server, with a file system, once."""
    testbed = bed.testbed
    if bed.mounted == server.id:
        return
    before = testbed.disks(server)
    volume = testbed.cloud.create_volume(size_gb)
    testbed.cloud.attach(server, volume)
    device = testbed.new_disk(server, before)
    if device is None:
        raise SystemFailure(f"{server.name} sees no disk of the volume that was attached to it")
    testbed.ask(server, f"mkfs.ext4 -qF /dev/{device} && mkdir -p {FROM_NETWORK} && "
                        f"mount /dev/{device} {FROM_NETWORK}", timeout=300)
    bed.mounted = server.id


def placed(tested) -> dict:
    """How many servers there are, and how many of them the fullest of the cloud's machines has."""
    most = max(servers_by_machine(tested.servers).values(), default=len(tested.servers))
    return {"servers": float(len(tested.servers)), "most_on_a_machine": float(most)}


def servers_by_machine(servers) -> Counter:
    """Number of servers on each of the cloud's machines; servers of unknown machines are omitted."""
    return Counter(one.host for one in servers if one.host)


def platform_metrics(tested, vcpus=1, pinned=False) -> tuple[dict, dict]:
    """Metrics of the platform, which claims' `needs` refer to, and the cloud's facts.

    vcpus: processors of all measured servers together. pinned: whether these had cores of their own, as many as
    own_cores says. Defaults for facts that a cloud does not report: accelerated guests, its own network
    plumbing, and one core for each vcpu. OpenStack's API reboots one server a call.
    """
    bed = tested.bed
    facts = bed.testbed.cloud.facts()
    all_cores = facts.get("cores")
    is_pinned = pinned and tested.servers and bed.hosts and bed.hosts[0].cores      # the bare node has all cores
    own = len(halves(bed.hosts[0].cores)[0]) if is_pinned else 0
    cores = own or all_cores
    machines = max(facts.get("compute_machines", 1), len(servers_by_machine([*bed.testbed.standing, *tested.servers])))
    return {"accelerated": float(facts.get("accelerated", True)),
            "own_plumbing": float(facts.get("own_plumbing", True)),
            "reboots_in_one_call": float(facts.get("api") != "openstack"),
            "client_versions": 2.0 if facts.get("other_client") else 1.0,
            "compute_machines": float(machines),
            "cores_per_vcpu": cores / vcpus if cores else 1.0,
            "machine_cores": float(all_cores or max(FLAVOR_BY_CORES)), "own_cores": float(own),
            "disk_modelled": float(any("model" in ((host.limits or {}).get("disk") or {}) for host in bed.hosts)),
            **{name: str(facts.get(name, "not reported")) for name in PLATFORM_FACTS}}, facts


def equipped(machines, benchmark, program):
    """The machines, after installing the benchmark's program where it is missing.

    It is compiled on the host from which the machines are reached, then copied.
    """
    unequipped = [one for one in machines if one.run(f"test -x {one.folder}/{program}", check=False).exit_code]
    if unequipped:
        with BUILDING:      # both releases' servers may be equipped at once, from one host
            benchmark.build(unequipped[0].via)
    for one in unequipped:
        if not one.here:
            one.send(one.via.root / "benchmarks", one.folder)
    return machines


def as_large_as_the_image(bed):
    """The testbed's type with the image's disk in the place of one of its own, so that no copy is enlarged."""
    testbed = bed.testbed
    size = testbed.flavor
    name = f"{size.name}-image"
    if name not in bed.types:
        bed.types[name] = testbed.cloud.make_flavor(Flavor("", name, size.cores, size.memory_mb))
    return bed.types[name]


def one_core(bed, memory_mb):
    """A server type with one core and `memory_mb`; the `scaling` type of the user's cloud, if defined."""
    testbed = bed.testbed
    if memory_mb not in bed.types:
        own = testbed.cloud.own
        bed.types[memory_mb] = testbed.cloud.flavor("scaling") if own and "scaling" in own.flavors else (
            testbed.cloud.make_flavor(Flavor("", f"scaling-{memory_mb}", 1, memory_mb, testbed.flavor.disk_gb)))
    return bed.types[memory_mb]
