"""A cloud as its user sees it: images, VM types, servers, volumes and keys, over either API."""

from collections.abc import Callable, Sequence
from pathlib import Path

from labbook.checks import did_you_mean
from labbook.errors import InputError, LabError
from labbook.lab import clock
from labbook.systems.cloud import errors, host_keys, waits
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
    """One user's view of one cloud. `api`: an OpenStackApi or an Ec2Api.

    All that is made carries the study's id and is in the `ledger` before it is made. Waits raise
    SystemFailure after their time limit. InputError: the cloud refuses the credentials, or something
    that was named does not exist. LabError: no answer, a quota is exceeded, or no host has room.
    """

    def __init__(self, api, ledger: Ledger, own=None, at_end: Callable = lambda: None):
        """`own`: the cloud's entry in the environment file. `at_end` is called after `destroy` has
        removed everything."""
        self.api, self.ledger, self.own, self._at_end = api, ledger, own, at_end
        self.user = own.user if own else "root"

    # queries

    def images(self) -> Sequence[Image]:
        """All images that this user can start servers from."""
        return self.api.images()

    def flavors(self) -> Sequence[Flavor]:
        return self.api.flavors()

    def servers(self) -> Sequence[Server]:
        """The study's servers."""
        return [one for one in self.api.servers() if one.state != GONE]     # clouds list some for a while

    def volumes(self) -> Sequence[Volume]:
        """The study's volumes."""
        return self.api.volumes()

    def quota(self) -> dict[str, Quota]:
        """Quotas of servers, cores, memory_mb, volumes and volume_gb, as far as the cloud reports them."""
        return self.api.quota()

    def image(self, label: str, path: Path | None = None, **how) -> Image:
        """The image that the environment file names for `label`; without one, `path` is uploaded."""
        named = self.own.images.get(label) if self.own else None
        if named is None and path is not None:
            return self.upload_image(path, label=label, **how)
        return self._named(named or label, self.images(), f"images.{label}", "image")

    def flavor(self, name: str) -> Flavor:
        """The VM type that the environment file names for `name`, or else the one of that name."""
        named = self.own.flavors.get(name, name) if self.own else name
        return self._named(named, self.flavors(), f"flavors.{name}", "flavour")

    # creating

    def upload_image(self, path: Path, *, label: str = "image", disk_format: str = "raw",
                     kernel: Image | None = None, ramdisk: Image | None = None) -> Image:
        """Upload a file and wait until the image is usable.

        disk_format: raw or qcow2; aki and ari for a kernel and a ramdisk, which other images can name.
        InputError without the file; SystemFailure where the image does not become usable.
        """
        if not Path(path).is_file():
            raise InputError("no such file", file=path)
        with self.ledger.making("image", label) as entry:
            called = clock.now()
            made = self.api.send_image(entry.name, Path(path), disk_format, kernel, ramdisk)
            entry.ids = [made]
        return self._image_ready(made, entry.name, called)

    def make_flavor(self, flavor: Flavor) -> Flavor:
        """Create a VM type of these sizes, if this user may."""
        with self.ledger.making("flavor") as entry:
            entry.ids = [self.api.make_flavor(entry.name, flavor)]
        return next(one for one in self.flavors() if one.id == entry.ids[0])

    def make_key(self, public: str) -> Key:
        """Register a public key (a line as in a .pub file) that servers can be given."""
        with self.ledger.making("key") as entry:
            made = self.api.make_key(entry.name, public.strip())
            entry.ids = [made]
        return Key(made, entry.name, READY)

    def run(self, n: int, image: Image, flavor: Flavor, key: Key | None,
            label: str = "server") -> list[Server]:
        """Start `n` servers in one call; returns those that the cloud made, without waiting.

        Their moments `called` and `returned` are set. LabError if the quota (as far as the cloud
        reports it) or the cloud's hosts have no room; InputError for fewer than one. See `await_running`.
        """
        if n < 1:
            raise InputError(f"{n} servers", key="n", allowed="1 and more")
        self._require_room(n, flavor)
        with self.ledger.making("server", label) as entry:
            called = clock.now()
            made = self.api.run(entry.name, n, image, flavor, key)
            returned = clock.now()
            with errors.perhaps_made():     # the cloud has accepted the call
                made = made or self.api.servers(name=entry.name)
            if len(made) == n:      # else those that it does not list yet are found by the name
                entry.ids = [server.id for server in made]
        for server in made:
            server.flavor = str(flavor)
            server.moments |= {"called": called, "returned": returned}
        return made

    def create_volume(self, gb: int, label: str = "volume") -> Volume:
        """Create an empty volume and wait until it can be attached."""
        with self.ledger.making("volume", label) as entry:
            called = clock.now()
            made = self.api.make_volume(entry.name, gb)
            entry.ids = [made]
            returned = clock.now()
        volume = Volume(made, entry.name, "", gb, moments={"called": called, "returned": returned})
        self._await_volume(volume, READY, "to be made")
        return volume

    @property
    def other_client(self) -> str | None:
        """Name and version of another client by which `snapshot` can call; None without."""
        return self.api.other_client

    def snapshot(self, server: Server, label: str = "snapshot", by_other: bool = False) -> Image:
        """Make an image of a running server's disk and wait until it is usable. by_other: by the other client."""
        with self.ledger.making("image", label) as entry:
            called = clock.now()
            make = self.api.snapshot_by_other if by_other else self.api.snapshot
            entry.ids = [make(server.id, entry.name)]
        return self._image_ready(entry.ids[0], entry.name, called)

    # using

    def await_running(self, servers, seconds: float = 300, interval: float = 0.5) -> list[Server]:
        """Poll until the API reports each server as running or failed, or the time is up.

        Updates state, address, fault, host and the moment `running`. Raises no error for a failed
        server; `require_running` does.
        """
        return waits.running(self.api, list(servers), seconds, interval)

    def require_running(self, servers) -> None:
        """LabError if no host had room; SystemFailure if a server does not run for another reason."""
        waits.require_running(servers, self.console)

    def await_answers(self, servers, dial=None, seconds: float = 300) -> list[Server]:
        """Try until each server greets on SSH, or the time is up; sets the moment `answers`.

        `dial(address, port, timeout=...)` opens a socket from where guests can be reached, such as a
        host's `dial`; default: this machine. See `require_answers`.
        """
        return waits.answers(list(servers), dial, seconds)

    def await_running_and_answers(self, servers, dial=None, seconds: float = 300,
                                  interval: float = 0.5) -> list[Server]:
        """`await_running` and `await_answers` at the same time: each server is tried from when it has an address, so
        that it may answer before the API reports it as running."""
        return waits.running_and_answering(self.api, list(servers), dial, seconds, interval)

    def require_answers(self, servers) -> None:
        """SystemFailure, with the end of its console, for a server that did not answer on SSH."""
        waits.require_answers(servers, self.console)

    def reboot(self, servers, hard: bool = False) -> None:
        """Reboot all servers, in one API call if there is one for several, else in parallel calls.

        Only the guest's boot id shows that it has rebooted, not the API.
        """
        called = clock.now()
        self.api.reboot([server.id for server in servers], hard)
        for server in servers:
            server.moments["rebooted"] = called

    def terminate(self, servers, seconds: float = END_SECONDS) -> None:
        """Terminate the servers and wait until the cloud no longer has them."""
        ids = [server.id for server in servers]
        self.api.terminate(ids)
        waits.until(lambda: {s.id for s in self.api.servers(ids=ids) if s.state != GONE},
                    lambda left: not left, f"{len(ids)} servers to end", seconds)
        for server in servers:
            server.state = GONE
        self.ledger.record_gone(ids)

    def attach(self, server: Server, volume: Volume, device: str | None = None) -> Volume:
        """Attach a volume and wait for it; `device`: the name to ask for, if the API allows one.

        volume.device is the API's name for it, which may differ from the guest's.
        """
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
        """The end of the guest's console output, as far as the cloud stores it."""
        return self.api.console(server.id)

    def host_keys(self, server: Server) -> list[str]:
        """The server's SSH host keys, by its console; SystemFailure if that shows none."""
        return host_keys.await_keys(self.console, server)

    # removing

    def destroy(self) -> None:
        """Remove all that was made; may be repeated. LabError with what could not be removed."""
        problems = remove(self.api, self.ledger)
        if problems:
            raise LabError("; ".join(problems), remedy="`labbook down` tries again")
        self._at_end()

    def facts(self) -> dict:
        """A description without addresses or user names."""
        return {"cloud": self.own.name if self.own else "the lab's", **self.api.facts()}

    def _named(self, named, there, what, kind):
        found = [one for one in there if named in (one.id, one.name)]
        if len(found) == 1:
            return found[0]
        names = sorted(one.name for one in there if one.name)
        problem = f"{len(found)} have the name" if found else "the cloud has none with the name"
        raise InputError(f"{kind}: {problem} {named!r}{did_you_mean(named, names)}",
                         file=self.own and self.own.file, key=self.own and self.own.key(what),
                         allowed="its id" if found else names[:40] or "the cloud has none at all")

    def _require_room(self, n, flavor):
        """Check the quota before the call, since its error may say less."""
        needed = {"servers": n, "cores": n * flavor.cores, "memory_mb": n * flavor.memory_mb}
        for what, quota in self.quota().items():
            if what in needed and not quota.has_room(needed[what]):
                raise errors.refused(LabError(
                    f"{n} servers of {flavor} exceed the cloud's quota of {what}: "
                    f"{needed[what]} more, {quota.used} of {quota.limit} used",
                    remedy="Ask for fewer or smaller servers, or have the quota raised"))

    def _image_ready(self, made, name, called) -> Image:
        returned = clock.now()
        image = waits.until(lambda: self.api.image(made), lambda i: i.state in (READY, ERROR),
                            f"image {name} to be ready", IMAGE_SECONDS)
        waits.require(image, READY)
        image.moments |= {"called": called, "returned": returned, "ready": clock.now()}
        return image

    def _await_volume(self, volume, state, what):
        seen = waits.until(lambda: self.api.volume(volume.id), lambda v: v.state in (state, ERROR),
                           f"volume {volume.name} {what}", VOLUME_SECONDS)
        volume.state, volume.server, volume.device = seen.state, seen.server, seen.device
        waits.require(volume, state)
        volume.moments[state] = clock.now()

    def _delete(self, kind, thing, seconds):
        self.api.delete(kind, thing.id)
        waits.until(lambda: self.api.find(kind, "", [thing.id]), lambda left: not left,
                    f"{kind} {thing.name} to be deleted", seconds)
        thing.state = GONE
        self.ledger.record_gone([thing.id])
