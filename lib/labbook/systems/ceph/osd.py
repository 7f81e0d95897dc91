"""A daemon that keeps Ceph's objects: in memory, or on its host's disk."""

from uuid import uuid4

from labbook.errors import LabError
from labbook.systems.base import Needs
from labbook.systems.ceph.config import CONF
from labbook.systems.ceph.daemons import CephDaemon

MEMORY = {"osd_objectstore": "memstore", "memstore_device_bytes": 4 << 30}
DISK = {"osd_objectstore": "bluestore", "osd_memory_target": 896 << 20,
        "bluestore_cache_autotune": "false", "bluestore_cache_size": 64 << 20}
STORES = ("memory", "disk")
MOST_BYTES, LEAST_BYTES, LEFT_BYTES = 2 << 30, 1 << 30, 256 << 20


class CephOSD(CephDaemon):
    """`store`: memory (of this process, gone with it) or disk (BlueStore on a file that grows).
    `sharing`: how many OSDs, this one too, may have their files on one disk."""

    NAME, KIND = "ceph_osd", "osd"
    NEEDS = Needs(packages=("ceph-osd", "procps"), commands=("ps",))

    def __init__(self, host, id=None, cluster=None, store: str = "memory",
                 sharing: int = 1):
        super().__init__(host, id, cluster)
        self.store, self.sharing, self._block_bytes = store, sharing, MOST_BYTES

    def own_options(self) -> dict:
        own = MEMORY if self.store == "memory" else {
            **DISK, "bluestore_block_size": self._block_bytes}
        return {**own, "crush_location": f"root=default host={self.host.name}"}

    def deploy(self) -> None:
        """LabError where there is too little room on the disk."""
        if self.store == "disk":
            self._block_bytes = self._room()
        super().deploy()
        self.run("ceph-osd", "--mkfs", "-i", self.id, "-c", self.home / CONF,
                 "--osd-uuid", uuid4(), "--log-to-stderr=false", timeout=120)

    def _room(self) -> int:
        """How large its file may get: what is free, but for what others write. An OSD that finds
        less than it was told of aborts."""
        free = int(self.run("df", "--output=avail", "-B1", self.host.root).stdout.split()[-1])
        room = min(MOST_BYTES, (free - LEFT_BYTES) // self.sharing)
        if room < LEAST_BYTES:
            needed = self.sharing * LEAST_BYTES + LEFT_BYTES
            raise LabError(f"{self.host.name}: {free >> 20} MB of disk are free, and {self.sharing} "
                           f"OSDs need {needed >> 20}")
        return room
