"""A cloud: images, VM types, servers, volumes, keys, whichever software it is made of."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from labbook.checks import did_you_mean
from labbook.errors import InputError, LabError
from labbook.systems.cloud import waits
from labbook.systems.cloud.ledger import Ledger, remove
from labbook.systems.cloud.model import (
    ERROR,
    GONE,
    IN_USE,
    READY,
    Flavor,
    Image,
    Key,
    Quota,
    Server,
    Volume,
)

VOLUME_SECONDS, IMAGE_SECONDS, END_SECONDS = 120, 900, 120


class Cloud:
    """One cloud as one user has it. `api` speaks with it: an OpenStackApi or an Ec2Api.

    All that is made carries the study's id, and is in the `ledger` before it is made. What waits
    raises SystemFailure when the time is up. InputError: the cloud refuses the credentials, or what
    was asked for is not there; LabError: it does not answer, a quota is exceeded, no host has room.
    """

    def __init__(self, api, ledger: Ledger, own=None, at_end: Callable = lambda: None):
        """`own`: the entry of the environment file, for a user's own. `at_end` is called once all
        is removed."""
        self.api, self.ledger, self.own, self._at_end = api, ledger, own, at_end
        self.user = own.user if own else "root"

    # what there is

    def images(self) -> Sequence[Image]:
        """All that may be used here, the cloud's own and the study's."""
        return self.api.images()

    def flavors(self) -> Sequence[Flavor]:
        return self.api.flavors()

    def servers(self) -> Sequence[Server]:
        """The study's own, and nobody else's."""
        return [one for one in self.api.servers() if one.state != GONE]     # some are listed a while after

    def volumes(self) -> Sequence[Volume]:
        """The study's own."""
        return self.api.volumes()

    def quota(self) -> dict[str, Quota]:
        """Of servers, cores, memory_mb, volumes and volume_gb, those that the cloud tells."""
        return self.api.quota()

    def image(self, label: str, path: Path | None = None, **how) -> Image:
        """The image that the environment file names for `label`; else `path`, uploaded so."""
        named = self.own.images.get(label) if self.own else None
        if named is None and path is not None:
            return self.upload_image(path, label=label, **how)
        return self._named(named or label, self.images(), f"images.{label}", "image")

    def flavor(self, name: str) -> Flavor:
        """The VM type that the environment file names for `name`; else the one of that name."""
        named = self.own.flavors.get(name, name) if self.own else name
        return self._named(named, self.flavors(), f"flavors.{name}", "flavour")

    # making

    def upload_image(self, path: Path, *, label: str = "image", disk_format: str = "raw",
                     kernel: Image | None = None, ramdisk: Image | None = None) -> Image:
        """A file as an image, once it can be used. `disk_format`: raw, qcow2, or aki and ari for
        the kernel and the ramdisk of others."""
        if not Path(path).is_file():
            raise InputError("no such file to upload as an image", file=path)
        with self.ledger.making("image", label) as entry:
            called = time.time()
            made = self.api.send_image(entry.name, Path(path), disk_format, kernel, ramdisk)
            entry.ids = [made]
        return self._image_ready(made, entry.name, called)

    def make_flavor(self, flavor: Flavor) -> Flavor:
        """A VM type of that name and these sizes, where this user may make one."""
        with self.ledger.making("flavor") as entry:
            entry.ids = [self.api.make_flavor(entry.name, flavor)]
        return next(one for one in self.flavors() if one.id == entry.ids[0])

    def make_key(self, public: str) -> Key:
        """A public key (a line such as of a .pub file) that servers can be given."""
        with self.ledger.making("key") as entry:
            made = self.api.make_key(entry.name, public.strip())
            entry.ids = [made]
        return Key(made, entry.name, READY)

    def run(self, n: int, image: Image, flavor: Flavor, key: Key | None,
            label: str = "server") -> list[Server]:
        """Start `n` servers in one call. Returns those that the cloud made of it as soon as it has
        answered, each with the moments `called` and `returned`; `await_running` goes on from there.

        LabError when the quota, as far as the cloud tells it, or its hosts have no room for them.
        """
        if n < 1:
            raise InputError(f"{n} servers", key="n", allowed="1 and more")
        self._require_room(n, flavor)
        with self.ledger.making("server", label) as entry:
            called = time.time()
            made = self.api.run(entry.name, n, image, flavor, key)
            returned = time.time()
            made = made or self.api.servers(name=entry.name)
            entry.ids = [server.id for server in made]
        for server in made:
            server.flavor = str(flavor)
            server.moments |= {"called": called, "returned": returned}
        return made

    def create_volume(self, gb: int, label: str = "volume") -> Volume:
        """An empty volume, once it can be attached."""
        with self.ledger.making("volume", label) as entry:
            called = time.time()
            made = self.api.make_volume(entry.name, gb)
            entry.ids = [made]
            returned = time.time()
        volume = Volume(made, entry.name, "", gb, moments={"called": called, "returned": returned})
        self._await_volume(volume, READY, "to be made")
        return volume

    def snapshot(self, server: Server, label: str = "snapshot") -> Image:
        """An image of a running server's disk, once it can be used."""
        with self.ledger.making("image", label) as entry:
            called = time.time()
            entry.ids = [self.api.snapshot(server.id, entry.name)]
        return self._image_ready(entry.ids[0], entry.name, called)

    # using

    def await_running(self, servers, seconds: float = 300, interval: float = 0.5) -> list[Server]:
        """Ask until the API says of each that it runs, or failed, or the time is up; brings state,
        address, fault, host and the moment `running` of each up to date. Raises for none of them:
        `require_running` does."""
        return waits.running(self.api, list(servers), seconds, interval)

    def require_running(self, servers) -> None:
        """LabError when no host had room, SystemFailure when one does not run for another reason."""
        waits.require_running(servers, self.console)

    def await_answers(self, servers, dial=None, seconds: float = 300) -> list[Server]:
        """Try until each greets on ssh, or the time is up; sets the moment `answers`. Of those that
        never do, `require_answers` tells. `dial(address, port, timeout=...)` gives a socket from
        where guests are reached (a host's `dial`; this machine's without)."""
        return waits.answers(list(servers), dial, seconds)

    def require_answers(self, servers) -> None:
        """SystemFailure, with the end of its console, for one that runs and never answered."""
        waits.require_answers(servers, self.console)

    def reboot(self, servers, hard: bool = False) -> None:
        """All of them at once: in one call where the API has one for several, else in as many calls
        side by side. Whether each did is to be asked of its guest (boot_id), not of the API."""
        called = time.time()
        self.api.reboot([server.id for server in servers], hard)
        for server in servers:
            server.moments["rebooted"] = called

    def terminate(self, servers, seconds: float = END_SECONDS) -> None:
        """End them, and wait until the cloud has none of them any more."""
        ids = [server.id for server in servers]
        self.api.terminate(ids)
        waits.until(lambda: {s.id for s in self.api.servers(ids=ids) if s.state != GONE},
                    lambda left: not left, f"{len(ids)} servers to end", seconds)
        for server in servers:
            server.state = GONE
        self.ledger.strike(ids)

    def attach(self, server: Server, volume: Volume, device: str | None = None) -> Volume:
        """Under the name `device` if it may be chosen; volume.device is what the API then says,
        which need not be what the guest sees."""
        self.api.attach(server.id, volume.id, device)
        self._await_volume(volume, IN_USE, f"to be attached to {server.name}")
        return volume

    def detach(self, volume: Volume) -> Volume:
        self.api.detach(volume.id, volume.server)
        self._await_volume(volume, READY, "to be detached")
        return volume

    def delete_volume(self, volume: Volume) -> None:
        self._delete("volume", volume, VOLUME_SECONDS)

    def delete_image(self, image: Image) -> None:
        self._delete("image", image, VOLUME_SECONDS)

    def console(self, server: Server) -> str:
        """The end of what the guest wrote to its console, as far as the cloud keeps it."""
        return self.api.console(server.id)

    # ending

    def destroy(self) -> None:
        """Remove all that was made; LabError says what stays. Twice does no harm."""
        problems = remove(self.api, self.ledger)
        if problems:
            raise LabError("; ".join(problems), remedy="`labbook down` tries again")
        self._at_end()

    def facts(self) -> dict:
        """What it is, without addresses or users."""
        return {"cloud": self.own.name if self.own else "the lab's", **self.api.facts()}

    def _named(self, named, there, what, kind):
        found = [one for one in there if named in (one.id, one.name)]
        if len(found) == 1:
            return found[0]
        names = sorted(one.name for one in there if one.name)
        problem = f"{len(found)} of them are called" if found else "the cloud has none called"
        raise InputError(f"{kind}: {problem} {named!r}{did_you_mean(named, names)}",
                         file=self.own and self.own.file, key=self.own and self.own.key(what),
                         allowed="its id" if found else names[:40] or "the cloud has none at all")

    def _require_room(self, n, flavor):
        """Before the call, whose answer may tell less."""
        asked = {"servers": n, "cores": n * flavor.cores, "memory_mb": n * flavor.memory_mb}
        for what, quota in self.quota().items():
            if what in asked and not quota.has_room(asked[what]):
                raise LabError(f"{n} servers of {flavor} exceed the cloud's quota of {what}: "
                               f"{asked[what]} more, {quota.used} of {quota.limit} used",
                               remedy="Ask for fewer or smaller ones, or have the quota raised")

    def _image_ready(self, made, name, called) -> Image:
        returned = time.time()
        image = waits.until(lambda: self.api.image(made), lambda i: i.state in (READY, ERROR),
                            f"image {name} to be ready", IMAGE_SECONDS)
        waits.require(image, READY)
        image.moments |= {"called": called, "returned": returned, "ready": time.time()}
        return image

    def _await_volume(self, volume, state, what):
        seen = waits.until(lambda: self.api.volume(volume.id), lambda v: v.state in (state, ERROR),
                           f"volume {volume.name} {what}", VOLUME_SECONDS)
        volume.state, volume.server, volume.device = seen.state, seen.server, seen.device
        waits.require(volume, state)
        volume.moments[state] = time.time()

    def _delete(self, kind, thing, seconds):
        self.api.delete(kind, thing.id)
        waits.until(lambda: self.api.find(kind, "", [thing.id]), lambda left: not left,
                    f"{kind} {thing.name} to be deleted", seconds)
        thing.state = GONE
        self.ledger.strike([thing.id])
