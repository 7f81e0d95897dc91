"""A metadata server (MDS) of Ceph: it has a rank, follows one, or waits for one."""

from labbook.systems.base import Needs
from labbook.systems.ceph.daemons import CephDaemon


class CephMDS(CephDaemon):
    """Whatever it knows it gets from the monitor and the OSDs."""

    NAME, KIND = "ceph_mds", "mds"
    NEEDS = Needs(packages=("ceph-mds", "procps"), commands=("ps",))
