"""A Ceph cluster with its file system: one monitor, OSDs, and metadata servers that come and go."""

from labbook.systems.base import Described, Needs


class Ceph(Described):
    """Of `hosts`, the one of role mon has the monitor, those of role osd an OSD each, those of role
    mds a metadata server (MDS) each, as many as are asked for; hosts of other roles are ignored.

    osds: where the OSDs keep their objects, in `memory` or on their hosts' `disk` (BlueStore).
    active: MDSs with a rank. standby: further ones that wait. replay: the spares follow the ranks,
    one a rank; without `standby` there are then as many as ranks. cache_mb: mds_cache_memory_limit.
    balancer: as shipped (every 10 s), or never. beacon_grace_s: after how long without a word an
    MDS counts as dead. propose_s: paxos_propose_interval; None: both as shipped.

    An MDS is called by the name of its host. InputError for what cannot be a cluster.
    """

    NAME = "ceph"
    SETTINGS = {
        "osds": {"enum": ["memory", "disk"], "default": "memory"},
        "replication": {"type": "integer", "minimum": 1, "default": 1},
        "active": {"type": "integer", "minimum": 1, "default": 1},
        "standby": {"type": "integer", "minimum": 0, "default": 0},
        "replay": {"type": "boolean", "default": False},
        "cache_mb": {"type": ["integer", "null"], "minimum": 16, "default": None},
        "balancer": {"type": "boolean", "default": True},
        "beacon_grace_s": {"type": ["number", "null"], "exclusiveMinimum": 0, "default": None},
        "propose_s": {"type": ["number", "null"], "exclusiveMinimum": 0, "default": 0.2},
    }
    NEEDS = Needs(packages=("ceph-mon", "ceph-osd", "ceph-mds", "ceph-common", "python3-rados"))
    protocol = "cephfs"
    fs_name = "labbook"

    def __init__(self, hosts, **settings):
        """.host .hosts .settings (a dict) .address .port: the monitor's; .mdss: by name."""
        raise NotImplementedError

    # --- life

    def up(self) -> "Ceph":
        """Take away what earlier runs left and make a fresh cluster; returns when the file system
        has all ranks up:active and the spares are there; SystemFailure with a log's tail if not."""

    def stop(self) -> None:
        """End all daemons at once (SIGKILL to the OSDs and MDSs: nothing is kept)."""

    def destroy(self) -> None:
        """End what runs and take its files away."""

    def facts(self) -> dict:
        """Settings, versions as the daemons tell them, and settings as the running MDS has them."""

    @property
    def process(self):
        """The monitor's."""

    @property
    def processes(self) -> list:
        """Those of all daemons: .daemons("mds") for one kind, a dict by name."""

    # --- what clients need

    def mount(self, host, **settings) -> "CephMount":
        """A mount of the file system on a client host, not yet up: see CephMount."""

    def client_config(self, **options) -> str:
        """Text of a ceph.conf for a client: monitors, keyring file `keyring` beside it, and these
        options (with _ for blanks) in section [client]."""

    @property
    def client_keyring(self) -> str:
        """Text of a keyring with client.admin."""

    # --- who has which rank

    def fs_map(self) -> "FsMap":
        """One cheap call: epoch, modified_s, max_mds, ranks {rank: Daemon}, standbys [Daemon],
        followers {rank: Daemon} (standby-replay), failed [rank], damaged [rank].

        Daemon: name, rank (None: standby), state (such as `active`, `replay`, without `up:`),
        gid, address, laggy.
        """

    def ranks(self) -> "dict[int, Daemon]": ...

    def standbys(self) -> "list[Daemon]": ...

    def active(self, count: int, seconds=60) -> None:
        """Set max_mds and wait."""

    def await_active(self, count: int | None = None, seconds=60) -> "FsMap":
        """Returns the map once `count` ranks (settings' `active`) are up:active and no other has a
        rank; SystemFailure that tells how they stand if not."""

    def kill(self, rank: int) -> "tuple[str, float]":
        """SIGKILL to the MDS that has this rank: its name, and when it was sent (epoch)."""

    def start_mds(self, name: str) -> float:
        """Start the MDS of that name again, with the same id; when (epoch). Does not wait."""

    def fail(self, rank: int) -> float:
        """`ceph mds fail`: the monitor takes the rank away at once; when it was asked (epoch)."""

    def standby_replay(self, on: bool, seconds=60) -> None:
        """Have spares follow ranks or not; returns when those that can do."""

    def pin(self, mount_path, rank) -> None:
        """(not here: setfattr ceph.dir.pin on the mount is the workload's)"""

    # --- what daemons tell

    def ask(self, name: str, prefix: str, seconds=10, **arguments) -> "dict | list":
        """A daemon's admin socket; `name` of its host: `perf dump`, `status`, `get subtrees`,
        `session ls`, `dump_ops_in_flight`, `config get` (var="mds_cache_memory_limit")."""

    def command(self, prefix: str, seconds=10, **arguments) -> "dict | list":
        """The monitor's commands: `fs dump`, `osd dump`, `osd blocklist ls`, `mds fail`
        (role_or_gid="labbook:1"). Integers and strings as `ceph` would send them."""

    def watch(self, seconds_between=0.5) -> "Watch":
        """Begin to sample all MDSs, one sampler process a host; `.end()` gives a DataFrame, one row
        a sample and daemon: t_s (epoch), daemon, rank, state, inodes, dentries, dirs, exported,
        imported (directory trees since its start), exported_inodes, imported_inodes, requests,
        forward, subtrees (how many it owns), owned (their paths, a list). Usable as `with`.
        A dead daemon has no rows; a daemon started again is sampled again."""

    def fault_log(self, since_s: float) -> "Faults":
        """What monitor and MDSs told since then: .states (DataFrame: t_s, epoch, rank, daemon,
        state: each change of the map, exact, as the monitor dated it), .noticed_s (rank, daemon,
        t_s of each death that the monitor noticed, or that was failed by hand), .evicted (client
        ids, t_s), .blocklisted (addresses), .crashes (daemon, t_s, words, log tail: asserts,
        signals, `respawn`, `suicide`, other than daemons that were killed here), .map_updated
        (False: noticed, and the map never changed), .exports_unfinished (daemon, path)."""
