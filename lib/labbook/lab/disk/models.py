"""Models of disks: what a request takes, by figures in models.yml, each with its source.

    a request: overhead + seek + rotation + size / rate, and a fixed time after it
    seek:      track + (stroke - track) * sqrt(distance / span)
    rotation:  until the sector comes round, from the angle at the seek's end

A request that begins where the last one ended has no seek, no rotation and no fixed time. A disk without
`rpm` has no seek and no rotation. `span` is the size of the whole disk (`span_gb`), or of the modelled one,
which then stands for the whole. `channels` take so many requests at a time and share the rate; the fixed
time (`fixed_ms`, a network) keeps neither a channel nor the rate. on_host/modelled_disk serves by these;
`serve` computes the same in Python, but for the fixed time, and tests and benchmarks set it beside.

Left out: zones (the rate is that of all tracks), the disk's own cache (a write takes as long as a
read, a flush only waits), and read-ahead of the disk, but for what begins where the last one ended.
"""

from dataclasses import asdict, dataclass
from functools import cache
from math import sqrt
from pathlib import Path

from labbook.checks import check, did_you_mean, load_yaml
from labbook.errors import InputError

FILE = Path(__file__).with_name("models.yml")
ORDERS = ("fcfs", "elevator")
GB = 10**9
MOST_CHANNELS = 64
RANDOM_ROOT = 8 / 15    # mean of sqrt(distance) between two random places of a disk of size 1


def _figure(kind):
    return {"type": "object", "additionalProperties": False, "required": ["value", "source"],
            "properties": {"value": kind, "source": {"type": "string", "minLength": 4}}}


_FROM_0 = {"type": "number", "minimum": 0, "description": "a number from 0 up"}
_ABOVE_0 = {"type": "number", "exclusiveMinimum": 0, "description": "a number above 0"}
_CHANNELS = {"type": "integer", "minimum": 1, "maximum": MOST_CHANNELS, "description": f"1 to {MOST_CHANNELS}"}
MODEL = {
    "type": "object", "additionalProperties": False, "required": ["is", "mb_per_s", "overhead_ms", "order"],
    "properties": {
        "is": {"type": "string"},
        "overhead_ms": _figure(_FROM_0),    # of each request, in a channel
        "mb_per_s": _figure(_ABOVE_0),      # 10^6 bytes
        "rpm": _figure(_ABOVE_0), "track_ms": _figure(_FROM_0), "stroke_ms": _figure(_FROM_0),
        "span_gb": _figure(_ABOVE_0),       # 10^9 bytes
        "fixed_ms": _figure(_FROM_0), "channels": _figure(_CHANNELS),
        "order": _figure({"enum": list(ORDERS)}),
    },
    "dependentRequired": {"rpm": ["track_ms", "stroke_ms"], "track_ms": ["rpm"], "stroke_ms": ["rpm"]},
}
SCHEMA = {"type": "object", "minProperties": 1, "additionalProperties": MODEL}


@dataclass(frozen=True)
class Model:
    """Figures of one model, in the units of their names; `order`: of waiting requests, one of ORDERS."""

    name: str
    overhead_ms: float
    mb_per_s: float
    order: str = "fcfs"
    rpm: float = 0
    track_ms: float = 0
    stroke_ms: float = 0
    span_gb: float = 0
    fixed_ms: float = 0
    channels: int = 1

    @property
    def turn_ms(self) -> float:
        """In whole nanoseconds, as the daemon has it: angles count turns since the machine's boot."""
        return round(60e9 / self.rpm) / 1e6 if self.rpm else 0.0

    def figures(self) -> dict:
        """What a host's disk keeps of it, for its daemon and for the record: all but name and order."""
        return {key: value for key, value in asdict(self).items() if key not in ("name", "order")}

    def span(self, disk_bytes: int) -> int:
        """Size in bytes of the whole disk, of which a modelled one of `disk_bytes` is the beginning."""
        return max(disk_bytes, int(self.span_gb * GB))

    def seek_ms(self, distance: int, disk_bytes: int) -> float:
        """The seek over a distance in bytes."""
        if not self.rpm:
            return 0.0
        return self.track_ms + (self.stroke_ms - self.track_ms) * sqrt(distance / self.span(disk_bytes))

    def rotation_ms(self, place: int, at_ms: float) -> float:
        """How long after `at_ms` the sector at `place` (bytes) comes round; at 0 ms the first one does."""
        if not self.rpm:
            return 0.0
        track = self.mb_per_s * 1e3 * self.turn_ms      # bytes
        return (place % track / track * self.turn_ms - at_ms) % self.turn_ms

    def transfer_ms(self, size: int) -> float:
        return size / (self.mb_per_s * 1e3)

    def serve(self, place: int, size: int, head: int, start_ms: float, disk_bytes: int) -> dict:
        """seek_ms, rotation_ms and ended_ms of a request of `size` bytes that starts at `start_ms` with the
        head at `head`, on a disk with one channel."""
        at, seek, rotation = start_ms + self.overhead_ms, 0.0, 0.0
        if place != head:
            seek = self.seek_ms(abs(place - head), disk_bytes)
            rotation = self.rotation_ms(place, at + seek)
        return {"seek_ms": seek, "rotation_ms": rotation,
                "ended_ms": at + seek + rotation + self.transfer_ms(size)}

    def sequential_ms(self, size: int) -> float:
        """A request that begins where the last one ended, one at a time."""
        return self.overhead_ms + self.transfer_ms(size)

    def random_ms(self, size: int, within: int, disk_bytes: int) -> float:
        """The mean of requests at random places of the first `within` bytes, one at a time."""
        if not self.rpm:
            return self.sequential_ms(size) + self.fixed_ms
        root = RANDOM_ROOT * sqrt(within / self.span(disk_bytes))
        return (self.sequential_ms(size) + self.track_ms + (self.stroke_ms - self.track_ms) * root
                + self.turn_ms / 2 + self.fixed_ms)


@cache
def models() -> dict[str, Model]:
    """All models by name."""
    return {name: Model(name, **{key: figure["value"] for key, figure in entry.items() if key != "is"})
            for name, entry in described().items()}


@cache
def described() -> dict[str, dict]:
    """models.yml as it is: {name: {"is": words, figure: {"value", "source"}}}."""
    data = load_yaml(FILE)
    check(data, SCHEMA, FILE)
    return data


def find(name: str, file=None, key: str = "model") -> Model:
    """InputError that names the file, the key and all models for an unknown one."""
    known = models()
    if name not in known:
        raise InputError(f"no model of a disk is called {name!r}{did_you_mean(str(name), known)}", file=file,
                         key=key, allowed=list(known))
    return known[name]
