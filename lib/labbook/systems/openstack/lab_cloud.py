"""An OpenStack of one of two releases in a lab, with controller, network and compute on one host."""

import importlib.metadata
import re
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import SimpleNamespace

from labbook.errors import InputError, LabError
from labbook.lab.cache.push import push
from labbook.systems.base import Described, Needs
from labbook.systems.cloud.cloud import Cloud
from labbook.systems.cloud.ledger import Ledger
from labbook.systems.cloud.openstack import TAG, OpenStackApi
from labbook.systems.keystone.config import Secrets
from labbook.systems.openstack import guest, seed, services, vswitch
from labbook.systems.openstack.other_client import OtherClient
from labbook.systems.openstack.platform import Platform
from labbook.systems.openstack.releases import CONTAINERS, PORTS, RELEASES

NEWEST = "2026.2"
MARK = "labbook"
TSC_RATE = Path(__file__).with_name("on_host") / "tsc_rate.py"
PLUMBING = {"bridge": "a Linux bridge, by the platform itself",
            "tap": "tap devices by the platform, bridged by the lab",
            "ovs": "Open vSwitch with its datapath in user space, by the platform itself",
            "macvlan": "a macvlan device of each container's own, by the platform itself"}
PROCESSORS = {"kvm": "KVM", "qemu": "processors emulated", "lxc": "containers"}
VERSIONS = """import importlib.metadata as m
for one in "keystone glance openstack-placement nova neutron cinder".split():
    print(one, m.version(one))"""


class LabCloud(Cloud):
    """Removed with its platform: its resources need not be removed one by one."""

    def destroy(self) -> None:
        self._at_end()


class LabApi(OpenStackApi):
    """The API of a lab's OpenStack. `description`: further facts about it. other: an OtherClient."""

    def __init__(self, connection, network: str, description: dict, other: OtherClient):
        super().__init__(connection, MARK, network=network)
        self._description, self._other = description, other
        self.other_client = description["other_client"]

    def facts(self) -> dict:
        return {**super().facts(), **self._description}

    def snapshot_by_other(self, server_id, name):
        return self._other.snapshot(server_id, name, {TAG: self._mark})


class ContainersApi(LabApi):
    """As LabApi, of servers that are containers."""

    def snapshot(self, server_id, name):
        raise _cannot("have images made of them")

    def snapshot_by_other(self, server_id, name):
        raise _cannot("have images made of them")

    def attach(self, server_id, volume_id, device):
        raise _cannot("have volumes attached")

    def reboot(self, ids, hard):
        if not hard:
            raise _cannot("be rebooted by themselves")
        super().reboot(ids, hard)


def _cannot(what: str) -> InputError:
    return InputError(f"servers that are containers cannot {what}", key="servers", allowed="machines")


class OpenStack(Described):
    """The host of role cloud runs everything except volumes, which are on the first host of role store if
    there is one, and guests, which are on the hosts of role compute if there are any. Guests of two of these do not
    reach each other.

    release: zed (Debian's packages) or 2026.2 (PyPI's).
    cache_mode: libvirt's cache mode of guests' disks and volumes.
    plumbing: how guests get into their network: as the release can without further programs (see releases.Release),
    or "ovs", through Open vSwitch, into which every release plugs them itself.
    servers: what a server is: an emulated or accelerated machine, or a container (by libvirt's LXC driver).

    Guests share one network with the host. There are the images `guest` (the smallest) and `guest-1gb` and
    so on (guest.SIZES_GB), and the VM types of the report.
    """

    NAME = "openstack"
    SETTINGS = {
        "release": {"enum": list(RELEASES), "default": NEWEST},
        "cache_mode": {"enum": ["none", "writeback", "writethrough", "directsync", "unsafe"],
                       "default": "none"},
        "plumbing": {"enum": ["release", "ovs"], "default": "release"},
        "servers": {"enum": ["machines", "containers"], "default": "machines"},
    }
    NEEDS = Needs(packages=(*RELEASES[NEWEST].packages, *guest.NEEDS.packages),
                  commands=("ss", "ps", *guest.NEEDS.commands), artifacts=(RELEASES[NEWEST].python,))
    protocol, port = "openstack", PORTS["keystone"]

    def __init__(self, hosts, kernel: str | None = None, **settings):
        """kernel: the folder of one of the user's own for guests, which then run on KVM; see own_kernel."""
        self._kernel = kernel
        self.settings = SimpleNamespace(**self.checked(settings))
        self.in_containers = self.settings.servers == "containers"
        if self.in_containers and (kernel or self.settings.plumbing != "release"):
            raise InputError("servers that are containers have no kernel and no other plumbing than their own",
                             key="servers", allowed="machines")
        self.host = _of_role(hosts, "cloud")
        if self.host.is_remote:
            raise LabError(f"{self.host.name} is not a local host, and a platform takes over a whole host",
                           remedy="Name a cloud of your own in the environment file")
        store = next((host for host in hosts if host.role == "store"), self.host)
        self.release = RELEASES[self.settings.release]
        made = partial(Platform, self.host, store, self.release, Secrets.of_machine(), self.settings.cache_mode,
                       "ovs" if self.settings.plumbing == "ovs" else None)
        computes = [host for host in hosts if host.role == "compute"]
        self.platform = made(computes, in_containers=self.in_containers)
        self._plain = made() if computes or self.in_containers else self.platform     # by which the seed is made
        self.guest = self._cloud = None

    @classmethod
    def needs(cls, **settings) -> Needs:
        checked = cls.checked(settings)
        release, switch = RELEASES[checked["release"]], vswitch.PACKAGES if checked["plumbing"] == "ovs" else ()
        artifacts = (release.python,) if release.python else ()
        more = CONTAINERS if checked["servers"] == "containers" else ()
        return Needs((*release.packages, *guest.NEEDS.packages, *switch, *more), artifacts, cls.NEEDS.commands)

    def up(self) -> "OpenStack":
        """Remove what an earlier run left, and start from a copy of the seed databases.

        Returns once all services have reported; SystemFailure with the end of the log of one that has not.
        """
        self.platform.destroy()
        self.guest = guest.make(self.host, kernel=self._kernel)
        with ThreadPoolExecutor(1) as beside:      # to boot a guest in vain takes 20 s, once a start of the machine
            accelerated = beside.submit(self._is_accelerated)
            databases = seed.databases(self._plain, self.guest)
            self._start(databases, accelerated)
        return self

    def _is_accelerated(self) -> bool:
        if self.in_containers:
            return False
        there = push(self.host, self.guest.folder)
        return guest.accelerated(self.host, self.guest, there, self._kernel)

    def _start(self, databases, accelerated) -> None:
        try:
            self.platform.start_backends(seed.data(self.platform, databases))
            self.platform.deploy(accelerated.result())
            seed.plant(self.platform, self.guest, databases)
            since = time.time()
            self.platform.start()
            with seed.failing_with_log(self.platform, "come up"):
                self._cloud = self._made_cloud(databases.contents["network"], since)
        except BaseException:
            self.platform.destroy()
            raise

    @property
    def address(self) -> str:
        return self.host.address

    @property
    def cloud(self) -> Cloud:
        """The cloud as its user sees it; its `destroy` removes the platform."""
        if self._cloud is None:
            raise InputError("this OpenStack is not up", key="cloud", allowed="up() first")
        return self._cloud

    def destroy(self) -> None:
        """Kill the platform and its guests, remove their files, and close the ways to its APIs."""
        self._cloud = None
        for way in [*self.host.tunnels]:
            way.close()
        self.platform.destroy()

    stop = destroy  # nothing could be started again

    def facts(self) -> dict:
        """Settings and description."""
        return {"system": self.NAME, **vars(self.settings), **self._describe()}

    def _made_cloud(self, network, since) -> Cloud:
        connection = seed.connection(self.platform)
        seed.await_workers(self.platform, connection, since)
        if self.platform.computes:
            seed.retire_others(connection, {host.name for host in self.platform.computes})
            self.platform.manage(services.discovering(self.platform.layout))
        if self.in_containers:
            seed.without_devices(connection)
        elif words := self._guest_words():
            seed.add_words(connection, words)
        home = self.platform.layout.home
        other = OtherClient(self.host, seed.administrator(), home / "keys" / "password", home)
        described = self._describe() | {"other_client": other.name()}
        api = ContainersApi if self.in_containers else LabApi
        return LabCloud(api(connection, network, described, other), Ledger(MARK), at_end=self.destroy)

    def _guest_words(self) -> str:
        """What the guests' kernels get on their command line here, beside what their images say. The counter by which
        an emulated processor tells the time is the machine's own; a kernel that measures its rate while the machine
        is busy may find a fifth of it."""
        words = [vswitch.GUEST_WORDS] if self.platform.layout.plug == "ovs" else []
        if self.platform.layout.virt_type == "qemu":
            khz = self.host.run(f"{self.host.python} -I -S - <<'E'\n{TSC_RATE.read_text()}E").stdout.strip()
            words.append(f"tsc_early_khz={khz}")
        return " ".join(words)

    def _describe(self) -> dict:
        """Properties of the cloud, and versions of its parts, that the study records beside its measurements."""
        store = self.platform.store
        where = f"host {store.name}" if self.platform.apart else "the same host"
        virt_type = self.platform.layout.virt_type
        return {
            "platform": f"OpenStack {self.release.name}",
            "hypervisor": f"{self.platform.hypervisors[0].version()}, "
                          + PROCESSORS[virt_type],
            "accelerated": virt_type != "qemu", "cores": self._cores(), "compute_machines": len(self.platform.hypervisors),
            "own_plumbing": self.platform.layout.plug != "tap", "plumbing": PLUMBING[self.platform.layout.plug],
            "guest": self.guest.name, "volume_way": f"NBD over TCP from {where}",
            "client": f"openstacksdk {importlib.metadata.version('openstacksdk')}", "versions": self._versions(),
        }

    def _cores(self) -> int:
        return len(self.host.cores) if self.host.cores else int(self.host.run("nproc").stdout)

    def _versions(self) -> dict:
        output = self.host.run(f"{self.platform.layout.python} - <<'E'\n{VERSIONS}\nE").stdout
        return dict(re.findall(r"(\S+) (\S+)", output))


def _of_role(hosts, role):
    found = [host for host in hosts if host.role == role]
    if len(found) != 1:
        raise InputError(f"{len(found)} hosts of role {role}", file="hosts of openstack", key="role",
                         allowed=f"{role}: 1")
    return found[0]
