"""Keystone behind a proxy on a cluster of databases, at one or several sites."""

from labbook.errors import InputError
from labbook.systems.base import Needs, errors_of
from labbook.systems.cluster import Cluster, in_parallel
from labbook.systems.galera.cluster import Galera
from labbook.systems.galera.config import BYTE
from labbook.systems.haproxy import HAProxy
from labbook.systems.keystone import state
from labbook.systems.keystone.server import Keystone

PARTS = {"db": Galera, "lb": HAProxy, "keystone": Keystone}  # by the role of a host
SHARED = ("send_window", "user_send_window", "keepalive_s", "durability")    # settings of Galera
COUNT = {"type": "integer", "minimum": 0, "maximum": 100_000}


class KeystoneCloud(Cluster):
    """Hosts of role db are the cluster's nodes, the first of which leads; the host of role lb has the
    proxy for the nodes of its own site; the host of role keystone has Keystone.

    It starts from a seed database (see state.seed) with `users` in `projects` and a revocation table of
    `revocations` rows.
    segments: 1, or as many as the cluster has sites, numbered in the order of the sites.
    weight: of the first node; the others have 1.
    """

    NAME = "keystone_cloud"
    SETTINGS = {
        "segments": {"type": "integer", "minimum": 1, "default": 1},
        "weight": {**BYTE, "default": 1},
        **{key: Galera.SETTINGS[key] for key in SHARED},
        **{key: Keystone.SETTINGS[key] for key in ("cache", "processes")},
        "users": {**COUNT, "default": 1000},
        "projects": {**COUNT, "default": 100},
        "revocations": {**COUNT, "default": 50},
    }
    NEEDS = Needs.union(*(part.NEEDS for part in PARTS.values()))
    PARTS = {role: part.NAME for role, part in PARTS.items()}
    protocol = Keystone.protocol

    @classmethod
    def checked(cls, settings: dict) -> dict:
        settings = super().checked(settings)
        with errors_of(cls.NAME):
            Galera.checked({key: settings[key] for key in ("send_window", "user_send_window")})
            state.check_entries(settings["revocations"])
            if settings["users"] and not settings["projects"]:
                raise InputError("users need a project", key="projects", allowed="1 and more")
        return settings

    def make_nodes(self) -> list:
        databases, (proxy,), (keystone,) = (self._parts(role) for role in PARTS)
        require_apart(proxy, databases)
        s = self.settings
        self.galera = Galera(databases, weights=[s.weight, *[1] * (len(databases) - 1)],
                             segments=segments([host.site for host in databases], s.segments),
                             **{key: getattr(s, key) for key in SHARED})
        self.haproxy = HAProxy.over(proxy, self.galera)
        self.keystone = Keystone.over(keystone, self.haproxy, cache=s.cache, processes=s.processes)
        return [*self.galera.nodes, self.haproxy, self.keystone]

    @property
    def front(self) -> Keystone:
        return self.keystone

    @property
    def addresses(self) -> list[str]:
        return [self.address]

    @property
    def processes(self) -> list:
        """The processes of the database nodes."""
        return self.galera.processes

    @property
    def credentials(self) -> dict:
        return self.keystone.credentials

    @property
    def url(self) -> str:
        return self.keystone.url

    def deploy(self) -> None:
        s = self.settings
        self.galera.data, self.keystone.secrets = state.seed(
            self.galera.host, self.keystone.host, users=s.users, projects=s.projects,
            revocations=s.revocations)
        in_parallel(self.nodes, lambda node: node.provide())    # a new seed removed its servers' homes
        self.galera.deploy()
        self.haproxy.deploy()
        self.keystone.put_files()

    def start(self) -> None:
        with self.all_or_none():
            self.keystone.begin()  # it loads its code while the cluster starts
            self.galera.start()
            self.haproxy.start()
            self.keystone.await_answer()

    def stop(self) -> None:
        self.keystone.stop()
        self.haproxy.stop()
        self.galera.stop()

    def reset(self) -> None:
        """Restore users, projects and revocations; see state.reset."""
        s = self.settings
        state.reset(self.keystone, self.galera, s.users, s.projects, s.revocations)

    def facts(self) -> dict:
        """The settings, and each part's facts under its name."""
        return {"system": self.NAME, **vars(self.settings),
                **{part.NAME: part.facts() for part in (self.galera, self.haproxy, self.keystone)}}

    def _parts(self, role: str) -> list:
        found = self.of_role(role)
        if not found or len(found) > 1 and role != "db":
            raise InputError(f"{len(found)} hosts of role {role}", file="hosts of keystone_cloud",
                             key="role", allowed="db: 1 and more, lb: 1, keystone: 1")
        return found


def require_apart(proxy, databases) -> None:
    """InputError if the proxy and a database, which use the same port, share an address."""
    for host in databases:
        if host.address == proxy.address:
            raise InputError(f"{proxy.name} and {host.name} have one address, where both would serve "
                             f"at port {HAProxy.port}", file="hosts of keystone_cloud", key="role",
                             allowed="lb on a machine that is no db")


def segments(sites: list[str], wanted: int) -> list[int]:
    """The segment of each node, by its site; InputError if `wanted` is neither 1 nor the number of sites."""
    if wanted == 1:
        return [0] * len(sites)
    order = list(dict.fromkeys(sites))
    if wanted != len(order):
        raise InputError(f"{wanted} segments do not fit databases in {len(order)} "
                         f"site{'s' * (len(order) > 1)}", file=f"settings of {KeystoneCloud.NAME}", key="segments",
                         allowed=" or ".join(dict.fromkeys(("1", str(len(order))))))
    return [order.index(site) for site in sites]
