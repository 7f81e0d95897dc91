"""The page of the cloud study as it is, over one release and so little that a point takes seconds: a
function of the client, a boot, both disks, a kernel over two servers, a message between them."""

import pytest
from tiny_page import TinyPage

STUDY = "cloud_platforms"
NOTHING_ELSE = {f"{name}_repeats": 0 for name in ("unixbench", "caching", "scaling")}
TINY = {"releases": ["newer"], "repeats": 1, "image_gb": [0.5], "at_once": [2], "functions": ["reboot_several"],
        "disk_repeats": 1, "volumes": ["local", "network"], "disk_mb": 384, "disk_byte_mb": 1, "disk_vm": "m1.small",
        "kernels": ["cg"], "latency_repeats": 1, "rounds": 50, **NOTHING_ELSE}


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return TinyPage.of(STUDY, tmp_path_factory.mktemp("page")).run(TINY)


def test_a_function_of_the_client_works_by_what_was_seen(page):
    point, = page.recorded("functions")
    assert point["works"] == point["rebooted_share"] == 1, point["evidence"]
    assert point["platform"] == "OpenStack 2026.2" and "QEMU" in point["hypervisor"]


def test_a_boot_is_told_in_its_moments(page):
    point, = page.recorded("boot")
    assert point["failed_to_run"] == point["failed_to_answer"] == 0
    assert 0 < point["returned_s"] < point["all_running_s"] < point["all_ssh_s"]
    # the cloud's clock is the machine's, and tells whole seconds
    assert -1 < point["all_launched_s"] < point["all_ssh_s"]


def test_disks_are_measured_with_nothing_of_them_in_memory(page):
    found = {point["volume"]: point for point in page.recorded("disk")}
    assert set(found) == {"local", "network"}
    for point in found.values():
        assert point["put_block_kib_per_s"] > 0 and point["seeks_per_s"] > 0
        assert point["volume_way"].startswith("NBD over TCP from host store")


def test_servers_compute_together_and_talk(page):
    point, = page.recorded("shapes")
    assert (point["kernel"], point["verified"], point["most_on_a_machine"]) == ("cg", 1, 2)
    talk = {one["between"]: one for one in page.recorded("latency")}
    assert set(talk) == {"servers", "machines"} and all(one["latency_us"] > 0 for one in talk.values())


def test_each_claim_has_its_verdict_and_nothing_is_left(page, monkeypatch):
    page.assert_judged(monkeypatch)
