"""What a cloud has: images, VM types (flavours), servers, volumes, keys, as every cloud tells them."""

from dataclasses import dataclass, field

# States that all clouds' own words are told in.
STARTING, RUNNING, REBOOTING, STOPPED, ENDING, GONE, ERROR = (
    "starting", "running", "rebooting", "stopped", "ending", "gone", "error")
MAKING, READY, IN_USE = "making", "ready", "in use"     # of images and volumes, beside ERROR


@dataclass
class Thing:
    """`state` is one of the words above. `moments`: epoch seconds, by this machine's clock, at
    which the call for it began (`called`), it returned (`returned`), and more by kind."""

    id: str
    name: str
    state: str
    moments: dict[str, float] = field(default_factory=dict, kw_only=True)


@dataclass
class Image(Thing):
    size_bytes: int | None = None


@dataclass
class Key(Thing):
    """A public key that servers can be given."""


@dataclass
class Volume(Thing):
    size_gb: int
    server: str | None = None   # the id of the one that it is attached to, under the name `device`
    device: str | None = None


@dataclass
class Server(Thing):
    """`fault`: why the cloud says that it failed. `host`: of the cloud, where it tells that.
    `moments` also: `running` (when the API first said so), `launched` (the cloud's own word for the
    start by its hypervisor, by its clock), `answers` (when it greeted on ssh)."""

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
    disk_gb: int | None = None  # None where the image alone decides

    def __str__(self):
        disk = "" if self.disk_gb is None else f", {self.disk_gb} GB disk"
        return f"{self.name} ({self.cores} cores, {self.memory_mb} MB{disk})"


# The report's five VM types, Eucalyptus's defaults of its time (cloud_platforms, table 5).
PAPER_FLAVORS = tuple(Flavor("", *row) for row in (
    ("m1.small", 1, 128, 2), ("c1.medium", 1, 256, 5), ("m1.large", 2, 512, 10),
    ("m1.xlarge", 2, 1024, 20), ("c1.xlarge", 4, 2048, 20)))


@dataclass(frozen=True)
class Quota:
    """How much of something may be had; `limit` None: not told, or no limit."""

    used: int
    limit: int | None = None

    def has_room(self, for_so_many: int) -> bool:
        return self.limit is None or self.used + for_so_many <= self.limit
