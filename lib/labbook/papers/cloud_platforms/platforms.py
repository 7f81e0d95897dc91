"""Which platforms are up: one for each arm, on hosts of its own, for one repeat or for all of a study.

An arm is a release, or a cache mode of one release. `starts` of a point says how long its platform lives:
`each` repeat has one that has just come up, or `one` start serves all repeats and experiments of a lab.
"""

import threading
from dataclasses import dataclass, field
from typing import Any

from labbook.lab import LabDescription
from labbook.systems.cloud.user_cloud import own_cloud
from labbook.systems.cluster import in_parallel
from labbook.systems.openstack.lab_cloud import OpenStack
from labbook.workloads.clouds.guests import Guests
from labbook.workloads.clouds.testbed import Testbed

STARTS = ("one", "each")
HOSTED = "cloud"        # the role of a host that runs a platform
CONTAINERS = "containers"       # a kind of servers
COMPUTE = "compute"     # of one that runs guests alone; those in the lab are of the one platform that is up then


@dataclass
class Bed:
    """The testbed of one platform in a `lab`. `via`: the host from which its servers are reached; `hosts`: the
    lab's hosts that run it, none of a user's own cloud. A `kept` one outlives the block that asked for it.
    `mounted`: the id of the server that has a volume; `types`: server types that were made, by name or MB of memory;
    `warm`: the ids of the servers that were warmed up last."""

    testbed: Testbed
    lab: Any
    via: Any
    hosts: list
    config: tuple = ()
    kept: bool = False
    mounted: str = ""
    types: dict = field(default_factory=dict)
    warm: list = field(default_factory=list)

    def destroy(self) -> None:
        if not self.kept:
            self.testbed.destroy()


def host_sets(description: LabDescription, arms: list) -> dict:
    """{arm: names of the hosts of its platform}, in turn those of the systems in lab.yml."""
    sets = [list(system["hosts"]) for system in description.systems]
    return {arm: sets[i % len(sets)] for i, arm in enumerate(arms)}


class Platforms:
    """The platforms of a study's lab. description: of lab.yml, which has the releases' settings."""

    def __init__(self, description: LabDescription):
        self._description, self._lab, self._beds, self._lock = description, None, [], threading.Lock()

    def beds(self, attempt, arms, everyone, **types) -> dict:
        """{arm: its Bed} of arms of the attempt's point that are to be up at once; `types` as of `bed`.

        everyone: all arms of the experiment, which are brought up together, since other points of the block
        may have arms that this one leaves out.
        """
        def make(lab, arm, hosts):
            return self.bed(lab, attempt.point.of(arm), hosts, alone=not attempt.at_once, **types)

        def make_all(lab):
            hosts = self._hosts(lab, attempt, everyone)
            return in_parallel(everyone, lambda arm: make(lab, arm, hosts[arm]))

        if attempt.at_once:
            made = attempt.setup(make_all)
            return {arm: bed for arm, bed in zip(everyone, made) if arm in arms}
        return {arm: attempt.setup(lambda lab, arm=arm: make(lab, arm, attempt.hosts(arm)), arm=arm)
                for arm in arms}

    def _hosts(self, lab, attempt, arms) -> dict:
        """{arm: names of its hosts}, of arms that are up at once: those of this repeat. An arm whose hosts another
        one's kept platform has gets those that are left."""
        wanted = {arm: attempt.hosts(arm) for arm in arms}
        kept = {arm: {host.name for host in bed.hosts}
                for arm in arms if (bed := self._kept(lab, attempt.point.of(arm)))}
        free = [hosts for hosts in wanted.values() if not set(hosts) & set().union(*kept.values())]
        homeless = [arm for arm in arms if arm not in kept and wanted[arm] not in free]
        left = [wanted[arm] for arm in kept if wanted[arm] in free]
        return wanted | dict(zip(homeless, left))

    def bed(self, lab, point, hosts: list[str], *, alone: bool = False, **types) -> Bed:
        """The bed of the point's release, cache mode, memory, plumbing and kind of servers: one that is kept, or a new
        one on these hosts.

        alone: no other platform is up beside it. types: see `_set`.
        """
        config = _config(lab, point)
        if not alone and (found := self._kept(lab, point)):
            return _set(found, **types)     # where it is, on whichever hosts: one start serves all repeats
        for other in self._to_end(lab, config, hosts, alone, fresh=point.starts == "each"):
            other.testbed.destroy()
        found = self._bed_of(config)
        if found is None:
            found = self._made(lab, point, hosts, config)
            if found.kept:
                with self._lock:
                    self._beds.append(found)
        return _set(found, **types)

    def _kept(self, lab, point) -> Bed | None:
        """The bed of an earlier point that serves this one, too."""
        return self._bed_of(_config(lab, point)) if point.starts == "one" and lab is self._lab else None

    def _bed_of(self, config) -> Bed | None:
        return next((bed for bed in self._beds if bed.config == config), None)

    def _to_end(self, lab, config, hosts, alone, fresh) -> list[Bed]:
        """The kept beds that are in the way of this one; they are kept no longer."""
        with self._lock:
            if lab is not self._lab:        # the former lab took its platforms with it
                self._lab, self._beds = lab, []
            in_the_way = [bed for bed in self._beds if (fresh or bed.config != config) and (
                alone or {host.name for host in bed.hosts} & set(hosts))]
            self._beds = [bed for bed in self._beds if bed not in in_the_way]
            return in_the_way

    def _made(self, lab, point, hosts, config) -> Bed:
        if point.release in lab.clouds:
            cloud, via, its = own_cloud(lab, point.release), lab.role("client")[0], []
        else:
            its = [*(lab.host(name) for name in hosts), *lab.role(COMPUTE)]
            _, settings = self._description.system(point.release)
            kernel = None if _kind(point) == CONTAINERS else lab.programs.get("kernel")
            cloud = OpenStack(its, kernel, **settings, cache_mode=point.cache_mode, plumbing=_plumbing(point),
                              servers=_kind(point)).up().cloud
            via = next(host for host in its if host.role == HOSTED)
        path, public = ssh_key(via, point.release)
        testbed = Testbed(cloud, cloud.image("guest"), None, cloud.make_key(public),
                          Guests(cloud, via, path).reach, via.dial)
        return Bed(testbed, lab, via, its, config, kept=point.starts == "one")


def _config(lab, point) -> tuple:
    """What beds differ in. A cloud of the user's is one, for all points' plumbing and kinds of servers."""
    own = point.release in lab.clouds
    return (point.release, point.cache_mode, point.params.get("memory"), None if own else _plumbing(point),
            None if own else _kind(point))


def _plumbing(point) -> str:
    """How the lab's own platforms get servers into their network, by the point's `network`; see OpenStack."""
    return point.params.get("network", "release")


def _kind(point) -> str:
    """What the servers of the lab's own platforms are, by the point's `inside`; see OpenStack."""
    return point.params.get("inside", "machines")


def _set(bed: Bed, vm: str, large: str | None = None, seconds: float | None = None) -> Bed:
    """The bed, whose servers are from now on of the type `vm`, or `large`, and may take so long to boot."""
    testbed = bed.testbed
    testbed.flavor = testbed.cloud.flavor(vm)
    testbed.large = large and testbed.cloud.flavor(large)
    testbed.seconds = Testbed.seconds if seconds is None else seconds
    return bed


def ssh_key(via, release: str) -> tuple[str, str]:
    """Path on `via` of the private key by which it reaches the servers of a release's cloud (made once), and the public
    key. Beside it are the keys of those servers, so that each cloud has a folder of its own."""
    path = via.root / "servers" / release / "key"
    via.run(f"mkdir -p {path.parent} && test -f {path} || ssh-keygen -q -t ed25519 -N '' -f {path}")
    return str(path), via.run(f"cat {path}.pub").stdout
