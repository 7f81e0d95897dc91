"""OpenStack in a lab host: both releases come up, and what a user does with them works."""

import time
from collections import Counter

import pytest
from small_labs import new_id

from labbook.lab import Environment, Lab, LabDescription
from labbook.systems.openstack import OpenStack
from labbook.systems.openstack_hypervisor import BRIDGE
from labbook.workloads.cloud_functions import cloud_function
from labbook.workloads.cloud_ground import Ground
from labbook.workloads.places import Place

pytestmark = pytest.mark.timeout(1800)
LAB = {"sites": ["room"], "hosts": {"cloud": {"site": "room", "role": "cloud"},
                                    "store": {"site": "room", "role": "store"}}}


@pytest.fixture(scope="module", params=["2026.2", "zed"])
def platform(request):
    with Lab.up(LabDescription.parse(LAB), Environment("local"), new_id()) as lab:
        made = OpenStack(list(lab.hosts.values()), release=request.param).up()
        yield made
        made.destroy()
        assert_nothing_is_left(made)


@pytest.fixture(scope="module")
def ground(platform):
    cloud, via = platform.cloud, platform.host
    key = via.root / "key"
    via.run(f"ssh-keygen -q -t ed25519 -N '' -f {key}")

    def reach(server):
        return Place(server.name, via, server.address, cloud.user, str(key))

    return Ground(cloud, cloud.image("guest"), cloud.flavor("m1.small"),
                  cloud.make_key(via.run(f"cat {key}.pub").stdout), reach, via.dial, fit=2,
                  large=cloud.flavor("m1.small"))


def assert_nothing_is_left(platform):
    for host in (platform.host, platform.platform.store):
        assert host.run(f"test -e {host.root}/openstack", check=False).exit_code
        running = Counter(host.run("ps -eo comm=").stdout.split())
        assert not [name for name in running
                    if any(part in name for part in ("qemu", "python", "beam", "epmd", "libvirtd", "mariadb"))]
    assert platform.host.run(f"ip link show {BRIDGE}", check=False).exit_code
    assert "tap" not in platform.host.run("ip -o link").stdout
    assert "/openstack/" not in platform.host.run("cat /proc/mounts").stdout


def test_what_a_cloud_has_from_the_start(platform):
    cloud = platform.cloud
    assert {"guest", "guest-0.5gb", "guest-1gb", "guest-2gb"} <= {one.name for one in cloud.images()}
    assert cloud.flavor("c1.xlarge").cores == 4 and cloud.flavor("c1.xlarge").memory_mb == 2048
    facts = cloud.facts()
    assert facts["platform"] == f"OpenStack {platform.settings['release']}"
    assert facts["compute_machines"] == 1 and facts["volume_way"] == "NBD over TCP from host store"
    versions = platform.facts()["versions"]
    assert set(versions) == {"keystone", "glance", "openstack-placement", "nova", "neutron", "cinder"}


@pytest.mark.parametrize("name", ["run_several", "reboot_several", "attach_usual_name", "write_volume",
                                  "detach", "snapshot_fresh", "upload_image", "terminate"])
def test_a_function_of_the_client(ground, name):
    load = cloud_function(name, ground)
    assert load.measures["works"] == 1, load.measures["evidence"]


def test_a_server_has_what_benchmarks_take(ground):
    server, = ground.servers(1)
    assert ground.ask(server, "which mpirun bonnie++ tar timeout mkfs.ext4 ssh").count("\n") == 5
    assert int(ground.ask(server, "nproc")) == 1
    until = time.monotonic() + 20
    while "/swap" not in ground.ask(server, "cat /proc/swaps"):
        assert time.monotonic() < until
    assert ground.cloud.console(server).count("labbook: up at") >= 1


def test_disks_of_servers_bypass_the_hosts_memory_as_asked(ground, platform):
    ground.servers(1)
    said = platform.host.run("ps -eo args= | grep -F 'qemu-system-x86_64 -name'").stdout
    assert '"cache":{"direct":true' in said


def test_a_server_of_four_cores(ground):
    server, = ground.started(1, flavor=ground.cloud.flavor("c1.xlarge"))
    assert ground.ask(server, "nproc") == "4"
    ground.cloud.terminate([server])
