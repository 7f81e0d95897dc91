"""What EC2's API answers, as the things that every cloud has."""

from labbook.systems.cloud import model as things
from labbook.systems.cloud.model import Flavor, Image, Server, Volume

SERVER_STATES = {
    "pending": things.STARTING, "running": things.RUNNING, "shutting-down": things.ENDING,
    "terminated": things.GONE, "stopping": things.ENDING, "stopped": things.STOPPED}
IMAGE_STATES = {"available": things.READY, "pending": things.MAKING, "transient": things.MAKING}
VOLUME_STATES = {"available": things.READY, "creating": things.MAKING, "deleting": things.ENDING,
                 "deleted": things.GONE}


def where(what, values) -> list[dict]:
    """Filters of a question."""
    return [{"Name": what, "Values": list(values)}]


def tags_of(one) -> dict:
    return {tag["Key"]: tag["Value"] for tag in one.get("Tags", ())}


def server(one) -> Server:
    reason = one.get("StateReason", {})
    fault = reason.get("Message") if reason.get("Code", "").startswith("Server.") else None
    return Server(one["InstanceId"], tags_of(one).get("Name", one["InstanceId"]),
                  SERVER_STATES.get(one["State"]["Name"], things.STARTING), fault=fault,
                  address=one.get("PublicIpAddress") or one.get("PrivateIpAddress"),
                  host=one.get("Placement", {}).get("HostId"))


def image(one) -> Image:
    disks = [disk.get("Ebs", {}).get("VolumeSize") or 0 for disk in one.get("BlockDeviceMappings", ())]
    return Image(one["ImageId"], one.get("Name", ""), IMAGE_STATES.get(one["State"], things.ERROR),
                 size_bytes=sum(disks) << 30 or None)


def volume(one) -> Volume:
    at = one["Attachments"][0] if one.get("Attachments") else {}
    state = VOLUME_STATES.get(one["State"], things.ERROR)
    if one["State"] == "in-use":    # from the call on, before it is attached and while it is detached
        state = things.IN_USE if at.get("State", "attached") == "attached" else things.MAKING
    return Volume(one["VolumeId"], tags_of(one).get("Name", ""), state, one["Size"],
                  server=at.get("InstanceId"), device=at.get("Device"))


def flavor(one) -> Flavor:
    return Flavor(one["InstanceType"], one["InstanceType"], one["VCpuInfo"]["DefaultVCpus"],
                  one["MemoryInfo"]["SizeInMiB"],
                  one.get("InstanceStorageInfo", {}).get("TotalSizeInGB"))
