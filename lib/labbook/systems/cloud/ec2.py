"""A cloud with EC2's API (Eucalyptus, AWS, ...), through botocore: the `api` of a Cloud."""

from labbook.errors import InputError
from labbook.systems.cloud import ec2_parse as told
from labbook.systems.cloud.ec2_images import send_image
from labbook.systems.cloud.ec2_parse import tags_of, where
from labbook.systems.cloud.ec2_removal import TAG, Ec2Removal
from labbook.systems.cloud.ec2_session import VERSION, connect
from labbook.systems.cloud.errors import by_missing
from labbook.systems.cloud.model import PAPER_FLAVORS, Flavor, Quota

DEVICE = "/dev/sdf"     # where none is chosen: the API wants one, and this one is for volumes


class Ec2Api(Ec2Removal):
    kind = "ec2"

    def __init__(self, client, mark: str, own):
        super().__init__(client, mark, own)
        self._zone, self._flavors = own.zone, []

    @classmethod
    def of(cls, own, mark: str) -> "Ec2Api":
        """For an entry of the environment file; speaks with nobody yet."""
        return cls(connect(own), mark, own)

    # what there is

    def images(self):
        """The user's own, and those that the environment file names by id."""
        named = [name for name in self._own.images.values() if name[1:4] == "mi-"]  # ami-, emi-
        with self._telling("list images"):
            own = self._ec2.describe_images(Owners=["self"])["Images"]
            others = named and self._ec2.describe_images(Filters=where("image-id", named))["Images"]
        return [told.image(one) for one in {one["ImageId"]: one for one in (*own, *others)}.values()]

    def image(self, image_id):
        with self._telling("look at an image"):
            found = self._ec2.describe_images(Filters=where("image-id", [image_id]))["Images"]
        return next(map(told.image, found), None)

    def flavors(self):
        """Those that the cloud describes; of one that describes none, as Eucalyptus does not by
        this call, the report's five names, with the sizes that they had."""
        found = self._flavors
        if not found:
            with self._telling("list VM types"), by_missing("InvalidAction", "UnsupportedOperation"):
                for page in self._ec2.get_paginator("describe_instance_types").paginate():
                    found += map(told.flavor, page["InstanceTypes"])
        return found or [Flavor(f.name, f.name, f.cores, f.memory_mb, f.disk_gb)
                         for f in PAPER_FLAVORS]

    def servers(self, name=None, ids=None):
        """The study's own that are not gone: all, those of one call, or, gone or not, of these ids."""
        with self._telling("list servers"):
            found = self._instances(Filters=where("instance-id", ids)) if ids is not None else [
                one for one in self._instances() if one["State"]["Name"] != "terminated"]
        return [told.server(one) for one in found if self._ours(one) and (
            name is None or name in (one.get("ClientToken"), tags_of(one).get("Name")))]

    def volume(self, volume_id):
        with self._telling("look at a volume"):
            found = self._ec2.describe_volumes(Filters=where("volume-id", [volume_id]))["Volumes"]
        return next(map(told.volume, found), None)

    def volumes(self):
        with self._telling("list volumes"):
            found = self._ec2.describe_volumes(Filters=where(f"tag:{TAG}", [self._mark]))["Volumes"]
        return [told.volume(one) for one in found]

    def quota(self):
        """The API tells no limit that holds: what there is of it is counted."""
        with self._telling("list servers"):
            there = [one for one in self._instances() if one["State"]["Name"] != "terminated"]
        return {"servers": Quota(len(there))}

    def console(self, server_id):
        with self._telling("show a console"):
            return self._ec2.get_console_output(InstanceId=server_id).get("Output", "")

    def facts(self):
        return {"api": "ec2", "compute_version": VERSION}

    # making

    def send_image(self, name, path, disk_format, kernel, ramdisk):
        with self._telling(f"take the image {path.name}"):
            return send_image(self._client, self._own, name, self._tags(name), path, disk_format,
                              kernel, ramdisk)

    def make_flavor(self, name, flavor):
        raise InputError(f"EC2's API has no call to make the VM type {flavor}", file=self._own.file,
                         key=self._own.key("flavors"), allowed="one that the cloud has")

    def make_key(self, name, public):
        with self._telling("take a public key"):
            return self._ec2.import_key_pair(KeyName=name, PublicKeyMaterial=public.encode())["KeyName"]

    def run(self, name, n, image, flavor, key):
        own = self._own
        given = {"KeyName": key and key.name, "SubnetId": own.network,
                 "SecurityGroupIds": own.security_group and [own.security_group],
                 "Placement": own.zone and {"AvailabilityZone": own.zone}}
        with self._telling(f"start {n} servers of {flavor}"):
            made = self._ec2.run_instances(
                ImageId=image.id, InstanceType=flavor.id, MinCount=n, MaxCount=n, ClientToken=name,
                TagSpecifications=self._tagged(name, "instance", "volume"),
                **{key: value for key, value in given.items() if value})
        return [told.server(one) for one in made["Instances"]]

    def make_volume(self, name, gb):
        with self._telling(f"make a volume of {gb} GB"):
            return self._ec2.create_volume(
                Size=gb, AvailabilityZone=self._volumes_zone(),
                TagSpecifications=self._tagged(name, "volume"))["VolumeId"]

    def snapshot(self, server_id, name):
        """Without stopping the server. The parts that it is made of are tagged when they go."""
        with self._telling("make an image of a server"):
            return self._ec2.create_image(
                InstanceId=server_id, Name=name, NoReboot=True,
                TagSpecifications=self._tagged(name, "image"))["ImageId"]

    # using

    def reboot(self, ids, hard):
        """One call for all. It knows no kind: the guest is asked, and power-cycled if it does not."""
        with self._telling("reboot servers"):
            self._ec2.reboot_instances(InstanceIds=list(ids))

    def terminate(self, ids):
        with self._telling("end servers"):
            self._ec2.terminate_instances(InstanceIds=list(ids))

    def attach(self, server_id, volume_id, device):
        with self._telling("attach a volume"):
            self._ec2.attach_volume(InstanceId=server_id, VolumeId=volume_id,
                                    Device=device or DEVICE)

    def detach(self, volume_id, server_id):
        with self._telling("detach a volume"):
            self._ec2.detach_volume(VolumeId=volume_id, InstanceId=server_id)

    def _ours(self, one) -> bool:
        return (tags_of(one).get(TAG) == self._mark
                or one.get("ClientToken", "").startswith(f"{self._mark}-"))

    def _volumes_zone(self):
        """Where servers are: a volume elsewhere cannot be attached to them."""
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
