"""A metadata server (MDS) of Ceph: it has a rank, follows one, or waits for one."""

from labbook.systems.base import Needs
from labbook.systems.ceph_daemon import CephDaemon


class CephMDS(CephDaemon):
    """`options`: further ones of ceph.conf."""

    NAME, KIND = "ceph_mds", "mds"
    NEEDS = Needs(packages=("ceph-mds", "procps"), commands=("ps",))

    def __init__(self, host, id, cluster, **options):
        super().__init__(host, id, cluster)
        self.options = options

    def own_options(self) -> dict:
        return {"mds_standby_for_fscid": None, **self.options}
