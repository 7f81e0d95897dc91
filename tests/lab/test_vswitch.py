"""Releases of OpenStack that plug their servers into Open vSwitch themselves: bytes arrive between servers, and nothing
is left. In the newer release; LABBOOK_RELEASES="2026.2 zed" tests both."""

import os

import pytest
from listeners import check_listeners
from small_labs import new_id

from labbook.lab import Environment, Lab, LabDescription
from labbook.systems.openstack import vswitch
from labbook.systems.openstack.hypervisor import BRIDGE
from labbook.systems.openstack.lab_cloud import OpenStack
from labbook.workloads.clouds.guests import Guests
from labbook.workloads.clouds.testbed import Testbed

pytestmark = pytest.mark.timeout(1800)      # may have to make a guest's image and the databases
LAB = {"sites": ["room"], "hosts": {"cloud": {"site": "room", "role": "cloud", "limits": {"disk": {"size": "16G"}}}}}
BYTES = 20_000_000
SEND = f"head -c {BYTES} /dev/urandom | tee /tmp/sent | ssh {{options}} root@{{address}} 'cat > /tmp/got'; md5sum < /tmp/sent"
OPTIONS = "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -i /root/key"


@pytest.mark.parametrize("release", os.environ.get("LABBOOK_RELEASES", "2026.2").split())
def test_servers_reach_each_other_through_it(release):
    with Lab.up(LabDescription.parse(LAB), Environment("local"), new_id()) as lab:
        host = lab.host("cloud")
        links = host.run("ip -o link | wc -l").stdout
        platform = OpenStack([host], release=release, plumbing="ovs").up()
        facts = platform.cloud.facts()
        assert facts["own_plumbing"] and "Open vSwitch" in facts["plumbing"]
        host.run("ssh-keygen -q -t ed25519 -N '' -f key")
        cloud = platform.cloud
        ground = Testbed(cloud, cloud.image("guest"), cloud.flavor("m1.small"),
                         cloud.make_key(host.run("cat key.pub").stdout), Guests(cloud, host, f"{host.root}/key").reach,
                         host.dial)
        one, other = ground.started(2)
        ports = host.run(f"ovs-vsctl list-ports {BRIDGE}").stdout.split()
        assert len(ports) == 2 and host.run(f"ovs-vsctl get bridge {BRIDGE} datapath_type").stdout.strip() == "netdev"
        key = host.run("cat key").stdout
        ground.ask(one, f"cat > /root/key <<'E'\n{key}E\nchmod 600 /root/key")
        sent = ground.ask(one, SEND.format(options=OPTIONS, address=other.address), timeout=300)
        assert ground.ask(other, "md5sum < /tmp/got") == sent
        check_listeners([host], "openstack")
        platform.destroy()
        assert host.run("ip -o link | wc -l").stdout == links
        assert host.run(f"ls -d {vswitch.FOLDER}; pgrep ovs", check=False).stdout == ""
