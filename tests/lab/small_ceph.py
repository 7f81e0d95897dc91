"""A small Ceph with two active metadata servers and a standby, and a mount on each of two clients."""

import pytest
from small_labs import new_id

from labbook.lab import Environment, Lab, LabDescription
from labbook.systems.ceph.cluster import Ceph

LAB = {"sites": ["room"], "hosts": {
    "mon": {"site": "room", "role": "mon"}, "osd[1-2]": {"site": "room", "role": "osd"},
    "mds[1-3]": {"site": "room", "role": "mds"},
    "client[1-2]": {"site": "room", "role": "client", "limits": {"fuse": True}}}}


@pytest.fixture(scope="module")
def lab():
    with Lab.up(LabDescription.parse(LAB), Environment("local"), new_id()) as lab:
        yield lab


@pytest.fixture(scope="module")
def ceph(lab):
    return Ceph(lab.hosts.values(), active=2, standby=1).up()


@pytest.fixture
def mounts(lab, ceph):
    """A mount on each client host, gone after the test whatever became of the cluster."""
    made = [ceph.mount(host) for host in lab.role("client")]
    try:
        yield [mount.up() for mount in made]
    finally:
        for mount in made:
            mount.destroy()
