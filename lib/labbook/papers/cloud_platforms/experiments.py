"""The experiments of the cloud report: functions, boots, and benchmarks on servers of a cloud.

A point's `release` is `older` or `newer`: a system of lab.yml, which is brought up in the lab, or the
user's cloud of this name in the environment file. Both are used through the same API.
"""

import math
import tempfile
from collections import Counter
from pathlib import Path

from labbook import paths
from labbook.lab import Environment, LabDescription
from labbook.papers.cloud_platforms.boot import boot_metrics, boot_rows
from labbook.systems.cloud.model import Flavor
from labbook.systems.cloud.user_cloud import own_cloud
from labbook.systems.openstack.lab_cloud import OpenStack
from labbook.workloads.clouds.functions import cloud_function
from labbook.workloads.clouds.guests import Guests
from labbook.workloads.clouds.testbed import Testbed
from labbook.workloads.machines import npb as nas
from labbook.workloads.machines import unixbench as style
from labbook.workloads.machines.bonnie_disk import bonnie_disk
from labbook.workloads.machines.machine import Machine

FLAVOR_BY_CORES = {1: "m1.small", 2: "m1.large", 4: "c1.xlarge"}    # the report's table 5
PLATFORM_FACTS = ("platform", "hypervisor", "plumbing", "guest", "volume_way", "client")


class Experiments:
    """Measures the points of the study's experiments; each method takes one Experiment.

    own: names of the user's clouds among the releases. programs: {benchmark: command} of benchmarks
    that the user has built, which replace this book's. InputError for an unknown release.
    """

    def __init__(self, study, releases):
        self.study = study
        self.description = LabDescription.load(study.folder / "lab.yml")
        environment = Environment.load(paths.checkout() / study.environment)
        self.own = {cloud.name for cloud in environment.clouds} & {*releases, "newer"}
        self.programs = environment.programs
        for release in set(releases) - self.own:
            self.description.system(release)    # InputError for an unknown one

    # Points that a grid omits.

    def has_no_node(self, point) -> bool:
        """Whether the point cannot measure the bare node, which is measured once, with the lab's newer cloud."""
        return point.release != "newer" or "newer" in self.own

    def repeats_another_unixbench(self, point, parameters: dict) -> bool:
        """Whether another point measures the same.

        On one core, "all" copies are one copy. The node runs only as many copies as the largest server
        has cores.
        """
        if point.place == "node" and (self.has_no_node(point) or point.cores != max(parameters["cores"])):
            return True
        return point.cores == 1 and point.copies == "all" and "one" in parameters["copies"]

    @staticmethod
    def impossible(kernel: str, processes: int) -> bool:
        """Whether a kernel cannot run so many processes: NASA's SP and BT need a square number."""
        return kernel in ("sp", "bt") and math.isqrt(processes) ** 2 != processes

    # The experiments.

    def functions(self, experiment) -> None:
        """Call the point's function of the cloud's client; record whether it works.

        upload_image sends an image of `upload_mib`.
        """
        with tempfile.NamedTemporaryFile(suffix=".raw") as image:
            for point in experiment.remaining():
                image.truncate(point.upload_mib << 20)
                with self.study.attempt(point) as attempt:
                    testbed = self._testbed(attempt, point.vm, point.large, point.seconds_at_most)
                    testbed.file, testbed.fit = Path(image.name), point.fit
                    load = cloud_function(point.function, testbed)
                    self._record(attempt, testbed, load.rows, load.metrics)

    def boot(self, experiment) -> None:
        """Start `at_once` servers by one call; record when each was launched, ran and answered ssh."""
        for point in experiment.remaining():
            with self.study.attempt(point) as attempt:
                testbed = self._testbed(attempt, point.vm)
                cloud, seconds = testbed.cloud, point.seconds_at_most
                image = cloud.image(f"guest-{point.image_gb:g}gb")
                testbed.cached(image)
                servers = cloud.run(point.at_once, image, testbed.flavor, testbed.key)
                cloud.await_running(servers, seconds)
                running = [one for one in servers if "running" in one.moments]
                cloud.await_answers(running, testbed.dial, seconds)
                if not any("answers" in one.moments for one in servers):    # raise, since the image does not boot
                    cloud.require_running(servers)
                    cloud.require_answers(servers)
                moments = [one.moments for one in servers]
                cloud.terminate(servers)
                self._record(attempt, testbed, boot_rows(moments), boot_metrics(moments, point.at_once),
                             vcpus=point.at_once, servers=servers)

    def unixbench(self, experiment) -> None:
        """Run the twelve tests in one server, or on the bare node."""
        for point in experiment.remaining():
            with self.study.attempt(point) as attempt:
                testbed = self._testbed(attempt, FLAVOR_BY_CORES[1])
                if point.place == "vm":
                    flavor = testbed.cloud.flavor(FLAVOR_BY_CORES[point.cores])
                    tested = testbed.reach(*testbed.only(1, flavor))
                else:
                    testbed.clear()
                    tested = Machine.of(attempt.lab.host("node"))
                program = self.programs.get("unixbench", "")
                if not program:
                    equipped([tested], style, "unixbench/unixbench_style")
                load = style.unixbench_style(
                    tested, copies=1 if point.copies == "one" else point.cores, passes=point.passes,
                    share_of_time=point.share_of_time, programs=program)
                built = style.facts(tested.via)
                compiler = {"compiler": built.get("unixbench_compiler", "not reported")}
                self._record(attempt, testbed, load.rows, load.metrics | compiler, facts=built,
                             vcpus=point.cores)

    def disk(self, experiment) -> None:
        """Run bonnie++ on a server's local disk, on a network volume, or on the node's disk."""
        for point in experiment.remaining():
            with self.study.attempt(point) as attempt:
                testbed = self._testbed(attempt, point.vm)
                tested, folder = self._disk_of(attempt, testbed)
                load = bonnie_disk(tested, folder, size_mb=point.size_mb, byte_mb=point.byte_mb,
                                   files=point.files, seconds_at_most=point.seconds_at_most)
                testbed.clear()
                version = {"bonnie": load.csv.split(",")[1]}
                self._record(attempt, testbed, load.rows, load.metrics | version)

    def shapes(self, experiment) -> None:
        """Run a parallel kernel on `ranks` cores, made of servers of `vm_cores` cores each."""
        for point in experiment.remaining():
            with self.study.attempt(point) as attempt:
                testbed = self._testbed(attempt, FLAVOR_BY_CORES[point.vm_cores])
                testbed.only(point.ranks // point.vm_cores, testbed.flavor)
                self._kernel(attempt, testbed, point.ranks)

    def scaling(self, experiment) -> None:
        """Run a parallel kernel on `vms` servers of one core and `memory_mb` each."""
        for point in experiment.remaining():
            with self.study.attempt(point) as attempt:
                testbed = self._testbed(attempt, FLAVOR_BY_CORES[1])
                if not testbed.standing:
                    testbed.only(point.vms, one_core(testbed, point.memory_mb))
                self._kernel(attempt, testbed, point.vms)

    def swapping(self, experiment) -> None:
        """Run MG on servers of one core with an m1.small's memory, or with `enough_mb`."""
        for point in experiment.remaining():
            with self.study.attempt(point) as attempt:
                testbed = self._testbed(attempt, FLAVOR_BY_CORES[1])
                small = point.memory == "small"
                flavor = testbed.flavor if small else one_core(testbed, point.enough_mb)
                testbed.only(point.ranks, flavor)
                self._kernel(attempt, testbed, point.ranks)

    def latency(self, experiment) -> None:
        """Send messages back and forth between two servers, or between two hosts of the lab."""
        for point in experiment.remaining():
            with self.study.attempt(point) as attempt:
                testbed = self._testbed(attempt, FLAVOR_BY_CORES[1])
                if point.between == "servers":
                    pair = [testbed.reach(one) for one in testbed.only(2, testbed.flavor)]
                else:
                    testbed.clear()
                    one, other, via = (attempt.lab.host(name) for name in ("node", "client", "cloud"))
                    pair = [Machine.of(one, via), Machine.of(other, via)]
                load = nas.latency(equipped(pair, nas, "npb/pingpong"), rounds=point.rounds)
                self._record(attempt, testbed, load.rows, load.metrics, vcpus=2)

    # Shared steps.

    def _testbed(self, attempt, vm, large=None, seconds=None):
        """The Testbed of the point's cloud, whose servers are of type `vm` and are reached by ssh."""
        point = attempt.point

        def make(lab):
            cloud, via = self._cloud(lab, point)
            path, public = ssh_key(via)
            limit = {} if seconds is None else {"seconds": seconds}
            return Testbed(cloud, cloud.image("guest"), cloud.flavor(vm), cloud.make_key(public),
                          Guests(cloud, via, path).reach, via.dial, large=large and cloud.flavor(large), **limit)

        return attempt.setup(make)

    def _cloud(self, lab, point):
        """The point's cloud, and the lab's host from which its servers are reached."""
        if point.release in lab.clouds:
            return own_cloud(lab, point.release), lab.role("client")[0]
        _, settings = self.description.system(point.release)
        system = OpenStack(list(lab.hosts.values()), **settings, cache_mode=point.cache_mode)
        return system.up().cloud, lab.host("cloud")

    @staticmethod
    def _disk_of(attempt, testbed):
        """The machine that the point's disk belongs to, and a folder on that disk."""
        point = attempt.point
        if point.volume == "node":
            node = attempt.lab.host("node")
            return Machine.of(node), str(node.root / "bonnie")
        server, = testbed.only(1, testbed.flavor)
        if point.volume == "local":
            return testbed.reach(server), "/var/tmp"
        before = testbed.disks(server)
        volume = testbed.cloud.create_volume(-(-2 * point.size_mb // 1024))
        testbed.cloud.attach(server, volume)
        device = testbed.new_disk(server, before)
        testbed.ask(server, f"mkfs.ext4 -qF /dev/{device} && mkdir -p /mnt && mount /dev/{device} /mnt",
                    timeout=300)
        return testbed.reach(server), "/mnt"

    def _kernel(self, attempt, testbed, processes):
        """Run the point's kernel on all servers of the testbed, and record it."""
        point, program = attempt.point, self.programs.get("npb", "")
        machines = [testbed.reach(one) for one in testbed.standing]
        if not program:
            equipped(machines, nas, "npb/ep")
        load = nas.npb(machines, kernel=point.kernel, size=point.size, ranks=processes, programs=program,
                       seconds_at_most=point.seconds_at_most)
        via = machines[0].via
        built, mpi = nas.facts(via), via.run("mpirun --version | head -1").stdout.strip()
        most = max(servers_by_machine(testbed.standing).values(), default=len(testbed.standing))
        self._record(attempt, testbed, load.rows, load.metrics | {
            "compiler": built.get("npb_compiler", "not reported"), "mpi": mpi,
            "most_on_a_machine": float(most)}, facts=built, vcpus=processes)

    @staticmethod
    def _record(attempt, testbed, rows, metrics, facts=None, vcpus=1, servers=()):
        known, cloud_facts = platform_metrics(testbed, vcpus, servers)
        attempt.record(rows, metrics | known, facts=cloud_facts | (facts or {}))


def ssh_key(via) -> tuple[str, str]:
    """Path on `via` of the private key by which it reaches servers (made once), and the public key."""
    path = via.root / "servers" / "key"
    via.run(f"mkdir -p {path.parent} && test -f {path} || ssh-keygen -q -t ed25519 -N '' -f {path}")
    return str(path), via.run(f"cat {path}.pub").stdout


def servers_by_machine(servers) -> Counter:
    """Number of servers on each of the cloud's machines; servers of unknown machines are omitted."""
    return Counter(one.host for one in servers if one.host)


def platform_metrics(testbed, vcpus=1, servers=()) -> tuple[dict, dict]:
    """Metrics of the platform, which claims' `needs` refer to, and the cloud's facts.

    vcpus: processors of all measured servers together. servers: measured servers that the testbed does
    not hold. Defaults for facts that a cloud does not report: accelerated guests, its own network
    plumbing, and one core for each vcpu.
    """
    facts = testbed.cloud.facts()
    cores = facts.get("cores")
    machines = max(facts.get("compute_machines", 1), len(servers_by_machine([*testbed.standing, *servers])))
    return {"accelerated": float(facts.get("accelerated", True)),
            "own_plumbing": float(facts.get("own_plumbing", True)),
            "compute_machines": float(machines),
            "cores_per_vcpu": cores / vcpus if cores else 1.0,
            "machine_cores": float(cores or max(FLAVOR_BY_CORES)),
            **{name: str(facts.get(name, "not reported")) for name in PLATFORM_FACTS}}, facts


def equipped(machines, benchmark, program):
    """The machines, after installing the benchmark's program where it is missing.

    It is compiled on the host from which the machines are reached, then copied.
    """
    lacking = [one for one in machines if one.run(f"test -x {one.folder}/{program}", check=False).exit_code]
    if lacking:
        benchmark.build(lacking[0].via)
    for one in lacking:
        if not one.here:
            one.send(one.via.root / "benchmarks", one.folder)
    return machines


def one_core(testbed, memory_mb):
    """A server type with one core and `memory_mb`; the `scaling` type of the user's cloud, if defined."""
    own = testbed.cloud.own
    if own and "scaling" in own.flavors:
        return testbed.cloud.flavor("scaling")
    return testbed.cloud.make_flavor(Flavor("", "scaling", 1, memory_mb, testbed.flavor.disk_gb))
