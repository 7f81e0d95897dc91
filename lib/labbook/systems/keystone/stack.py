"""Keystone behind a proxy on a cluster of databases, at one or several sites."""

from contextlib import suppress

from labbook.errors import InputError, LabbookError
from labbook.systems.base import Described, Needs
from labbook.systems.galera.cluster import Galera
from labbook.systems.galera.config import BYTE
from labbook.systems.haproxy import HAProxy
from labbook.systems.keystone import state
from labbook.systems.keystone.server import Keystone

PARTS = {"db": Galera, "lb": HAProxy, "keystone": Keystone}  # by the role of a host
FILE = "settings of keystone_cloud"
COUNT = {"type": "integer", "minimum": 0, "maximum": 100_000}


def union(*needs: Needs) -> Needs:
    """What any of these needs, without duplicates."""
    return Needs(*(tuple(dict.fromkeys(one for need in needs for one in getattr(need, kind)))
                   for kind in ("packages", "artifacts", "commands", "made")))


class KeystoneCloud(Described):
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
        **{key: Galera.SETTINGS[key] for key in ("send_window", "user_send_window", "durability")},
        **{key: Keystone.SETTINGS[key] for key in ("cache", "processes")},
        "users": {**COUNT, "default": 1000},
        "projects": {**COUNT, "default": 100},
        "revocations": {**COUNT, "default": 50},
    }
    NEEDS = union(*(part.NEEDS for part in PARTS.values()))
    PARTS = {role: part.NAME for role, part in PARTS.items()}
    protocol = Keystone.protocol

    def __init__(self, hosts, **settings):
        self.settings = self.checked(settings)
        self.hosts = list(hosts)
        by_role = {role: self._of_role(role) for role in PARTS}
        require_apart(by_role["lb"][0], by_role["db"])
        s = self.settings
        shared = ("send_window", "user_send_window", "durability")
        self.galera = Galera(
            by_role["db"], segments=segments([host.site for host in by_role["db"]], s["segments"]),
            weights=[s["weight"], *[1] * (len(by_role["db"]) - 1)], **{key: s[key] for key in shared})
        self.haproxy = HAProxy.over(by_role["lb"][0], self.galera)
        self.keystone = Keystone.over(by_role["keystone"][0], self.haproxy,
                                      cache=s["cache"], processes=s["processes"])
        self.host = self.keystone.host
        self.address, self.port = self.keystone.address, self.keystone.port

    @classmethod
    def checked(cls, settings: dict) -> dict:
        settings = super().checked(settings)
        Galera.checked({key: settings[key] for key in ("send_window", "user_send_window")})
        state.check_entries(settings["revocations"])
        if settings["users"] and not settings["projects"]:
            raise InputError("users need a project", file=FILE, key="projects",
                             allowed="1 and more")
        return settings

    @property
    def credentials(self) -> dict:
        return self.keystone.credentials

    @property
    def url(self) -> str:
        return self.keystone.url

    @property
    def process(self):
        """Keystone's process."""
        return self.keystone.process

    @property
    def processes(self) -> list:
        """The processes of the database nodes."""
        return self.galera.processes

    def up(self) -> "KeystoneCloud":
        """Remove what earlier runs left, deploy, and start all parts from the seed database."""
        self.destroy()
        for part in (*self.galera.nodes, self.haproxy, self.keystone):
            part.provide()
        numbers = {key: self.settings[key] for key in ("users", "projects", "revocations")}
        self.galera.data, self.keystone.secrets = state.seed(self.galera.host, self.keystone.host,
                                                       **numbers)
        try:
            self.keystone.put_files()
            self.keystone.begin()  # it loads its code while the cluster starts
            self.galera.up()
            self.haproxy.up()
            self.keystone.await_answer()
        except BaseException:
            with suppress(LabbookError):  # the first error is the one to report
                self.stop()
            raise
        return self

    def stop(self) -> None:
        self.keystone.stop()
        self.haproxy.stop()
        self.galera.stop()

    def destroy(self) -> None:
        """Stop all parts and remove their files."""
        for part in (self.keystone, self.haproxy, self.galera):
            part.destroy()

    def reset(self) -> None:
        """Restore users and revocations; see state.reset."""
        state.reset(self.keystone, self.galera, self.settings["users"], self.settings["revocations"])

    def facts(self) -> dict:
        """The settings, and each part's facts under its name."""
        return {"system": self.NAME, **self.settings,
                **{part.NAME: part.facts() for part in (self.galera, self.haproxy, self.keystone)}}

    def _of_role(self, role: str) -> list:
        found = [host for host in self.hosts if host.role == role]
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
                         f"site{'s' * (len(order) > 1)}", file=FILE, key="segments",
                         allowed=" or ".join(dict.fromkeys(("1", str(len(order))))))
    return [order.index(site) for site in sites]
