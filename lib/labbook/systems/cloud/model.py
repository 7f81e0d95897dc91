"""A cloud's images, VM types (flavours), servers, volumes and keys, independent of its API."""

from dataclasses import dataclass, field

# States, into which each API's states are translated.
STARTING, RUNNING, REBOOTING, STOPPED, ENDING, GONE, ERROR = (
    "starting", "running", "rebooting", "stopped", "ending", "gone", "error")
MAKING, READY, IN_USE = "making", "ready", "in use"     # of images and volumes, beside ERROR


@dataclass
class Resource:
    """state: one of the constants above.
    moments: epoch seconds by this machine's clock: `called` and `returned` (begin and end of the API
        call that made it), and more by kind."""

    id: str
    name: str
    state: str
    moments: dict[str, float] = field(default_factory=dict, kw_only=True)


@dataclass
class Image(Resource):
    size_bytes: int | None = None


@dataclass
class Key(Resource):
    """A public key for servers."""


@dataclass
class Volume(Resource):
    size_gb: int
    server: str | None = None   # id of the server that it is attached to, as `device`
    device: str | None = None


@dataclass
class Server(Resource):
    """fault: the cloud's reason for a failure.
    host: the cloud's host that it runs on, if reported.
    moments: also `running` (first reported by the API), `launched` (started by the hypervisor, by the
        cloud's clock) and `answers` (greeted on SSH)."""

    address: str | None = None
    flavor: str | None = None
    fault: str | None = None
    host: str | None = None


@dataclass(frozen=True)
class Flavor:
    """A VM type."""

    id: str
    name: str
    cores: int
    memory_mb: int
    disk_gb: int | None = None  # None: the image decides

    def __str__(self):
        disk = "" if self.disk_gb is None else f", {self.disk_gb} GB disk"
        return f"{self.name} ({self.cores} cores, {self.memory_mb} MB{disk})"


# The report's five VM types, Eucalyptus's defaults then (paper cloud_platforms, table 5).
PAPER_FLAVORS = tuple(Flavor("", *row) for row in (
    ("m1.small", 1, 128, 2), ("c1.medium", 1, 256, 5), ("m1.large", 2, 512, 10),
    ("m1.xlarge", 2, 1024, 20), ("c1.xlarge", 4, 2048, 20)))


@dataclass(frozen=True)
class Quota:
    """Use and limit of a resource; limit None: unknown or unlimited."""

    used: int
    limit: int | None = None

    def has_room(self, amount: int) -> bool:
        return self.limit is None or self.used + amount <= self.limit
