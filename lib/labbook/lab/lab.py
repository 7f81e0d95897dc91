"""A lab: hosts, sites and links brought up in an environment for one study."""

import os
from collections.abc import Sequence
from contextlib import contextmanager, suppress

from labbook import paths
from labbook.errors import InputError, LabbookError, LabError
from labbook.lab import registry
from labbook.lab.description import LEAST_QUOTA
from labbook.lab.environment.clouds import OwnCloud
from labbook.lab.host.host import Host
from labbook.lab.ownership import Ownership
from labbook.lab.quantities import size_text
from labbook.lab.registry import LabRecord

LEAST_BELOW_KIB = 16 << 10      # a disk is written in blocks of some MB, which fail as a whole


class Lab:
    """A running lab, from `up` or `attach`. A context manager: it goes down at the block's end.

    `hosts` by name; `routers` by site; `clouds`: the user's own clouds that the environment names,
    by name; `programs`: the folders of benchmarks that it names, by the benchmark's name.
    """

    def __init__(self, lab_id: str, provider, made: dict, ownership: Ownership):
        self.id, self.folder, self._made, self._ownership = lab_id, ownership.folder, made, ownership
        self._provider, self._down = provider, False
        everything = [provider.host(h, self.folder) for h in made["hosts"]]
        self.hosts = {h.name: h for h in everything if h.role != "router"}
        self.routers = {h.site: h for h in everything if h.role == "router"}
        self._links, self._before_down = {}, []
        self.study = made.get("study", "")
        self.clouds = {facts["name"]: OwnCloud(**facts) for facts in made.get("clouds", ())}
        self.programs = made.get("programs", {})

    @classmethod
    def up(cls, description, environment, lab_id: str | None = None, keep: bool = False) -> "Lab":
        """Bring a lab up, after taking down what an earlier lab of this id left.

        `keep`: it stays up when this process ends. LabError when another process owns the lab, when
        the machine or a host lacks something, or when a host does not answer.
        """
        provider = registry.provider_of(environment)
        lab_id = lab_id or default_id(description.name, environment)
        ownership = _own(lab_id, provider)
        folder, lab = ownership.folder, None
        try:
            (folder / "keep").unlink(missing_ok=True)
            made = provider.up(lab_id, description, environment)
            made["links"] = [dict(link) for link in description.links]
            made["study"] = description.name
            made["checkout"] = str(paths.checkout())
            made["clouds"] = [cloud.facts() for cloud in environment.clouds]
            made["programs"] = dict(environment.programs)
            lab = cls(lab_id, provider, made, ownership)
            registry.save(made, folder)
            lab._shape_links()
        except BaseException:
            try:
                if lab is not None:
                    lab._close()
                with suppress(LabError):  # the journal stays; the next command tries again
                    provider.down(lab_id)
            finally:
                ownership.release()
            raise
        if keep:
            lab.keep()
        return lab

    @classmethod
    def attach(cls, lab_id: str) -> "Lab":
        """Take over a lab that is up. LabError when there is none, or another process owns it, or its lab.json is
        damaged."""
        provider = registry.provider_holding(lab_id)
        ownership = Ownership(provider.state_folder(lab_id))
        made = registry.made_of(ownership.folder)
        ownership.require()
        return cls(lab_id, provider, made, ownership)

    @staticmethod
    def list() -> Sequence[LabRecord]:
        """Labs of this machine and user that are completely up."""
        return registry.running_labs()

    @staticmethod
    def sweep(everything: bool = False) -> Sequence[str]:
        """Take down labs whose owner died (with `everything`, kept ones too); return their ids.

        LabError, after all have been tried, when one could not be taken down.
        """
        return registry.sweep(everything)

    @staticmethod
    def take_down(lab_id: str) -> None:
        """Take down a lab that is up, also one whose lab.json is damaged; LabError as of `down`."""
        registry.take_down(lab_id)

    def host(self, name: str) -> Host:
        """The host of this name; LabError names those that there are."""
        try:
            return self.hosts[name]
        except KeyError:
            raise LabError(f"lab {self.id} has no host {name} (it has: "
                           f"{', '.join(self.hosts)})") from None

    def role(self, role: str) -> Sequence[Host]:
        """All hosts of a role, in lab.yml's order."""
        return [h for h in self.hosts.values() if h.role == role]

    def site(self, site: str) -> Sequence[Host]:
        """All hosts of a site, in lab.yml's order."""
        return [h for h in self.hosts.values() if h.site == site]

    def link(self, a: str, b: str):
        """The Link between two sites; LabError when lab.yml has none."""
        from labbook.lab.link.link import Link

        pair = frozenset((a, b))
        if pair not in {frozenset(link["between"]) for link in self._made["links"]}:
            raise LabError(f"lab {self.id} has no link between {a} and {b}")
        if pair not in self._links:
            first, second = next(link["between"] for link in self._made["links"]
                                 if frozenset(link["between"]) == pair)
            self._links[pair] = Link(self, first, second)
        return self._links[pair]

    def links(self) -> Sequence:
        """All links, in lab.yml's order."""
        return [self.link(*link["between"]) for link in self._made["links"]]

    def disk(self, host: str):
        """A host's own Disk; LabError when lab.yml gives it none."""
        from labbook.lab.disk.disk import Disk

        mine = self.host(host)
        return Disk(mine, lambda host: self._provider.trace(self.id, host),
                    lambda command: self._provider.ask_disk(self.id, mine, command),
                    lambda: self._provider.served_log(self.id, mine))

    def check_links(self) -> Sequence[dict]:
        """Ping through every link: a dict each (see Link.check). LabError when one is not as asked."""
        return [link.check() for link in self.links()]

    def limit(self, host: str, quota: float | None) -> None:
        """Set a host's quota to `quota` CPUs' time, or (None) to all of its cores' time.

        LabError when lab.yml gave it no quota.
        """
        if quota is not None and not quota >= LEAST_QUOTA:
            raise InputError(f"{quota!r} is no share of CPU time", key="quota",
                             allowed=f"{LEAST_QUOTA} and more")
        if "quota" not in self.host(host).limits:
            raise LabError(f"{host} came up without a quota, so it takes none now")
        self._provider.limit(self.id, self.host(host), quota)
        self.host(host).limits["quota"] = quota

    def freeze(self, *hosts: str) -> Sequence[str]:
        """Stop all processes of these hosts but sshd until `thaw`, so that they leave the machine to
        others. Servers take longer freezes for a loss of their connections: seconds do no harm, minutes
        may.

        Returns the hosts that are frozen: hosts without a freezer (see `facts`) just go on. LabError when
        a process does not stop; then none of the hosts is frozen.
        """
        return self._freeze(hosts, True)

    def thaw(self, *hosts: str) -> None:
        """Let the processes of frozen hosts go on."""
        self._freeze(hosts, False)

    @contextmanager
    def only(self, *hosts: str):
        """A context in which all hosts but these are frozen."""
        for name in hosts:
            self.host(name)
        others = [name for name in self.hosts if name not in hosts]
        try:
            yield self.freeze(*others)
        finally:
            self.thaw(*others)

    def _freeze(self, names, frozen: bool) -> Sequence[str]:
        chosen = [self.host(name) for name in dict.fromkeys(names) if self.host(name).name in self._freezers]
        if chosen:
            self._provider.freeze(self.id, chosen, frozen)
        return [host.name for host in chosen]

    @property
    def _freezers(self) -> set[str]:
        """The names of the hosts that can be frozen."""
        return {made["name"] for made in self._made["hosts"] if made.get("freezer")}

    def short_of_memory(self) -> Sequence[str]:
        """One sentence for each host where the kernel killed processes at the memory limit; known
        only for hosts that are sandboxes of this machine."""
        killed = ((host, self._provider.ended_for_memory(self.id, host))
                 for host in self.hosts.values() if host.limits.get("memory"))
        return [f"{host.name} had too little memory ({size_text(host.limits['memory'])}): the kernel "
                f"killed {number} of its processes" for host, number in killed if number]

    def short_of_space(self) -> Sequence[str]:
        """One sentence for each host with a disk of its own below which the machine's disk is full: such a
        disk is a sparse file, and what its host wrote may be lost without an error that a program sees."""
        made = {host["name"]: host for host in self._made["hosts"]}
        return [f"the disk below the one of {host.name} is full, so that what {host.name} wrote may be lost"
                for host in self.hosts.values() if host.limits.get("disk")
                and self._provider.space_below(made[host.name], host) < LEAST_BELOW_KIB]

    def broken_disks(self) -> Sequence[str]:
        """One sentence for each modelled disk that has ended, or at which requests failed."""
        problems = ((host, self._broken(host)) for host in self.hosts.values()
                    if "model" in host.limits.get("disk", {}))
        return [f"the modelled disk of {host.name} {problem}" for host, problem in problems if problem]

    def _broken(self, host) -> str:
        try:
            state = self._provider.ask_disk(self.id, host, "status")
        except LabError as error:
            return f"has ended, so that all requests to it fail ({error})"
        why = ": the disk below it is full" if state["full"] else ""
        return f"failed {state['failed']} requests{why}" if state["failed"] else ""

    def facts(self) -> dict:
        """For the record: provider, hosts with site, role, cores and limits, links as asked.

        Hosts that are machines of their own also have `machine`: cpu, cores, memory_gib, kernel,
        system. `shared_cores`: those of the lab's own cores that other labs were free to use as well.
        `without_freezer`: hosts that `freeze` leaves as they are.
        """
        machines = {h["name"]: {"machine": h["machine"]} if "machine" in h else {}
                    for h in self._made["hosts"]}
        return {
            "provider": self._provider.NAME,
            "hosts": {h.name: {"site": h.site, "role": h.role, "cores": h.cores,
                               "limits": h.limits, **machines[h.name]}
                      for h in self.hosts.values()},
            "links": [{"between": [link.site_a, link.site_b], **link.asked}
                      for link in self.links()],
            "shared_cores": self._made.get("shared_cores", []),
            "without_freezer": [name for name in self.hosts if name not in self._freezers],
        }

    def before_down(self, undo) -> None:
        """Call `undo()` when this object takes the lab down, the last registered first: for what a
        system made outside of the lab's hosts."""
        self._before_down.append(undo)

    def keep(self) -> None:
        """Let it stay up when this process ends, and let others take it over. Until then a killed start is swept."""
        (self.folder / "keep").touch()
        self._ownership.release()

    def down(self) -> None:
        """Undo all that the journal names, and nothing else; a second call does nothing.

        LabError when another process owns the lab, or something cannot be undone.
        """
        problems = []
        try:        # the lab goes down all the same
            while self._before_down:
                try:
                    self._before_down.pop()()
                except LabbookError as error:
                    problems.append(error)
        finally:
            self._take_down()
        if problems:
            raise problems[0]

    def _close(self):
        """Close the connections to its hosts."""
        for host in [*self.hosts.values(), *self.routers.values()]:
            with suppress(Exception):
                host.close()

    def _take_down(self):
        if self._down:
            return
        self._close()
        try:
            if self.folder.exists():
                if not self._ownership.held:  # it was brought up with `keep`
                    self._ownership.require()
                self._provider.down(self.id)
        finally:  # also after a failure, so that another process can try again
            self._ownership.release()
        self._down = True  # a later lab of this id is not this object's

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.down()

    def _shape_links(self):
        for link in self._made["links"]:
            settings = {k: v for k, v in link.items() if k != "between"}
            if settings:
                self.link(*link["between"]).shape(**settings)


def default_id(name: str, environment) -> str:
    """A lab id that is the same for a study, checkout, user, machine and environment, so that a new run finds
    what an earlier one left."""
    import hashlib

    from labbook.lab.remote.claim import machine_mark

    whose = f"{machine_mark()}\0{paths.checkout()}\0{name}\0{os.getuid()}\0{environment.name}"
    return hashlib.sha256(whose.encode()).hexdigest()[:8]


def _own(lab_id, provider) -> Ownership:
    """Lock a lab id, and take down what an earlier lab of this id left."""
    for _ in range(3):
        ownership = Ownership(provider.open_state(lab_id))
        try:
            ownership.require()
        except LabError:
            if ownership.folder.exists():
                raise
            continue  # another process swept the folder while it was empty
        if not (ownership.folder / "journal").exists():
            return ownership
        try:
            provider.down(lab_id)
        finally:
            ownership.release()
    raise LabError(f"lab {lab_id} comes back each time it is taken down")
