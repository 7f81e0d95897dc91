"""What may be set of a ring that grows."""

from labbook.errors import InputError
from labbook.systems.base import Described
from labbook.systems.cassandra.node import Cassandra

FILE = "settings of growing_ring"
OLD, NEW = "1.0.7", "5.0.8"
COORDINATORS, FILES = ("donor", "all"), ("by_size", "by_range")
RING_DELAY_MS = 5000    # at 1000 a node was seen to join empty


class RingSettings(Described):
    """`coordinators`: whom clients call, the donor or all nodes that are in the ring when a load
    begins. `files`: what merging leaves, by_size a few SSTables of rows of the whole ring, by_range
    many of a range each, of which a joiner gets most whole (5.0)."""

    NAME = "growing_ring"
    SETTINGS = {
        "version": {"enum": [OLD, NEW], "default": OLD},
        "ring_delay_ms": {**Cassandra.SETTINGS["ring_delay_ms"], "default": RING_DELAY_MS},
        **{key: Cassandra.SETTINGS[key] for key in ("heap_mb", "stream_mbit", "whole_files",
                                                    "disk_access")},
        "compression": {"type": "boolean", "default": False},
        "coordinators": {"enum": list(COORDINATORS), "default": "donor"},
        "files": {"enum": list(FILES), "default": "by_size"},
    }

    @classmethod
    def checked(cls, settings: dict) -> dict:
        """As Described.checked; None stands for the default, of `ring_delay_ms` for waits as
        shipped."""
        full = super().checked({key: value for key, value in settings.items()
                                if value is not None or key == "ring_delay_ms"})
        Cassandra.checked({key: value for key, value in full.items()
                           if key in Cassandra.SETTINGS and value is not None})
        if full["files"] == "by_range" and full["version"] == OLD:
            raise InputError(f"Cassandra {OLD} has none that are whole to be given away",
                             file=FILE, key="files", allowed="by_size")
        return full
