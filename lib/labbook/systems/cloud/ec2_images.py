"""Upload a file as an image to a cloud with EC2's API: its blocks go to a snapshot (API "EBS direct"),
which is registered as an image."""

import base64
import hashlib
import os
import time
from concurrent.futures import ThreadPoolExecutor

from labbook.errors import InputError, SystemFailure
from labbook.systems.cloud.ec2_session import translate_errors
from labbook.systems.cloud.errors import perhaps_made

BLOCK = 512 << 10       # bytes: the API's block size
PARALLEL = 8
READY_S, INTERVAL_S = 600, 1.0
ROOT = "/dev/sda1"


def send_image(client, own, name, tags, path, disk_format, kernel, ramdisk) -> str:
    """The id of the image; zero blocks are not sent. InputError if the cloud or the format cannot."""
    if own.endpoint and not own.blocks:
        raise InputError(f"the cloud accepts no uploaded image: register {path.name} with its own "
                         "tools", file=own.file, key=own.key("images"),
                         allowed="the study's name of the image, with the cloud's id")
    if disk_format != "raw":
        raise InputError(f"an image of format {disk_format!r} cannot be sent in blocks",
                         key="disk_format", allowed="raw")
    ebs = client("ebs")
    snapshot = ebs.start_snapshot(VolumeSize=-(-path.stat().st_size // (1 << 30)), Tags=tags, ClientToken=name,
                                  Description=name)["SnapshotId"]
    with perhaps_made(), translate_errors(f"take the image {path.name}", own):
        _send(ebs, snapshot, path)
        _await(client("ec2"), snapshot)
        return _register(client("ec2"), snapshot, name, tags, kernel, ramdisk)


def _register(ec2, snapshot, name, tags, kernel, ramdisk) -> str:
    parts = {key: part.id for key, part in (("KernelId", kernel), ("RamdiskId", ramdisk)) if part}
    return ec2.register_image(
        Name=name, Architecture="x86_64", VirtualizationType="hvm", RootDeviceName=ROOT,
        BlockDeviceMappings=[{"DeviceName": ROOT, "Ebs": {
            "SnapshotId": snapshot, "DeleteOnTermination": True}}],
        TagSpecifications=[{"ResourceType": "image", "Tags": tags}], **parts)["ImageId"]


def _send(ebs, snapshot, path):
    def put(index):
        with path.open("rb") as file:
            data = os.pread(file.fileno(), BLOCK, index * BLOCK).ljust(BLOCK, b"\0")
        if not any(data):
            return 0
        checksum = base64.b64encode(hashlib.sha256(data).digest()).decode()
        ebs.put_snapshot_block(SnapshotId=snapshot, BlockIndex=index, BlockData=data,
                               DataLength=BLOCK, Checksum=checksum, ChecksumAlgorithm="SHA256")
        return 1

    with ThreadPoolExecutor(PARALLEL) as pool:
        sent = sum(pool.map(put, range(-(-path.stat().st_size // BLOCK))))
    ebs.complete_snapshot(SnapshotId=snapshot, ChangedBlocksCount=sent)


def _await(ec2, snapshot):
    until = time.monotonic() + READY_S
    while True:
        found = ec2.describe_snapshots(SnapshotIds=[snapshot])["Snapshots"]
        state = found[0]["State"] if found else "gone"
        if state == "completed":
            return
        if state != "pending" or time.monotonic() > until:
            raise SystemFailure(f"the image's snapshot {snapshot} is {state}, not completed")
        time.sleep(INTERVAL_S)
