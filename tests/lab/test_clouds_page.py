"""The page of the clouds' study as it is, of one release, one start of which serves a function of the client, a
boot, and a benchmark over two servers; of another start with a switch of its own; of one with four machines; and of
one with containers."""

import pytest
from tiny_page import TinyPage

from labbook.systems.openstack import containers

pytestmark = pytest.mark.timeout(1200)      # may have to make a guest's image and the databases
STUDY = "cloud_platforms"
TINY = {"releases": ["newer"], "functions.releases": ["newer"], "functions.function": ["quota"],
        "functions.repeats": 1, "boot.at_once": [1], "boot.until": "ssh", "boot.repeats": 1, "shapes.releases": ["newer"],
        "shapes.kernel": ["is"], "shapes.ranks": 2, "shapes.vm_cores": [1], "shapes.repeats": 1, "shapes.pairs": 1,
        "own_network.kernel": ["is"], "own_network.ranks": 2, "own_network.vm_cores": [1], "own_network.repeats": 1,
        "own_network.pairs": 1, "compute_hosts.image_gb": [0.5], "compute_hosts.at_once": [1],
        "compute_hosts.rtt_ms": [0], "compute_hosts.repeats": 1, "containers.repeats": 1, "containers.pairs": 1,
        "containers.at_once": [2], "containers.kernel": ["is"], "containers.size": "S", "containers.timed_s": 0.1}


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return TinyPage.of(STUDY, tmp_path_factory.mktemp("page")).run(TINY)


def test_the_moments_of_a_server_that_boots(page):
    point, = page.recorded_arms("boot")
    assert (point["release"], point["asked"], point["n"]) == ("newer", 1, 1)
    assert point["failed_to_run"] == point["failed_to_answer"] == 0
    assert 0 < point["returned_s"] < point["all_running_s"] < point["all_ssh_s"]
    assert point["ssh_after_running_s"] > 0 and point["platform"] == "OpenStack 2026.2"


def test_a_function_is_reported_with_its_evidence(page):
    point, = page.recorded_arms("functions")
    assert (point["function"], point["works"]) == ("quota", 1) and "cores" in point["evidence"]


def test_a_benchmark_over_two_servers_is_verified(page):
    point, = page.recorded_arms("shapes")
    assert (point["kernel"], point["ranks"], point["verified"]) == ("is", 2, 1)
    assert point["mops"] > 0 and point["most_on_a_machine"] == 2 and point["own_cores"] > 0


def test_a_benchmark_over_the_releases_own_network_is_verified(page):
    point, = page.recorded_arms("own_network")
    assert (point["verified"], point["own_plumbing"]) == (1, 1) and "Open vSwitch" in point["plumbing"]


def test_a_server_boots_on_one_of_four_machines(page):
    point, = page.recorded_arms("compute_hosts")
    assert (point["compute_machines"], point["most_on_a_machine"], point["failed_to_run"]) == (4, 1, 0)


@pytest.mark.skipif(not containers.possible(), reason="this machine has no control groups of version 1")
def test_containers_boot_and_compute(page):
    (boot,), (task,) = page.recorded_arms("containers"), page.recorded_arms("native")
    assert (boot["failed_to_run"], boot["failed_to_answer"], boot["asked"]) == (0, 0, 2)
    assert 0 < boot["all_running_s"] and "LXC" in boot["hypervisor"]
    assert (task["verified"], task["accelerated"], task["servers"]) == (1, 1, 1) and task["mops"] > 0


def test_each_claim_has_its_verdict_and_nothing_is_left(page, monkeypatch):
    page.assert_judged(monkeypatch)
