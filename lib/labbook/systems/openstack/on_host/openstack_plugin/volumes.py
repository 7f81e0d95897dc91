"""Volumes that Cinder keeps as files of a host, exported over the network as block devices (NBD).

qemu-storage-daemon serves them, told so through its socket; a server's QEMU is its client.
"""

import json
import os
import socket

from cinder import interface
from cinder.volume import configuration, driver
from oslo_config import cfg

OPTIONS = [
    cfg.StrOpt("nbd_folder", help="where the volumes' files are"),
    cfg.StrOpt("nbd_control", help="the storage daemon's control socket"),
    cfg.StrOpt("nbd_address", help="the address at which it serves"),
    cfg.IntOpt("nbd_port", default=10809),
    cfg.BoolOpt("nbd_direct", default=True, help="whether files bypass the host's page cache"),
]
cfg.CONF.register_opts(OPTIONS, group=configuration.SHARED_CONF_GROUP)
SECONDS = 30


@interface.volumedriver
class NbdDriver(driver.VolumeDriver):
    VERSION = "1.0.0"
    CI_WIKI_NAME = "none"

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.configuration.append_config_values(OPTIONS)

    @classmethod
    def get_driver_options(cls):
        return OPTIONS

    def check_for_setup_error(self):
        self._tell("query-version")

    def _update_volume_stats(self):
        there = os.statvfs(self.configuration.nbd_folder)
        self._stats = {
            "volume_backend_name": "nbd", "vendor_name": "labbook", "driver_version": self.VERSION,
            "storage_protocol": "nbd", "reserved_percentage": 0, "multiattach": False,
            "total_capacity_gb": there.f_blocks * there.f_frsize / 2**30,
            "free_capacity_gb": there.f_bavail * there.f_frsize / 2**30}

    def create_volume(self, volume):
        with open(self._path(volume), "wb") as file:
            os.posix_fallocate(file.fileno(), 0, volume["size"] << 30)

    def delete_volume(self, volume):
        self._withdraw(volume)
        if os.path.exists(self._path(volume)):
            os.unlink(self._path(volume))

    def ensure_export(self, context, volume):
        pass

    def create_export(self, context, volume, connector):
        pass

    def remove_export(self, context, volume):
        self._withdraw(volume)

    def initialize_connection(self, volume, connector):
        name = self._node(volume)
        if name not in self._nodes():
            self._tell("blockdev-add", **{
                "driver": "raw", "node-name": name,
                "file": {"driver": "file", "filename": self._path(volume),
                         "cache": {"direct": self.configuration.nbd_direct}}})
            self._tell("block-export-add", type="nbd", id=name, **{"node-name": name}, name=name,
                       writable=True)
        where = self.configuration
        return {"driver_volume_type": "nbd",
                "data": {"name": name, "hosts": [where.nbd_address], "ports": [str(where.nbd_port)],
                         "volume_id": volume["id"]}}

    def terminate_connection(self, volume, connector, **kwargs):
        self._withdraw(volume)

    def _withdraw(self, volume):
        """The export first, and then what it exports; a node is free a moment after its export."""
        name = self._node(volume)
        if any(one["id"] == name for one in self._tell("query-block-exports")):
            self._tell("block-export-del", event="BLOCK_EXPORT_DELETED", id=name, mode="hard")
        if name in self._nodes():
            self._tell("blockdev-del", **{"node-name": name})

    def _nodes(self):
        return {one["node-name"] for one in self._tell("query-named-block-nodes", flat=True)}

    def _path(self, volume):
        return os.path.join(self.configuration.nbd_folder, f"volume-{volume['id']}")

    @staticmethod
    def _node(volume):
        return "v" + volume["id"].replace("-", "")[:30]     # QEMU takes 31 letters

    def _tell(self, command, event=None, **arguments):
        """The daemon's answer, once the event has come if one is waited for."""
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(SECONDS)
            line.connect(self.configuration.nbd_control)
            said = line.makefile("rw")
            said.readline()     # its greeting
            self._say(said, "qmp_capabilities", {})
            self._answer(said)
            self._say(said, command, arguments)
            answer, events = self._answer(said)
            while event and event not in events:
                events.append(json.loads(said.readline()).get("event"))
            return answer

    @staticmethod
    def _say(line, command, arguments):
        line.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        line.flush()

    @staticmethod
    def _answer(line):
        events = []
        while True:
            told = json.loads(line.readline())
            if "event" in told:
                events.append(told["event"])
            elif "error" in told:
                raise OSError(f"the storage daemon: {told['error']['desc']}")
            else:
                return told["return"], events
