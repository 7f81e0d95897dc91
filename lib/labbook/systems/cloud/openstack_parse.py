"""What openstacksdk gives, as the things that every cloud has."""

from datetime import datetime, timezone

from labbook.systems.cloud import model as things
from labbook.systems.cloud.model import Image, Quota, Server, Volume

SERVER_STATES = {
    "ACTIVE": things.RUNNING, "BUILD": things.STARTING, "REBOOT": things.REBOOTING,
    "HARD_REBOOT": things.REBOOTING, "SHUTOFF": things.STOPPED, "ERROR": things.ERROR,
    "DELETED": things.GONE, "SOFT_DELETED": things.GONE}
VOLUME_STATES = {"available": things.READY, "in-use": things.IN_USE}
IMAGE_STATES = {"active": things.READY, "killed": things.ERROR, "deleted": things.GONE,
                "pending_delete": things.GONE, "deactivated": things.ERROR}


def image(one) -> Image:
    return Image(one.id, one.name or "", IMAGE_STATES.get(one.status, things.MAKING),
                 size_bytes=one.size)


def server(one) -> Server:
    state = SERVER_STATES.get(one.status, things.STARTING)
    if one.task_state == "deleting" and state != things.ERROR:
        state = things.ENDING
    launched = {"launched": _epoch(one.launched_at)} if one.launched_at else {}
    return Server(one.id, one.name, state, address=_address(one.addresses or {}), moments=launched,
                  fault=(one.fault or {}).get("message"), host=one.compute_host or one.host_id)


def _address(networks) -> str | None:
    """IPv4; one that is reached from outside (floating) if it has one."""
    known = [address for network in networks.values() for address in network
             if address["version"] == 4]
    known.sort(key=lambda address: address.get("OS-EXT-IPS:type") != "floating")
    return known[0]["addr"] if known else None


def _epoch(text: str) -> float:
    return datetime.fromisoformat(text.rstrip("Z")).replace(tzinfo=timezone.utc).timestamp()


def volume(one) -> Volume:
    state = VOLUME_STATES.get(one.status)
    if state is None:
        state = things.ERROR if one.status.startswith("error") else things.MAKING
    at = one.attachments[0] if one.attachments else {}
    return Volume(one.id, one.name or "", state, one.size, server=at.get("server_id"),
                  device=at.get("device"))


def quota(used, limit) -> Quota:
    return Quota(used or 0, None if limit is None or limit < 0 else limit)
