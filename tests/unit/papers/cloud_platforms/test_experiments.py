from contextlib import contextmanager
from copy import deepcopy
from types import SimpleNamespace

import pandas as pd
import pytest
from paper_stand_ins import StandIn, point

from labbook import paths
from labbook.errors import InputError
from labbook.papers.cloud_platforms import experiments, figures, parameters
from labbook.papers.cloud_platforms.experiments import Experiments
from labbook.papers.cloud_platforms.platforms import Bed
from labbook.papers.cloud_platforms.turns import Tested
from labbook.systems.cloud.model import Flavor
from labbook.systems.openstack import containers

GROUPS = {
    "functions": dict(function=["quota"], releases=["newer"], vm="m1.small", large="m1.large"),
    "boot": dict(vm="m1.small", image_gb=[0.5], at_once=[1], until="ssh", pairs=1, repeats=1),
    "unixbench": dict(repeats=1, pairs=2, place=["vm", "node"], cores=[1, 4], copies=["one", "all"], share_of_time=0.1),
    "disk": dict(volume=["local"], vm="m1.small", files=1, pairs=1, size_mb=256),
    "caching": dict(cache_mode=["none"]),
    "shapes": dict(kernel=["cg"], size="S", releases=["newer"], vm_cores=[1], ranks=2, pairs=2, seconds_at_most=60.0),
    "applications": dict(kernel=["lu"], size="S", vm_cores=[1], ranks=4, pairs=2),
    "own_network": dict(kernel=["cg"], size="S", vm_cores=[1], ranks=4, pairs=2, network="ovs", timed_s=5.0,
                        seconds_at_most=60.0),
    "scaling": dict(vms=[2, 4], timed_s=5.0),
    "latency": dict(network="ovs", pairs=2),
    "compute_hosts": dict(release="newer", vm="m1.small", image_gb=[0.5]),
    "swapping": dict(size="A"),
    "containers": dict(kernel=["ep"], size="S", vm="m1.small", image_gb=[0.5], pairs=2, timed_s=5.0,
                       seconds_at_most=60.0),
}


def changed(group, **entries):
    found = deepcopy(GROUPS)
    found[group] |= entries
    return found


@pytest.fixture
def measure():
    study = StandIn(lab=None, folder=paths.papers("cloud_platforms"))
    study.environment = "environments/local.yml"
    return Experiments(study, ["older", "newer"])


class Cloud:
    own = None

    def __init__(self, **facts):
        self._facts = facts

    def facts(self):
        return self._facts


def servers_on(cloud, *machines, cores=None):
    """A Tested of servers on these machines of the cloud, whose platform is on a host with these cores."""
    servers = [SimpleNamespace(host=name, id=f"id-{i}") for i, name in enumerate(machines)]
    hosts = [SimpleNamespace(name="cloud", cores=cores, limits={})] if cores else []
    bed = Bed(SimpleNamespace(cloud=cloud, standing=servers, clear=lambda: None), None, None, hosts)
    return Tested(bed, servers)


def test_an_unknown_release_is_refused_before_a_lab():
    study = StandIn(lab=None, folder=paths.papers("cloud_platforms"))
    study.environment = "environments/local.yml"
    with pytest.raises(InputError, match="oldest"):
        Experiments(study, ["oldest"])


@pytest.mark.parametrize("group, entries, key", [
    ("functions", dict(function=["quota", "fly"]), "functions.function"),
    ("functions", dict(function=["run_all"], large="m1.large", fit=3), "functions.fit"),    # eight fit
    ("boot", dict(image_gb=[3]), "boot.image_gb"),
    ("boot", dict(image_gb=[2], at_once=[1, 12]), "boot.at_once"),      # with the images more than a platform's disk
    ("unixbench", dict(cores=[3]), "unixbench.cores"),
    ("disk", dict(files=-1), "disk.files"),
    ("disk", dict(size_mb=255), "disk.size_mb"),            # twice an m1.small's memory is more
    ("disk", dict(vm="m1.large"), "disk.size_mb"),
    ("disk", dict(volume=["local", "node"]), "disk.size_mb"),       # twice the bare node's memory is more
    ("boot", dict(until="login"), "boot.until"),
    ("shapes", dict(pairs=0), "shapes.pairs"),
    ("caching", dict(cache_mode=["sometimes"]), "caching.cache_mode"),
    ("shapes", dict(kernel=["ua"]), "shapes.kernel"),
    ("applications", dict(size="D"), "applications.size"),
    ("shapes", dict(vm_cores=[1, 4], ranks=2), "shapes.ranks"),
    ("applications", dict(vm_cores=[1, 4], ranks=2), "applications.ranks"),
    ("own_network", dict(network="vlan"), "own_network.network"),
    ("latency", dict(network=None), "latency.network"),
    ("compute_hosts", dict(release="newest"), "compute_hosts.release"),
    ("compute_hosts", dict(image_gb=[20]), "compute_hosts.image_gb"),
    ("swapping", dict(size="S"), "swapping.size"),
    ("scaling", dict(vms=[3]), "scaling.vms"),
    ("scaling", dict(timed_s=-1.0), "scaling.timed_s"),
    ("scaling", dict(timed_s=60.0), "scaling.timed_s"),     # as long as a run may take at most
    ("own_network", dict(timed_s=60.0), "own_network.timed_s"),
    ("containers", dict(timed_s=60.0), "containers.timed_s"),
    ("containers", dict(kernel=["ua"]), "containers.kernel"),
    ("containers", dict(pairs=0), "containers.pairs"),
])
def test_what_cannot_be_measured_is_refused_by_its_key(measure, group, entries, key):
    with pytest.raises(InputError) as refused:
        parameters.check(measure, ["older", "newer"], "none", "one", changed(group, **entries))
    assert refused.value.key == key


def test_the_users_own_builds_have_their_own_time(measure):
    measure.programs = {"npb": "/opt/npb", "unixbench": "/opt/unixbench"}
    parameters.check(measure, ["newer"], "none", "one", changed("unixbench", share_of_time=1))
    with pytest.raises(InputError) as refused:
        parameters.check(measure, ["newer"], "none", "one", GROUPS)
    assert refused.value.key == "unixbench.share_of_time"


def test_the_bare_machine_is_measured_once_and_never_beside_the_users_cloud(measure):
    assert measure.has_no_node(point(release="older"))
    assert not measure.has_no_node(point(release="newer"))
    measure.own = {"newer"}
    assert measure.has_no_node(point(release="newer"))


def test_containers_are_left_out_of_the_users_cloud_and_where_the_machine_has_no_groups_for_them(measure, monkeypatch):
    monkeypatch.setattr(containers, "possible", lambda: True)
    assert not measure.has_no_containers(point(release="newer"))
    measure.own = {"newer"}
    assert measure.has_no_containers(point(release="newer")) and not measure.has_no_containers(point(release="older"))
    monkeypatch.setattr(containers, "possible", lambda: False)
    assert measure.has_no_containers(point(release="older"))


@pytest.mark.parametrize("place, cores, copies, left_out", [
    ("vm", 1, "all", True), ("vm", 1, "one", False), ("vm", 4, "all", False),
    ("node", 1, "one", True), ("node", 4, "all", False)])
def test_no_unixbench_is_measured_twice(measure, place, cores, copies, left_out):
    one = point(release="newer", place=place, cores=cores, copies=copies)
    assert measure.repeats_another_unixbench(one, GROUPS["unixbench"]) is left_out


@pytest.mark.parametrize("kernel, processes, impossible", [
    ("sp", 2, True), ("bt", 8, True), ("bt", 4, False), ("cg", 2, False)])
def test_nasas_sp_and_bt_take_square_numbers_of_processes(measure, kernel, processes, impossible):
    measure.programs = {"npb": "/opt/npb"}
    assert measure.impossible(kernel, "S", processes) is impossible


@pytest.mark.parametrize("kernel, size, processes, impossible", [
    ("sp", "S", 2, False), ("bt", "S", 8, True), ("bt", "W", 8, False), ("lu", "W", 16, False), ("cg", "S", 16, False)])
def test_our_own_take_two_planes_a_process(measure, kernel, size, processes, impossible):
    assert measure.impossible(kernel, size, processes) is impossible


def test_what_a_claim_asks_of_the_place_comes_from_the_clouds_facts():
    cloud = Cloud(cores=2, accelerated=False, own_plumbing=False, platform="OpenStack")
    metrics, facts = experiments.platform_metrics(servers_on(cloud, "a", "b", "a"), vcpus=4)
    assert (metrics["accelerated"], metrics["own_plumbing"]) == (0.0, 0.0)
    assert (metrics["cores_per_vcpu"], metrics["compute_machines"]) == (0.5, 2.0)
    assert metrics["platform"] == "OpenStack" and metrics["guest"] == "not reported"
    assert facts["cores"] == 2
    assert not set(metrics) & {name for group in GROUPS.values() for name in group}, "a record would be refused"


@pytest.mark.parametrize("api, in_one_call", [("openstack", 0.0), ("ec2", 1.0)])
def test_a_point_says_whether_the_api_reboots_several_servers_by_one_call(api, in_one_call):
    metrics, _ = experiments.platform_metrics(servers_on(Cloud(api=api)))
    assert metrics["reboots_in_one_call"] == in_one_call


def test_a_cloud_that_does_not_tell_is_taken_to_have_what_claims_need_but_machines():
    metrics, _ = experiments.platform_metrics(servers_on(Cloud()), vcpus=4)
    assert (metrics["accelerated"], metrics["cores_per_vcpu"], metrics["compute_machines"]) == (1, 1, 1)


def test_pinned_servers_have_the_cores_that_they_are_pinned_to():
    tested = servers_on(Cloud(cores=2), "a", cores=[4, 5])
    for pinned, own, each in ((True, 1.0, 0.5), (False, 0.0, 1.0)):
        metrics, _ = experiments.platform_metrics(tested, vcpus=2, pinned=pinned)
        assert (metrics["own_cores"], metrics["cores_per_vcpu"], metrics["machine_cores"]) == (own, each, 2.0)


def test_nothing_is_pinned_of_the_bare_node_which_has_all_cores():
    metrics, _ = experiments.platform_metrics(servers_on(Cloud(cores=2), cores=[4, 5]), vcpus=4, pinned=True)
    assert (metrics["own_cores"], metrics["cores_per_vcpu"]) == (0.0, 0.5)


@pytest.mark.parametrize("disk, modelled", [({"size": 1, "model": "hdd_82_seeks"}, 1.0), ({"size": 1}, 0.0)])
def test_a_point_says_whether_its_disks_were_modelled(disk, modelled):
    tested = servers_on(Cloud(cores=2), "a", cores=[0, 1])
    tested.bed.hosts[0].limits = {"disk": disk}
    assert experiments.platform_metrics(tested)[0]["disk_modelled"] == modelled


def test_one_core_servers_are_of_the_clouds_own_type_where_it_names_one():
    made = []
    cloud = SimpleNamespace(own=None, make_flavor=lambda flavor: made.append(flavor) or "made",
                            flavor=lambda name: name)
    testbed = SimpleNamespace(cloud=cloud, flavor=SimpleNamespace(disk_gb=2))
    bed = Bed(testbed, None, None, [])
    assert experiments.one_core(bed, 1800) == experiments.one_core(bed, 1800) == "made"
    assert [(one.cores, one.memory_mb, one.disk_gb) for one in made] == [(1, 1800, 2)]     # made once
    cloud.own = SimpleNamespace(flavors={"scaling": "t.tiny"})
    assert experiments.one_core(Bed(testbed, None, None, []), 1800) == "scaling"


def test_boots_have_a_type_with_the_images_disk_that_is_made_once():
    made = []
    cloud = SimpleNamespace(make_flavor=lambda flavor: made.append(flavor) or flavor)
    bed = Bed(SimpleNamespace(cloud=cloud, flavor=Flavor("1", "m1.large", 2, 512, 10)), None, None, [])
    assert experiments.as_large_as_the_image(bed) is experiments.as_large_as_the_image(bed) is made[0]
    assert [(one.cores, one.memory_mb, one.disk_gb) for one in made] == [(2, 512, None)]


def test_releases_that_are_not_asked_for_are_arms_that_are_left_out(measure):
    pair = measure.in_pairs("release", ["newer"])
    assert pair["paired"] == {"release": ["newer", "older"]}
    hosts = pair["hosts"].values()
    assert [len(names) for names in hosts] == [2, 2] and not set.intersection(*map(set, hosts))
    left_out = measure.others(["older", "newer"], ["newer"], but=lambda one: one.kernel == "sp")
    found = [left_out(point(release=release, kernel=kernel)) for release, kernel in (
        ("older", "cg"), ("newer", "cg"), ("newer", "sp"))]
    assert found == [True, False, True]


def test_a_kernel_is_recorded_of_both_releases_with_where_it_ran(measure, monkeypatch):
    via = SimpleNamespace(run=lambda words: SimpleNamespace(stdout="mpirun 4.1\n"))
    arms, ran = {release: servers_on(Cloud(cores=2, platform=release), "a", "a") for release in ("older", "newer")}, []
    for tested in arms.values():
        bed = tested.bed.testbed
        bed.reach, bed.only, bed.flavor = (lambda server: Held(via)), (lambda n, flavor: None), "m1.small"
    measure.platforms = SimpleNamespace(beds=lambda attempt, names, everyone, **types: {
        name: arms[name].bed for name in names if types == {"vm": "m1.small"}})
    monkeypatch.setattr(experiments, "equipped", lambda machines, benchmark, program: machines)
    monkeypatch.setattr(experiments.nas, "facts", lambda via: {"npb_compiler": "gcc 12"})
    monkeypatch.setattr(experiments.nas, "npb", lambda machines, **how: ran.append(how) or SimpleNamespace(
        rows=pd.DataFrame({"seconds": [1.0]}), metrics={"seconds": float(len(ran)), "verified": 1}))
    one = point("shapes", paired={"release": ["older", "newer"]}, vm_cores=1, ranks=2, kernel="cg", size="S",
                seconds_at_most=60, pairs=2, pinned=False, starts="one", cache_mode="none")
    measure.study.hosts = {"older": ["cloud"], "newer": ["cloud2"]}
    measure.study.lab = SimpleNamespace(hosts={})
    measure.shapes(measure.study.experiment(one))
    recorded, = measure.study.recorded
    assert ran == [dict(kernel="cg", size="S", ranks=2, timed_s=0.0, programs="", seconds_at_most=60)] * 6     # two to warm up
    assert sorted(one.metrics["seconds"] for one in recorded["slices"]) == [3, 4, 5, 6]
    for release, metrics in recorded["arm_metrics"].items():
        assert metrics["most_on_a_machine"] == 2 and metrics["cores_per_vcpu"] == 1
        assert (metrics["platform"], metrics["mpi"], metrics["compiler"]) == (release, "mpirun 4.1", "gcc 12")
    assert recorded["facts"]["newer"]["npb_compiler"] == "gcc 12"


class Held:
    """A machine whose connection can be held open, with this machine's clock."""

    here = True

    def __init__(self, via):
        self.via = via

    @contextmanager
    def held(self):
        yield self


def test_facts_are_each_named_once_by_release():
    seen = figures.Facts([
        pd.DataFrame({"release": ["older", "newer", "newer"], "platform": ["A", "B", "B"],
                      "compute_machines": [1.0, 2.0, 2.0]}), pd.DataFrame()])
    assert (seen.get("platform"), seen.get("platform", "newer"), seen.machines) == ("A; B", "B", 2)
    assert seen.get("mpi") == "not measured"


def without_login():
    """The notebook's groups, of which only functions and boots are measured that need no login."""
    found = {name: group | {"repeats": 0} for name, group in deepcopy(GROUPS).items()}
    found["functions"] |= {"repeats": 6, "function": ["quota", "create_volume"]}
    found["boot"] |= {"repeats": 6, "until": "running"}
    return found


@pytest.mark.parametrize("group, entries", [
    ("functions", {"function": ["quota", "run_one"]}), ("boot", {"until": "ssh"}), ("shapes", {"repeats": 6})])
def test_servers_of_a_users_cloud_are_not_logged_in_to_from_a_lab_on_this_machine(measure, group, entries):
    """None could be reached, and each function counted as one that the cloud fails at."""
    groups = without_login()
    measure.own, measure.logs_in_to_own = {"newer"}, False
    parameters.check(measure, ["older", "newer"], "none", "one", groups)
    groups[group] |= entries
    with pytest.raises(InputError, match=rf"provider: {group} logs in to servers of newer .*{group}.repeats 0"):
        parameters.check(measure, ["older", "newer"], "none", "one", groups)
    measure.logs_in_to_own = True
    parameters.check(measure, ["older", "newer"], "none", "one", groups)
