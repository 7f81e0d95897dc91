"""A Cinder driver with volumes as files of a host, exported as block devices over the network (NBD).

qemu-storage-daemon serves them, controlled through its socket; a guest's QEMU is its client.
"""

import json
import os
import socket

from cinder import interface
from cinder.volume import configuration, driver
from oslo_config import cfg

OPTIONS = [
    cfg.StrOpt("nbd_folder", help="folder of the volumes' files"),
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
        self._qmp("query-version")

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
            self._qmp("blockdev-add", **{
                "driver": "raw", "node-name": name,
                "file": {"driver": "file", "filename": self._path(volume),
                         "cache": {"direct": self.configuration.nbd_direct}}})
        if name not in self._exports():
            self._qmp("block-export-add", type="nbd", id=name, **{"node-name": name}, name=name,
                       writable=True)
        options = self.configuration
        return {"driver_volume_type": "nbd",
                "data": {"name": name, "hosts": [options.nbd_address], "ports": [str(options.nbd_port)],
                         "volume_id": volume["id"]}}

    def terminate_connection(self, volume, connector, **kwargs):
        self._withdraw(volume)

    def _withdraw(self, volume):
        """Remove the export and then its block device, which is free a moment later."""
        name = self._node(volume)
        if name in self._exports():
            self._qmp("block-export-del", event="BLOCK_EXPORT_DELETED", id=name, mode="hard")
        if name in self._nodes():
            self._qmp("blockdev-del", **{"node-name": name})

    def _exports(self):
        return {one["id"] for one in self._qmp("query-block-exports")}

    def _nodes(self):
        return {one["node-name"] for one in self._qmp("query-named-block-nodes", flat=True)}

    def _path(self, volume):
        return os.path.join(self.configuration.nbd_folder, f"volume-{volume['id']}")

    @staticmethod
    def _node(volume):
        return "v" + volume["id"].replace("-", "")[:30]     # QEMU allows 31 characters

    def _qmp(self, command, event=None, **arguments):
        """The daemon's answer; with `event`, once that event has arrived."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(SECONDS)
            connection.connect(self.configuration.nbd_control)
            stream = connection.makefile("rw")
            stream.readline()     # its greeting
            self._send(stream, "qmp_capabilities", {})
            self._answer(stream)
            self._send(stream, command, arguments)
            answer, events = self._answer(stream)
            while event and event not in events:
                events.append(json.loads(stream.readline()).get("event"))
            return answer

    @staticmethod
    def _send(stream, command, arguments):
        stream.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        stream.flush()

    @staticmethod
    def _answer(stream):
        events = []
        while True:
            message = json.loads(stream.readline())
            if "event" in message:
                events.append(message["event"])
            elif "error" in message:
                raise OSError(f"the storage daemon: {message['error']['desc']}")
            else:
                return message["return"], events
