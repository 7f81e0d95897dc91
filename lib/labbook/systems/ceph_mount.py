"""A Ceph file system mounted on a client host by ceph-fuse, which can be ended whatever hangs."""

from labbook.systems.base import Described, Needs


class CephMount(Described):
    """One mount on one host, named by `name`; a host may have several, each a client of its own.

    `ceph` gives `client_files()`: {"ceph.conf": text, "keyring": text} by which client.admin finds
    and reaches the cluster. `path` is the folder on the host where the file system is seen, below
    the host's own folder: for programs there, and never for this process.

    cache_inodes: client_cache_size, how many inodes the client keeps (None: as shipped, 16384).
    The host must be let use FUSE: `limits: {fuse: true}` in lab.yml.
    """

    NAME = "ceph_mount"
    SETTINGS = {
        "name": {"type": "string", "pattern": "^[a-z][a-z0-9-]{0,15}$", "default": "client1"},
        "cache_inodes": {"type": "integer", "minimum": 1},
        "data_cache_mb": {"type": "integer", "minimum": 0},
    }
    NEEDS = Needs(packages=("ceph-fuse", "procps"), commands=("ceph-fuse", "ps"))
    protocol = "file"

    def __init__(self, host, ceph, **settings):
        self.host, self.ceph, self.settings = host, ceph, self.checked(settings)

    @property
    def path(self):
        """A PurePosixPath on the host."""

    @property
    def process(self):
        """ceph-fuse's; None when it never was up. `process.pid` is a pid of the host's."""

    def up(self, seconds: float = 30) -> "CephMount":
        """Take away what an earlier one of this name left, mount, and return once the root
        directory answers. SystemFailure with ceph-fuse's log when it does not in `seconds`, and
        then nothing is mounted; LabError before anything starts where FUSE cannot be used."""

    def alive(self, seconds: float = 5) -> bool:
        """Whether a stat of the root directory is answered within `seconds`; the process that
        asks is left alone after them."""

    def call(self, command: str, seconds: float):
        """Run a shell command that may hang on the mount, with $PWD the mount's own path: its
        Result, or None when it had not ended after `seconds`. It is then killed, and ends at the
        latest when the mount does."""

    def ask(self, prefix: str, **args) -> dict:
        """What ceph-fuse says at its admin socket: `mds_sessions`, `status`, `perf dump`,
        `dump cache`, ... It answers also when the mount hangs. LabError when nobody answers."""

    def sessions(self) -> dict[int, str]:
        """{rank: state} of the client's sessions with MDSs: opening, open, stale, closed,
        rejected, ..."""

    def cut(self) -> bool:
        """Whether the cluster has shut this client out (evicted, blocklisted), by its own words."""

    def inodes(self) -> int:
        """How many inodes the client's cache holds now."""

    def end(self, seconds: float = 10) -> None:
        """Unmount: in order when that takes no more than `seconds`; else the connection to the
        kernel is aborted, at which all callers end with an error, and ceph-fuse is killed.
        Returns within about twice `seconds`, and nothing is mounted then."""

    def destroy(self) -> None:
        """End it at once, hung or not, and take its files away."""

    def facts(self) -> dict:
        """name, version, settings, resident_mb."""
