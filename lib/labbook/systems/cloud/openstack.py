"""An OpenStack as its user sees it, through openstacksdk: an `api` of a Cloud."""

import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime, timezone

from labbook.errors import InputError, SystemFailure
from labbook.systems.cloud import errors, model
from labbook.systems.cloud.model import ERROR, Flavor, Image, Quota, Server, Volume
from labbook.systems.cloud.openstack_session import connect, missing_is_none, translate_errors

TAG = "labbook"     # metadata key whose value is the study's id
PARALLEL = 16
CONSOLE_LINES = 200
SERVER_STATES = {
    "ACTIVE": model.RUNNING, "BUILD": model.STARTING, "REBOOT": model.REBOOTING,
    "HARD_REBOOT": model.REBOOTING, "SHUTOFF": model.STOPPED, "ERROR": model.ERROR,
    "DELETED": model.GONE, "SOFT_DELETED": model.GONE}
VOLUME_STATES = {"available": model.READY, "in-use": model.IN_USE}
IMAGE_STATES = {"active": model.READY, "killed": model.ERROR, "deleted": model.GONE,
                "pending_delete": model.GONE, "deactivated": model.ERROR}


class OpenStackApi:
    """connection: of openstacksdk. mark: the study's id. network: id of the servers' network, if it is
    neither named in the environment file nor the project's only one."""

    kind = "openstack"
    other_client = None     # another version of the client, by which images of servers can be made

    def __init__(self, connection, mark: str, own=None, network: str | None = None):
        self._cloud, self._mark, self._own, self._network = connection, mark, own, network

    @classmethod
    def of(cls, own, mark: str) -> "OpenStackApi":
        """For an entry of the environment file; sends no request yet."""
        return cls(connect(own), mark, own)

    # queries

    def images(self):
        with self._call("list images"):
            return [parse_image(one) for one in self._cloud.image.images()]

    def image(self, image_id):
        with self._call("look at an image"):
            return missing_is_none(lambda: parse_image(self._cloud.image.get_image(image_id)))

    def flavors(self):
        with self._call("list flavours"):
            return [Flavor(f.id, f.name, f.vcpus, f.ram, f.disk or None)
                    for f in self._cloud.compute.flavors()]

    def servers(self, name=None, ids=None):
        """The study's servers: all, those of one call, or those of these ids."""
        with self._call("list servers"):
            found = [self._with_fault(parse_server(one)) for one in self._cloud.compute.servers(**_only(name))
                     if one.metadata.get(TAG) == self._mark]
        return [one for one in found if (name is None or _of_call(one.name, name))
                and (ids is None or one.id in ids)]

    def volume(self, volume_id):
        return next((v for v in self.volumes() if v.id == volume_id), None)

    def volumes(self):
        with self._call("list volumes"):
            return [parse_volume(one) for one in self._cloud.block_storage.volumes()
                    if one.metadata.get(TAG) == self._mark]

    def quota(self):
        with self._call("ask for the quota"):
            limits = self._cloud.compute.get_limits().absolute
        there = {"servers": parse_quota(limits.instances_used, limits.instances),
                 "cores": parse_quota(limits.total_cores_used, limits.total_cores),
                 "memory_mb": parse_quota(limits.total_ram_used, limits.total_ram)}
        with suppress(SystemFailure), self._call("ask for the quota of volumes"):
            limits = self._cloud.block_storage.get_limits().absolute     # not every cloud reports them
            there |= {"volumes": parse_quota(limits.total_volumes_used, limits.max_total_volumes),
                      "volume_gb": parse_quota(limits.total_gigabytes_used,
                                              limits.max_total_volume_gigabytes)}
        return there

    def console(self, server_id):
        with self._call("show a console"):
            output = self._cloud.compute.get_server_console_output(server_id, length=CONSOLE_LINES)
            return output["output"] or ""

    def facts(self):
        with self._call("say what it is"):
            data = self._cloud.compute.get_endpoint_data()
        return {"api": "openstack", "compute_version": ".".join(map(str, data.max_microversion))}

    # creating

    def send_image(self, name, path, disk_format, kernel, ramdisk):
        parts = {key: part.id for key, part in (("kernel_id", kernel), ("ramdisk_id", ramdisk)) if part}
        container = disk_format if disk_format in ("aki", "ari") else "bare"
        # the client makes the image before it sends the file
        with errors.perhaps_made(), self._call(f"take the image {path.name}"):
            return self._cloud.image.create_image(
                name, filename=str(path), disk_format=disk_format, container_format=container,
                allow_duplicates=True, meta={TAG: self._mark, **parts}).id

    def make_flavor(self, name, flavor):
        with self._call(f"make the flavour {flavor}"):
            return self._cloud.compute.create_flavor(
                name=name, vcpus=flavor.cores, ram=flavor.memory_mb, disk=flavor.disk_gb or 0).id

    def make_key(self, name, public):
        with self._call("take a public key"):
            return self._cloud.compute.create_keypair(name=name, public_key=public).id

    def run(self, name, n, image, flavor, key):
        """Returns nothing: the API reports only the first of several servers."""
        own = self._own
        given = {"key_name": key and key.name, "availability_zone": own and own.zone,
                 "security_groups": own and own.security_group and [{"name": own.security_group}]}
        networks = [{"uuid": self._network_id()}]
        with self._call(f"start {n} servers of {flavor}"):
            self._cloud.compute.create_server(
                name=name, image_id=image.id, flavor_id=flavor.id, networks=networks,
                min_count=n, max_count=n, metadata={TAG: self._mark},
                **{key: value for key, value in given.items() if value})

    def make_volume(self, name, gb):
        zone = {"availability_zone": self._own.zone} if self._own and self._own.zone else {}
        with self._call(f"make a volume of {gb} GB"):
            return self._cloud.block_storage.create_volume(
                name=name, size=gb, metadata={TAG: self._mark}, **zone).id

    def snapshot(self, server_id, name):
        from openstack.compute.v2.server import Server as SdkServer

        with self._call("make an image of a server"):   # without the query that create_server_image adds
            return SdkServer.new(id=server_id).create_image(self._cloud.compute, name, {TAG: self._mark})

    # using

    def reboot(self, ids, hard):
        """In parallel calls: the API has none for several servers."""
        self._each(ids, "reboot a server", lambda one: self._cloud.compute.reboot_server(
            one, "HARD" if hard else "SOFT"))

    def terminate(self, ids):
        self._each(ids, "end a server", self._cloud.compute.delete_server)

    def attach(self, server_id, volume_id, device):
        where = {"device": device} if device else {}
        with self._call("attach a volume"):
            self._cloud.compute.create_volume_attachment(server_id, volume=volume_id, **where)

    def detach(self, volume_id, server_id):
        from openstack.compute.v2.server import Server as SdkServer  # an id would be ambiguous

        with self._call("detach a volume"):
            self._cloud.compute.delete_volume_attachment(SdkServer.new(id=server_id), volume_id)

    # removing

    def find(self, kind, name, ids=()):
        """Ids of what exists of `kind` under the name or one of `ids`."""
        with self._call(f"list its {kind}s"):
            return [one.id for one in self._listed(kind)
                    if one.id in ids or name and (
                        _of_call(one.name, name) if kind == "server" else one.name == name)]

    def delete(self, kind, thing_id):
        """Request the deletion; no error if it does not exist."""
        delete = {"server": self._cloud.compute.delete_server,
                  "volume": self._cloud.block_storage.delete_volume,
                  "image": self._cloud.image.delete_image,
                  "key": self._cloud.compute.delete_keypair,
                  "flavor": self._cloud.compute.delete_flavor}[kind]
        with self._call(f"delete a {kind}"):
            delete(thing_id, ignore_missing=True)

    def _listed(self, kind):
        if kind in ("server", "volume"):
            part = self._cloud.compute.servers if kind == "server" else self._cloud.block_storage.volumes
            return part(details=False)
        return {"image": self._cloud.image.images, "key": self._cloud.compute.keypairs,
                "flavor": self._cloud.compute.flavors}[kind]()

    def _with_fault(self, server):
        """API versions before 2.96 list a failed server without its fault; a query of the one has it."""
        if server.state == ERROR and not server.fault:
            alone = missing_is_none(lambda: parse_server(self._cloud.compute.get_server(server.id)))
            return alone or server
        return server

    def _each(self, ids, doing, job):
        with self._call(doing), ThreadPoolExecutor(min(PARALLEL, len(ids) or 1)) as pool:
            list(pool.map(job, ids))

    def _call(self, doing):
        return translate_errors(doing, self._own)

    def _network_id(self):
        if self._network is None:
            wanted = self._own.network if self._own else None
            with self._call("list networks"):
                there = [net for net in self._cloud.network.networks()
                         if (net.is_router_external is not True if wanted is None
                             else wanted in (net.id, net.name))]
            if len(there) != 1:
                raise InputError(
                    f"the project sees {len(there)} networks" + (f" {wanted!r}" if wanted else ""),
                    file=self._own and self._own.file, key=self._own and self._own.key("network"),
                    allowed=[net.name for net in there] or "a network that the project sees")
            self._network = there[0].id
        return self._network


def _only(name) -> dict:
    return {"name": name} if name else {}


def _of_call(server: str, name: str) -> bool:
    """With several servers in one call, each name ends with a number."""
    return bool(re.fullmatch(re.escape(name) + r"(-\d+)?", server or ""))


def parse_image(one) -> Image:
    return Image(one.id, one.name or "", IMAGE_STATES.get(one.status, model.MAKING),
                 size_bytes=one.size)


def parse_server(one) -> Server:
    state = SERVER_STATES.get(one.status, model.STARTING)
    if one.task_state == "deleting" and state != model.ERROR:
        state = model.ENDING
    launched = {"launched": _epoch(one.launched_at)} if one.launched_at else {}
    return Server(one.id, one.name, state, address=_address(one.addresses or {}), moments=launched,
                  fault=(one.fault or {}).get("message"), host=one.compute_host or one.host_id)


def _address(networks) -> str | None:
    """The IPv4 address; a floating one, which is reachable from outside, if there is one."""
    known = [address for network in networks.values() for address in network
             if address["version"] == 4]
    known.sort(key=lambda address: address.get("OS-EXT-IPS:type") != "floating")
    return known[0]["addr"] if known else None


def _epoch(text: str) -> float:
    return datetime.fromisoformat(text.rstrip("Z")).replace(tzinfo=timezone.utc).timestamp()


def parse_volume(one) -> Volume:
    state = VOLUME_STATES.get(one.status)
    if state is None:
        state = model.ERROR if one.status.startswith("error") else model.MAKING
    at = one.attachments[0] if one.attachments else {}
    return Volume(one.id, one.name or "", state, one.size, server=at.get("server_id"),
                  device=at.get("device"))


def parse_quota(used, limit) -> Quota:
    return Quota(used or 0, None if limit is None or limit < 0 else limit)
