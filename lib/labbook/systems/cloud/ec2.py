"""A cloud with EC2's API (Eucalyptus, AWS, ...), through botocore: an `api` of a Cloud."""

from contextlib import suppress

from labbook.errors import InputError, SystemFailure
from labbook.systems.cloud import model
from labbook.systems.cloud.ec2_images import send_image
from labbook.systems.cloud.ec2_session import VERSION, connect, translate_errors
from labbook.systems.cloud.errors import suppress_codes
from labbook.systems.cloud.model import PAPER_FLAVORS, Flavor, Image, Quota, Server, Volume

DEVICE = "/dev/sdf"     # the default name of a volume, which the API requires
TAG = "labbook"     # key of the tag whose value is the study's id
SERVER_STATES = {
    "pending": model.STARTING, "running": model.RUNNING, "shutting-down": model.ENDING,
    "terminated": model.GONE, "stopping": model.ENDING, "stopped": model.STOPPED}
IMAGE_STATES = {"available": model.READY, "pending": model.MAKING, "transient": model.MAKING}
VOLUME_STATES = {"available": model.READY, "creating": model.MAKING, "deleting": model.ENDING,
                 "deleted": model.GONE}


class Ec2Api:
    """`client(service)`: botocore's client for "ec2" or "ebs". `mark`: the study's id."""

    kind = "ec2"
    other_client = None     # another version of the client, by which images of servers can be made

    def __init__(self, client, mark: str, own):
        self._client, self._mark, self._own = client, mark, own
        self._ec2 = client("ec2")
        self._zone, self._flavors = own.zone, []

    @classmethod
    def of(cls, own, mark: str) -> "Ec2Api":
        """For an entry of the environment file; sends no request yet."""
        return cls(connect(own), mark, own)

    # queries

    def images(self):
        """The user's own images, and those that the environment file names by id."""
        named = [name for name in self._own.images.values() if name[1:4] == "mi-"]  # ami-, emi-
        with self._call("list images"):
            own = self._ec2.describe_images(Owners=["self"])["Images"]
            others = named and self._ec2.describe_images(Filters=where("image-id", named))["Images"]
        return [parse_image(one) for one in {one["ImageId"]: one for one in (*own, *others)}.values()]

    def image(self, image_id):
        with self._call("look at an image"):
            found = self._ec2.describe_images(Filters=where("image-id", [image_id]))["Images"]
        return next(map(parse_image, found), None)

    def flavors(self):
        """The VM types that the cloud describes. Eucalyptus does not describe any by this call: then
        the report's five names, with their sizes there."""
        if not self._flavors:
            with self._call("list VM types"), suppress_codes("InvalidAction", "UnsupportedOperation"):
                pages = self._ec2.get_paginator("describe_instance_types").paginate()
                self._flavors = [parse_flavor(one) for page in pages for one in page["InstanceTypes"]]
        return self._flavors or [Flavor(f.name, f.name, f.cores, f.memory_mb, f.disk_gb)
                         for f in PAPER_FLAVORS]

    def servers(self, name=None, ids=None):
        """The study's servers: those not terminated, those of one call, or those of these ids (terminated
        or not)."""
        with self._call("list servers"):
            found = self._instances(Filters=where("instance-id", ids)) if ids is not None else [
                one for one in self._instances() if one["State"]["Name"] != "terminated"]
        return [parse_server(one) for one in found if self._ours(one) and (
            name is None or name in (one.get("ClientToken"), tags_of(one).get("Name")))]

    def volume(self, volume_id):
        with self._call("look at a volume"):
            found = self._ec2.describe_volumes(Filters=where("volume-id", [volume_id]))["Volumes"]
        return next(map(parse_volume, found), None)

    def volumes(self):
        with self._call("list volumes"):
            found = self._ec2.describe_volumes(Filters=where(f"tag:{TAG}", [self._mark]))["Volumes"]
        return [parse_volume(one) for one in found]

    def quota(self):
        """Used servers without a limit, since the API reports no binding limit."""
        with self._call("list servers"):
            running = [one for one in self._instances() if one["State"]["Name"] != "terminated"]
        return {"servers": Quota(len(running))}

    def console(self, server_id):
        with self._call("show a console"):
            return self._ec2.get_console_output(InstanceId=server_id).get("Output", "")

    def facts(self):
        return {"api": "ec2", "compute_version": VERSION}

    # creating

    def send_image(self, name, path, disk_format, kernel, ramdisk):
        with self._call(f"take the image {path.name}"):
            return send_image(self._client, self._own, name, self._tags(name), path, disk_format,
                              kernel, ramdisk)

    def make_flavor(self, name, flavor):
        raise InputError(f"EC2's API has no call to make the VM type {flavor}", file=self._own.file,
                         key=self._own.key("flavors"), allowed="one that the cloud has")

    def make_key(self, name, public):
        with self._call("take a public key"):
            return self._ec2.import_key_pair(KeyName=name, PublicKeyMaterial=public.encode())["KeyName"]

    def run(self, name, n, image, flavor, key):
        own = self._own
        given = {"KeyName": key and key.name, "SubnetId": own.network,
                 "SecurityGroupIds": own.security_group and [own.security_group],
                 "Placement": own.zone and {"AvailabilityZone": own.zone}}
        with self._call(f"start {n} servers of {flavor}"):
            made = self._ec2.run_instances(
                ImageId=image.id, InstanceType=flavor.id, MinCount=n, MaxCount=n, ClientToken=name,
                TagSpecifications=self._tagged(name, "instance", "volume"),
                **{key: value for key, value in given.items() if value})
        return [parse_server(one) for one in made["Instances"]]

    def make_volume(self, name, gb):
        with self._call(f"make a volume of {gb} GB"):
            return self._ec2.create_volume(
                Size=gb, AvailabilityZone=self._volumes_zone(),
                TagSpecifications=self._tagged(name, "volume"))["VolumeId"]

    def snapshot(self, server_id, name):
        """Without stopping the server. The image's snapshots are tagged when they are deleted."""
        with self._call("make an image of a server"):
            return self._ec2.create_image(
                InstanceId=server_id, Name=name, NoReboot=True,
                TagSpecifications=self._tagged(name, "image"))["ImageId"]

    # using

    def reboot(self, ids, hard):
        """One call for all. The API has no kinds: it asks the guest, and power-cycles it if it does
        not react."""
        with self._call("reboot servers"):
            self._ec2.reboot_instances(InstanceIds=list(ids))

    def terminate(self, ids):
        with self._call("end servers"):
            self._ec2.terminate_instances(InstanceIds=list(ids))

    def attach(self, server_id, volume_id, device):
        with self._call("attach a volume"):
            self._ec2.attach_volume(InstanceId=server_id, VolumeId=volume_id,
                                    Device=device or DEVICE)

    def detach(self, volume_id, server_id):
        with self._call("detach a volume"):
            self._ec2.detach_volume(VolumeId=volume_id, InstanceId=server_id)

    # removing

    def find(self, kind, name, ids=()):
        """Ids of what exists of `kind` under the name or one of `ids`; for servers also their volumes,
        for images also their snapshots."""
        with self._call(f"list its {kind}s"):
            return list(dict.fromkeys(getattr(self, f"_find_{kind}")(name, ids)))

    def delete(self, kind, thing_id):
        """Request the deletion; no error if it does not exist."""
        delete = {"i": lambda: self._ec2.terminate_instances(InstanceIds=[thing_id]),
                  "vol": lambda: self._ec2.delete_volume(VolumeId=thing_id),
                  "snap": lambda: self._ec2.delete_snapshot(SnapshotId=thing_id),
                  "key": lambda: self._ec2.delete_key_pair(KeyName=thing_id),
                  "image": lambda: self._delete_image(thing_id)}
        part = thing_id.partition("-")[0]
        with self._call(f"delete {thing_id}"), suppress_codes("NotFound", "Unavailable"):
            delete[kind if kind == "key" or part not in delete else part]()

    def _ours(self, one) -> bool:
        return (tags_of(one).get(TAG) == self._mark
                or one.get("ClientToken", "").startswith(f"{self._mark}-"))

    def _volumes_zone(self):
        """The servers' zone: a volume in another one could not be attached."""
        if self._zone is None and self._own.network:
            subnets = self._ec2.describe_subnets(SubnetIds=[self._own.network])["Subnets"]
            self._zone = subnets[0]["AvailabilityZone"]
        if self._zone is None:
            there = [one["Placement"]["AvailabilityZone"] for one in self._instances() if self._ours(one)]
            zones = self._ec2.describe_availability_zones()["AvailabilityZones"]
            return there[-1] if there else zones[0]["ZoneName"]
        return self._zone

    def _tagged(self, name, *kinds):
        return [{"ResourceType": kind, "Tags": self._tags(name)} for kind in kinds]

    def _find_server(self, name, ids):
        for one in self._instances():
            known = {one["InstanceId"]} & set(ids) or name and name in (
                one.get("ClientToken"), tags_of(one).get("Name"))
            if known and one["State"]["Name"] != "terminated":
                yield one["InstanceId"]
        yield from self._find_volume(name, ())

    def _find_volume(self, name, ids):
        for filters in filter(None, (name and self._named(name), ids and where("volume-id", ids))):
            for one in self._ec2.describe_volumes(Filters=filters)["Volumes"]:
                if one["State"] not in ("deleting", "deleted"):
                    yield one["VolumeId"]

    def _find_image(self, name, ids):
        for filters in filter(None, (name and where("name", [name]), ids and where("image-id", ids))):
            for one in self._ec2.describe_images(Owners=["self"], Filters=filters)["Images"]:
                yield one["ImageId"]
        if name:
            for one in self._ec2.describe_snapshots(OwnerIds=["self"], Filters=self._named(name))[
                    "Snapshots"]:
                yield one["SnapshotId"]

    def _find_key(self, name, ids):
        wanted = {name, *ids} - {""}
        for one in self._ec2.describe_key_pairs(Filters=where("key-name", sorted(wanted)))["KeyPairs"]:
            yield one["KeyName"]

    def _find_flavor(self, name, ids):
        return ()

    def _delete_image(self, image_id):
        """Delete its snapshots too; they get its name first, by which they are found after a kill. SystemFailure while
        the image is being made and does not name them yet."""
        there = self._ec2.describe_images(Filters=where("image-id", [image_id]))["Images"]
        for image in there:
            parts = [disk["Ebs"]["SnapshotId"] for disk in image.get("BlockDeviceMappings", ())
                     if disk.get("Ebs", {}).get("SnapshotId")]
            if not parts and image.get("State") == "pending":
                raise SystemFailure(f"image {image_id} is still being made")
            if parts:
                self._ec2.create_tags(Resources=parts, Tags=self._tags(image["Name"]))
            self._ec2.deregister_image(ImageId=image_id)
            for part in parts:
                with suppress(self._ec2.exceptions.ClientError):   # found again by the tag
                    self._ec2.delete_snapshot(SnapshotId=part)

    def _instances(self, **which):
        pages = self._ec2.get_paginator("describe_instances").paginate(**which)
        return [one for page in pages for group in page["Reservations"] for one in group["Instances"]]

    def _tags(self, name):
        return [{"Key": "Name", "Value": name}, {"Key": TAG, "Value": self._mark}]

    def _named(self, name):
        return where(f"tag:{TAG}", [self._mark]) + where("tag:Name", [name])

    def _call(self, doing):
        return translate_errors(doing, self._own)


def where(what, values) -> list[dict]:
    """A `Filters` argument."""
    return [{"Name": what, "Values": list(values)}]


def tags_of(one) -> dict:
    return {tag["Key"]: tag["Value"] for tag in one.get("Tags", ())}


def parse_server(one) -> Server:
    reason = one.get("StateReason", {})
    fault = reason.get("Message") if reason.get("Code", "").startswith("Server.") else None
    return Server(one["InstanceId"], tags_of(one).get("Name", one["InstanceId"]),
                  SERVER_STATES.get(one["State"]["Name"], model.STARTING), fault=fault,
                  address=one.get("PublicIpAddress") or one.get("PrivateIpAddress"),
                  host=one.get("Placement", {}).get("HostId"))


def parse_image(one) -> Image:
    disks = [disk.get("Ebs", {}).get("VolumeSize") or 0 for disk in one.get("BlockDeviceMappings", ())]
    return Image(one["ImageId"], one.get("Name", ""), IMAGE_STATES.get(one["State"], model.ERROR),
                 size_bytes=sum(disks) << 30 or None)


def parse_volume(one) -> Volume:
    at = one["Attachments"][0] if one.get("Attachments") else {}
    state = VOLUME_STATES.get(one["State"], model.ERROR)
    if one["State"] == "in-use":    # also before it is attached and while it is being detached
        state = model.IN_USE if at.get("State", "attached") == "attached" else model.MAKING
    return Volume(one["VolumeId"], tags_of(one).get("Name", ""), state, one["Size"],
                  server=at.get("InstanceId"), device=at.get("Device"))


def parse_flavor(one) -> Flavor:
    return Flavor(one["InstanceType"], one["InstanceType"], one["VCpuInfo"]["DefaultVCpus"],
                  one["MemoryInfo"]["SizeInMiB"],
                  one.get("InstanceStorageInfo", {}).get("TotalSizeInGB"))
