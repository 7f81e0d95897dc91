"""OpenStack, one of two releases, as a cloud of the lab: controller, network and compute on one host."""

import importlib.metadata
import re
import time

from labbook.errors import InputError, LabError
from labbook.lab.cache.push import push
from labbook.systems.base import Described, Needs
from labbook.systems.cloud.cloud import Cloud
from labbook.systems.cloud.ledger import Ledger
from labbook.systems.cloud.openstack import OpenStackApi
from labbook.systems.openstack import guest as guests
from labbook.systems.openstack import seed as openstack_seed
from labbook.systems.openstack.platform import Platform
from labbook.systems.openstack.releases import PORTS, RELEASES

NEWEST = "2026.2"
MARK = "labbook"
PLUMBING = {"bridge": "a Linux bridge, by the platform itself",
            "tap": "tap devices by the platform, bridged by the lab"}
VERSIONS = """import importlib.metadata as m
for one in "keystone glance openstack-placement nova neutron cinder".split():
    print(one, m.version(one))"""


class LabCloud(Cloud):
    """Goes with its platform, so that nothing on it need be removed one by one."""

    def destroy(self) -> None:
        self._at_end()


class LabApi(OpenStackApi):
    """An OpenStack of the lab's, which tells more of itself. `told`: {key: value}."""

    def __init__(self, connection, network: str, told: dict):
        super().__init__(connection, MARK, network=network)
        self._told = told

    def facts(self) -> dict:
        return {**super().facts(), **self._told}


class OpenStack(Described):
    """Of `hosts`, the one of role cloud has all of it but the volumes, which are on the first of role
    store, or on the same host where there is none.

    release: zed (Debian's packages) or 2026.2 (PyPI's). cache_mode: how the host keeps servers' disks
    and volumes in its memory, in libvirt's words. Servers are in one network, with the host; they have
    the images `guest` and `guest-1gb` (other sizes: guest.SIZES_GB), and the VM types of the report.
    """

    NAME = "openstack"
    SETTINGS = {
        "release": {"enum": list(RELEASES), "default": NEWEST},
        "cache_mode": {"enum": ["none", "writeback", "writethrough", "directsync", "unsafe"],
                       "default": "none"},
    }
    NEEDS = Needs(packages=(*RELEASES[NEWEST].packages, *guests.NEEDS.packages),
                  commands=("ss", "ps", *guests.NEEDS.commands), artifacts=(RELEASES[NEWEST].python,))
    protocol, port = "openstack", PORTS["keystone"]

    def __init__(self, hosts, **settings):
        self.settings = self.checked(settings)
        self.host = _of_role(hosts, "cloud")
        if self.host.is_remote:
            raise LabError(f"{self.host.name} is no host that the lab made, and a platform takes over all of "
                           "one", remedy="Name a cloud of your own in the environment file")
        store = next((host for host in hosts if host.role == "store"), self.host)
        self.release = RELEASES[self.settings["release"]]
        self.platform = Platform(self.host, store, self.release, openstack_seed.secrets(),
                                 self.settings["cache_mode"])
        self.guest = self._cloud = None

    @classmethod
    def needs(cls, **settings) -> Needs:
        release = RELEASES[cls.checked(settings)["release"]]
        artifacts = (release.python,) if release.python else ()
        return Needs((*release.packages, *guests.NEEDS.packages), artifacts, cls.NEEDS.commands)

    def up(self) -> "OpenStack":
        """Take away what an earlier run left, and start from copies of databases that are made once.

        Returns once all services have reported; SystemFailure, with the log's tail of the one that
        has not.
        """
        self.platform.destroy()
        self.guest = guests.guest(self.host)
        seed = openstack_seed.seed(self.platform, self.guest)
        try:
            self.platform.start_ground(openstack_seed.data(self.platform, seed))
            self.platform.deploy(guests.accelerated(self.host, self.guest, push(self.host, self.guest.folder)))
            openstack_seed.plant(self.platform, self.guest, seed)
            since = time.time()
            self.platform.start()
            with openstack_seed.complaining(self.platform, "come up"):
                self._cloud = self._made_cloud(seed.told["network"], since)
        except BaseException:
            self.platform.destroy()
            raise
        return self

    @property
    def address(self) -> str:
        return self.host.address

    @property
    def cloud(self) -> Cloud:
        """As a user has it; its `destroy` takes the platform down."""
        if self._cloud is None:
            raise InputError("this OpenStack is not up", key="cloud", allowed="up() first")
        return self._cloud

    def destroy(self) -> None:
        """End all that is of the platform, its servers too, and take their files away."""
        self._cloud = None
        self.platform.destroy()

    stop = destroy  # nothing is kept that could be started again

    def facts(self) -> dict:
        """Settings, versions of its parts, and what a server has under and around it."""
        return {"system": self.NAME, **self.settings, **self._told(), "versions": self._versions()}

    def _made_cloud(self, network, since) -> Cloud:
        connection = openstack_seed.connection(self.platform)
        openstack_seed.await_workers(self.platform, connection, since)
        return LabCloud(LabApi(connection, network, self._told()), Ledger(MARK), at_end=self.destroy)

    def _told(self) -> dict:
        """See the page of the study: what is to be known of a cloud beside its measurements."""
        store = self.platform.store
        where = f"host {store.name}" if self.platform.apart else "the same host"
        accelerated = self.platform.place.virt_type == "kvm"
        return {
            "platform": f"OpenStack {self.release.name}",
            "hypervisor": f"{self.platform.hypervisor.version()}, "
                          + ("KVM" if accelerated else "processors emulated"),
            "accelerated": accelerated, "cores": self._cores(), "compute_machines": 1,
            "own_plumbing": self.release.plug == "bridge", "plumbing": PLUMBING[self.release.plug],
            "guest": self.guest.name, "volume_way": f"NBD over TCP from {where}",
            "client": f"openstacksdk {importlib.metadata.version('openstacksdk')}",
        }

    def _cores(self) -> int:
        return len(self.host.cores) if self.host.cores else int(self.host.run("nproc").stdout)

    def _versions(self) -> dict:
        said = self.host.run(f"{self.platform.place.python} - <<'E'\n{VERSIONS}\nE").stdout
        return dict(re.findall(r"(\S+) (\S+)", said))


def _of_role(hosts, role):
    found = [host for host in hosts if host.role == role]
    if len(found) != 1:
        raise InputError(f"{len(found)} hosts of role {role}", file="hosts of openstack", key="role",
                         allowed=f"{role}: 1")
    return found[0]
