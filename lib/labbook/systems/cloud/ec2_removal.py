"""What is made on a cloud with EC2's API, found again and deleted."""

from contextlib import suppress

from labbook.systems.cloud.ec2_parse import tags_of, where
from labbook.systems.cloud.ec2_session import telling
from labbook.systems.cloud.errors import by_missing

TAG = "labbook"     # the key of the tag that holds the study's id


class Ec2Removal:
    """`client(service)`: of botocore, for "ec2" and "ebs". `mark`: the study's id."""

    def __init__(self, client, mark: str, own):
        self._client, self._mark, self._own = client, mark, own
        self._ec2 = client("ec2")

    def find(self, kind, name, ids=()):
        """Ids of what is there of `kind` under the name, or under one of `ids`; with servers the
        volumes, and with images the snapshots, that were made for them."""
        with self._telling(f"list its {kind}s"):
            return list(dict.fromkeys(getattr(self, f"_find_{kind}")(name, ids)))

    def delete(self, kind, thing_id):
        """Ask for it; what is not there is no error."""
        delete = {"i": lambda: self._ec2.terminate_instances(InstanceIds=[thing_id]),
                  "vol": lambda: self._ec2.delete_volume(VolumeId=thing_id),
                  "snap": lambda: self._ec2.delete_snapshot(SnapshotId=thing_id),
                  "key": lambda: self._ec2.delete_key_pair(KeyName=thing_id),
                  "image": lambda: self._delete_image(thing_id)}
        part = thing_id.partition("-")[0]
        with self._telling(f"delete {thing_id}"), by_missing("NotFound", "Unavailable"):
            delete[kind if kind == "key" or part not in delete else part]()

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
        """Its snapshots go with it; first they get its name, by which they are found after a kill."""
        there = self._ec2.describe_images(Filters=where("image-id", [image_id]))["Images"]
        for image in there:
            parts = [disk["Ebs"]["SnapshotId"] for disk in image.get("BlockDeviceMappings", ())
                     if disk.get("Ebs", {}).get("SnapshotId")]
            if parts:
                self._ec2.create_tags(Resources=parts, Tags=self._tags(image["Name"]))
            self._ec2.deregister_image(ImageId=image_id)
            for part in parts:
                with suppress(self._ec2.exceptions.ClientError):   # found again by its tag
                    self._ec2.delete_snapshot(SnapshotId=part)

    def _instances(self, **which):
        pages = self._ec2.get_paginator("describe_instances").paginate(**which)
        return [one for page in pages for group in page["Reservations"] for one in group["Instances"]]

    def _tags(self, name):
        return [{"Key": "Name", "Value": name}, {"Key": TAG, "Value": self._mark}]

    def _named(self, name):
        return where(f"tag:{TAG}", [self._mark]) + where("tag:Name", [name])

    def _telling(self, doing):
        return telling(doing, self._own)
