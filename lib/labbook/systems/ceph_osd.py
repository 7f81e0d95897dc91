"""A daemon that keeps Ceph's objects: in memory, or on its host's disk."""

from uuid import uuid4

from labbook.systems.base import Needs
from labbook.systems.ceph_config import CONF
from labbook.systems.ceph_daemon import CephDaemon

STORES = {
    "memory": {"osd_objectstore": "memstore", "memstore_device_bytes": 4 << 30},
    "disk": {"osd_objectstore": "bluestore", "bluestore_block_size": 4 << 30,
             "osd_memory_target": 896 << 20, "bluestore_cache_autotune": "false",
             "bluestore_cache_size": 64 << 20},
}


class CephOSD(CephDaemon):
    """`store`: memory (of this process, gone with it) or disk (BlueStore on a file that grows)."""

    NAME, KIND = "ceph_osd", "osd"
    NEEDS = Needs(packages=("ceph-osd", "procps"), commands=("ps",))

    def __init__(self, host, id, cluster, store: str):
        super().__init__(host, id, cluster)
        self.store = store

    def own_options(self) -> dict:
        return {**STORES[self.store], "crush_location": f"root=default host={self.host.name}"}

    def deploy(self) -> None:
        super().deploy()
        self.run("ceph-osd", "--mkfs", "-i", self.id, "-c", self.home / CONF,
                 "--osd-uuid", uuid4(), timeout=120)
