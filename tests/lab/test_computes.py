"""OpenStack with compute hosts of its own: servers are placed on them, one each, and nothing is left."""

import pytest
from listeners import check_listeners
from small_labs import new_id

from labbook.lab import Environment, Lab, LabDescription
from labbook.systems.openstack.lab_cloud import OpenStack
from labbook.systems.openstack.releases import PORTS

pytestmark = pytest.mark.timeout(1800)      # may have to make a guest's image and the databases
COMPUTE = {"site": "rack", "role": "compute", "limits": {"disk": {"size": "4G"}}}
LAB = {"sites": ["room", "rack"], "links": [{"between": ["room", "rack"]}],
       "hosts": {"cloud": {"site": "room", "role": "cloud", "limits": {"disk": {"size": "16G"}}},
                 "compute1": COMPUTE, "compute2": COMPUTE, "stranger": {"site": "room", "role": "client"}}}


def test_servers_are_spread_over_the_compute_hosts():
    with Lab.up(LabDescription.parse(LAB), Environment("local"), new_id()) as lab:
        hosts = [host for host in lab.hosts.values() if host.role != "client"]
        platform = OpenStack(hosts).up()
        cloud = platform.cloud
        assert cloud.facts()["compute_machines"] == 2
        key = cloud.make_key("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl a")
        made = cloud.await_running(cloud.run(2, cloud.image("guest"), cloud.flavor("m1.small"), key), 300)
        cloud.require_running(made)
        assert sorted(one.host for one in made) == ["compute1", "compute2"]
        assert [host.run("pgrep -c qemu-system", check=False).stdout.strip() for host in hosts] == ["0", "1", "1"]
        check_listeners(hosts, "openstack", more=PORTS.values())
        api = f"timeout {{}} bash -c '< /dev/tcp/{hosts[0].address}/{PORTS['nova']}'"
        ended = [host.run(api.format(seconds), check=False).exit_code
                 for host, seconds in ((lab.host("compute2"), 30), (lab.host("stranger"), 3))]
        assert ended == [0, 124]
        platform.destroy()
        left = "ls -d openstack processes/openstack-*; ip -o link show guests; pgrep 'qemu|libvirt'"
        assert [host.run(left, check=False).stdout for host in hosts] == ["", "", ""]
