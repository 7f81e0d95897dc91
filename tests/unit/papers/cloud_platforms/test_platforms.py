"""Which platforms are kept, and which have to end for another one; without a lab."""

from types import SimpleNamespace

import pytest
from paper_stand_ins import StandIn, point

from labbook import paths
from labbook.lab import LabDescription
from labbook.papers.cloud_platforms import platforms
from labbook.papers.cloud_platforms.platforms import Platforms, host_sets

HOSTS = {"older": ["cloud", "store"], "newer": ["cloud2", "store2"]}


class Lab:
    clouds, programs, computes = (), {"kernel": "/srv/kernel"}, ()

    def host(self, name):
        return SimpleNamespace(name=name, role="cloud" if "cloud" in name else "store", dial=None)

    def role(self, role):
        return [SimpleNamespace(name=name, role=role) for name in self.computes]


@pytest.fixture
def did(monkeypatch):
    """What was brought up and ended, in order: (verb, release, cache mode, hosts)."""
    did = []

    class OpenStack:
        def __init__(self, hosts, kernel, release, cache_mode, plumbing, servers):
            assert kernel == ("/srv/kernel" if servers == "machines" else None)
            self.what = (release, cache_mode, [host.name for host in hosts], *([plumbing] * (plumbing != "release")),
                         *([servers] * (servers != "machines")))

        def up(self):
            did.append(("up", *self.what))
            return SimpleNamespace(cloud=SimpleNamespace(
                image=str, flavor=lambda name: f"type {name}", make_key=str, own=None,
                destroy=lambda: did.append(("end", *self.what))))

    monkeypatch.setattr(platforms, "OpenStack", OpenStack)
    monkeypatch.setattr(platforms, "ssh_key", lambda via, release: ("key", "public"))
    return did


@pytest.fixture
def several():
    return Platforms(LabDescription.load(paths.papers("cloud_platforms") / "lab.yml"))


def arm(release="newer", starts="one", cache_mode="none", **more):
    return point(release=release, starts=starts, cache_mode=cache_mode, **more)


def test_arms_have_hosts_of_their_own_that_are_alike():
    lab = LabDescription.load(paths.papers("cloud_platforms") / "lab.yml")
    sets = host_sets(lab, ["older", "newer"])
    limits = [[lab.host(name).limits for name in names] for names in sets.values()]
    assert not set(sets["older"]) & set(sets["newer"])
    assert [[{**one, "cores": 0, "cores_of": 0} for one in each] for each in limits][0] == [
        {**one, "cores": 0, "cores_of": 0} for one in limits[1]]


def test_one_start_serves_all_blocks_wherever_it_is(several, did):
    lab = Lab()
    bed = several.bed(lab, arm(), HOSTS["newer"], vm="m1.small")
    bed.destroy()
    again = several.bed(lab, arm(), HOSTS["older"], vm="m1.large", large="c1.xlarge", seconds=7)
    assert again is bed and did == [("up", "2026.2", "none", HOSTS["newer"])]
    testbed = bed.testbed
    assert (testbed.flavor, testbed.large, testbed.seconds) == ("type m1.large", "type c1.xlarge", 7)


def test_both_stay_where_they_are_where_the_arms_swap(several, did):
    lab = Lab()
    beds = {release: several.bed(lab, arm(release), HOSTS[release], vm="m1.small") for release in ("older", "newer")}
    again = {release: several.bed(lab, arm(release), HOSTS[other], vm="m1.small")
             for release, other in (("older", "newer"), ("newer", "older"))}
    assert again == beds and [verb for verb, *_ in did] == ["up", "up"]


def test_each_repeat_has_its_own_start(several, did):
    for _ in range(2):
        several.bed(Lab(), arm(starts="each"), HOSTS["newer"], vm="m1.small").destroy()
    assert [verb for verb, *_ in did] == ["up", "end"] * 2


def test_a_kept_platform_ends_for_another_one_on_its_hosts_only(several, did):
    lab = Lab()
    several.bed(lab, arm("older"), HOSTS["older"], vm="m1.small")
    several.bed(lab, arm(), HOSTS["newer"], vm="m1.small")
    several.bed(lab, arm(cache_mode="writeback"), HOSTS["newer"], vm="m1.small")
    assert did[2:] == [("end", "2026.2", "none", HOSTS["newer"]), ("up", "2026.2", "writeback", HOSTS["newer"])]


def test_where_memory_carries_one_the_other_ends(several, did):
    lab = Lab()
    for release in ("older", "newer", "older"):
        several.bed(lab, arm(release), HOSTS[release], alone=True, vm="m1.small")
    assert [verb for verb, *_ in did] == ["up", "end", "up", "end", "up"]


def test_a_new_lab_has_no_platforms(several, did):
    for _ in range(2):
        several.bed(Lab(), arm(), HOSTS["newer"], vm="m1.small")
    assert [verb for verb, *_ in did] == ["up", "up"]       # the lab took the first one with it


def test_servers_with_other_memory_are_on_a_platform_of_their_own(several, did):
    lab = Lab()
    beds = [several.bed(lab, arm(memory=memory), hosts, vm="m1.small")
            for memory, hosts in (("small", HOSTS["older"]), ("enough", HOSTS["newer"]))]
    assert beds[0] is not beds[1] and len(did) == 2


def test_another_plumbing_takes_a_platform_of_its_own_in_the_place_of_the_other(several, did):
    lab = Lab()
    for more in ({}, {"network": "ovs"}, {"network": "ovs"}):
        several.bed(lab, arm(**more), HOSTS["newer"], vm="m1.small")
    up = ("up", "2026.2", "none", HOSTS["newer"])
    assert did == [up, ("end", *up[1:]), (*up, "ovs")]


def test_containers_take_a_platform_of_their_own_in_the_place_of_the_other(several, did):
    lab = Lab()
    for more in ({}, {"inside": "containers"}, {"inside": "containers"}):
        several.bed(lab, arm(**more), HOSTS["newer"], vm="m1.small")
    up = ("up", "2026.2", "none", HOSTS["newer"])
    assert did == [up, ("end", *up[1:]), (*up, "containers")]


def test_the_labs_compute_hosts_are_the_platforms(several, did):
    lab = Lab()
    lab.computes = ("compute1", "compute2")
    several.bed(lab, arm(), HOSTS["newer"], vm="m1.small")
    assert did == [("up", "2026.2", "none", [*HOSTS["newer"], "compute1", "compute2"])]


@pytest.mark.parametrize("at_once", [True, False])
def test_all_arms_that_are_asked_for_are_up(several, did, at_once):
    study = StandIn(Lab(), hosts=HOSTS, at_once=at_once)
    one = point(paired={"release": ["older", "newer"]}, starts="one", cache_mode="none")
    with study.attempt(one) as attempt:
        attempt.hosts = HOSTS.get
        for arms in (["older", "newer"],) if at_once else (["older"], ["newer"]):
            beds = several.beds(attempt, arms, ["older", "newer"], vm="m1.small")
            assert list(beds) == arms
    assert {(verb, release) for verb, release, *_ in did} == {("up", "zed"), ("up", "2026.2")} | (
        set() if at_once else {("end", "zed")})


def test_a_kept_platform_does_not_end_for_an_arm_whose_hosts_it_has(several, did):
    """Whichever was first: the kept one was returned, and then ended for the other arm's start."""
    lab = Lab()
    several.bed(lab, point(release="newer", starts="one", cache_mode="none"), HOSTS["older"], vm="m1.small")
    one = point(paired={"release": ["older", "newer"]}, starts="one", cache_mode="none")
    with StandIn(lab, hosts=HOSTS).attempt(one) as attempt:
        attempt.hosts = HOSTS.get
        several.beds(attempt, ["older", "newer"], ["older", "newer"], vm="m1.small")
    assert did == [("up", "2026.2", "none", HOSTS["older"]), ("up", "zed", "none", HOSTS["newer"])]


def test_a_point_of_one_arm_has_that_arms_platform(several, did):
    """Such as the bare node's, which is measured beside the newer release only."""
    study = StandIn(Lab(), hosts=HOSTS)
    one = point(paired={"release": ["newer"]}, starts="one", cache_mode="none")
    with study.attempt(one) as attempt:
        attempt.hosts = HOSTS.get
        bed, = several.beds(attempt, ["newer"], ["older", "newer"], vm="m1.small").values()
    assert bed.config[0] == "newer" and {release for _, release, *_ in did} == {"zed", "2026.2"}


def test_each_releases_servers_have_a_key_and_so_a_list_of_known_hosts_of_their_own(tmp_path):
    via = SimpleNamespace(root=tmp_path, run=lambda command: SimpleNamespace(stdout="public"))
    assert platforms.ssh_key(via, "older") != platforms.ssh_key(via, "newer")
