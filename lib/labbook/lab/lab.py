"""A lab: hosts, sites and links brought up in an environment for one study."""

import json
import os
from collections.abc import Sequence
from contextlib import suppress

from labbook.errors import InputError, LabbookError, LabError
from labbook.lab import registry
from labbook.lab.description import LEAST_QUOTA
from labbook.lab.environment.clouds import OwnCloud
from labbook.lab.host.host import Host
from labbook.lab.ownership import Ownership
from labbook.lab.quantities import size_text
from labbook.lab.registry import LabRecord


class Lab:
    """Made by `up` or `attach`; `hosts` by name, routers apart from them by site; `clouds`: those of
    the user's own that the environment names, by name; `programs`: folders of the benchmarks that
    it names, by the benchmark's name."""

    def __init__(self, lab_id: str, provider, made: dict, ownership: Ownership):
        self.id, self.folder, self._made, self._ownership = lab_id, ownership.folder, made, ownership
        self._provider, self._down = provider, False
        everything = [provider.host(h, self.folder) for h in made["hosts"]]
        self.hosts = {h.name: h for h in everything if h.role != "router"}
        self.routers = {h.site: h for h in everything if h.role == "router"}
        self._links, self._before_down = {}, []
        self.study = made.get("study", "")
        self.clouds = {told["name"]: OwnCloud(**told) for told in made.get("clouds", ())}
        self.programs = made.get("programs", {})

    @classmethod
    def up(cls, description, environment, lab_id: str | None = None, keep: bool = False) -> "Lab":
        """Bring the lab up; what an earlier lab of this id left is taken down first.

        `keep`: it stays when this process ends. LabError when another process has the lab, when
        the place lacks something, or when a host does not answer.
        """
        provider = registry.provider_of(environment)
        lab_id = lab_id or default_id(description.name, environment)
        ownership = _own(lab_id, provider)
        folder = ownership.folder
        try:
            (folder / "keep").unlink(missing_ok=True)
            made = provider.up(lab_id, description, environment)
            made["links"] = [dict(link) for link in description.links]
            made["study"] = description.name
            made["clouds"] = [cloud.told() for cloud in environment.clouds]
            made["programs"] = dict(environment.programs)
            lab = cls(lab_id, provider, made, ownership)
            registry.save(made, folder)
            lab._shape_links()
            if keep:  # not before it is up: a start that was killed is swept
                (folder / "keep").touch()
        except BaseException:
            try:
                with suppress(LabError):  # the journal stays, and the next command tries again
                    provider.down(lab_id)
            finally:
                ownership.release()
            raise
        if keep:
            ownership.release()
        return lab

    @classmethod
    def attach(cls, lab_id: str) -> "Lab":
        """Take up a lab that is there."""
        provider = registry.provider_holding(lab_id)
        ownership = Ownership(provider.state_folder(lab_id))
        try:
            made = json.loads((ownership.folder / "lab.json").read_text())
        except FileNotFoundError:
            raise LabError(f"no lab {lab_id} is up", remedy="`labbook status` lists labs") from None
        ownership.require()
        return cls(lab_id, provider, made, ownership)

    @staticmethod
    def list() -> Sequence[LabRecord]:
        """Labs of this machine that this user made and that are wholly up."""
        return registry.running_labs()

    @staticmethod
    def sweep(everything: bool = False) -> Sequence[str]:
        """Take down labs whose owner died (with `everything`, kept ones too): their ids.

        LabError, once all have been tried, when one cannot be taken down.
        """
        return registry.sweep(everything)

    def host(self, name: str) -> Host:
        try:
            return self.hosts[name]
        except KeyError:
            raise LabError(f"lab {self.id} has no host {name} (it has: "
                           f"{', '.join(self.hosts)})") from None

    def role(self, role: str) -> Sequence[Host]:
        return [h for h in self.hosts.values() if h.role == role]

    def site(self, site: str) -> Sequence[Host]:
        return [h for h in self.hosts.values() if h.site == site]

    def link(self, a: str, b: str):
        """The path between two sites."""
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
        return [self.link(*link["between"]) for link in self._made["links"]]

    def disk(self, host: str):
        """The disk that a host has for itself; LabError when lab.yml gave it none."""
        from labbook.lab.disk.disk import Disk

        return Disk(self.host(host), lambda host: self._provider.trace(self.id, host))

    def check_links(self) -> Sequence[dict]:
        """HostRequest and measured of every link; LabError when one is not what was asked."""
        return [link.check() for link in self.links()]

    def limit(self, host: str, quota: float | None) -> None:
        """Give a host `quota` CPUs' time from now on, or (None) all that its cores have.

        LabError when lab.yml gave it no quota to begin with.
        """
        if quota is not None and not quota >= LEAST_QUOTA:
            raise InputError(f"{quota!r} is no share of CPU time", key="quota",
                             allowed=f"{LEAST_QUOTA} and more")
        self._provider.limit(self.id, self.host(host), quota)
        self.host(host).limits["quota"] = quota

    def short_of_memory(self) -> Sequence[str]:
        """Hosts whose processes were ended at their limit of memory, a line each, as far as this
        machine's kernel tells it."""
        ended = ((host, self._provider.ended_for_memory(self.id, host))
                 for host in self.hosts.values() if host.limits.get("memory"))
        return [f"{host.name} had too little memory ({size_text(host.limits['memory'])}): the kernel "
                f"ended {number} of its processes" for host, number in ended if number]

    def facts(self) -> dict:
        """What a reader must know of the place: hosts with limits and cores, links as asked.

        Of hosts that are machines of their own also `machine`: cpu, cores, memory_gib, kernel,
        system.
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
        }

    def before_down(self, undo) -> None:
        """Have `undo()` called when the lab goes down by this object, the last one first: for what a
        system made that does not go with its hosts."""
        self._before_down.append(undo)

    def down(self) -> None:
        """Take down all that the journal names, and nothing else; twice does no harm.

        LabError when another process has it, or something cannot be taken down.
        """
        problems = []
        while self._before_down:
            try:
                self._before_down.pop()()
            except LabbookError as error:   # the lab goes down all the same
                problems.append(error)
        self._take_down()
        if problems:
            raise problems[0]

    def _take_down(self):
        if self._down:
            return
        for host in [*self.hosts.values(), *self.routers.values()]:
            with suppress(Exception):
                host.close()
        try:
            if self.folder.exists():
                if not self._ownership.held:  # left to explore
                    self._ownership.require()
                self._provider.down(self.id)
        finally:  # when a host was away: whoever tries again finds it free
            self._ownership.release()
        self._down = True  # the next lab of this id is another's

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
    """The same for a study, a checkout and an environment, so that a new run finds what an earlier
    one left."""
    import hashlib

    from labbook.paths import checkout

    whose = f"{checkout()}\0{name}\0{os.getuid()}\0{environment.name}"
    return hashlib.sha256(whose.encode()).hexdigest()[:8]


def _own(lab_id, provider) -> Ownership:
    """The lab's lock, with nothing of an earlier lab of this id left."""
    for _ in range(3):
        ownership = Ownership(provider.open_state(lab_id))
        try:
            ownership.require()
        except LabError:
            if ownership.folder.exists():
                raise
            continue  # another process's sweep had it, still empty, and has taken it away
        if not (ownership.folder / "journal").exists():
            return ownership
        try:
            provider.down(lab_id)
        finally:
            ownership.release()
    raise LabError(f"lab {lab_id} comes back while it is taken down")
