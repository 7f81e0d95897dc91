"""Functions of a cloud's client that are about volumes and snapshots: see cloud_functions."""

from contextlib import contextmanager

GB = 1
LETTER = "f"            # the sixth disk, so that the next free name is not what was asked by chance
OTHER_NAME = "/dev/labbook"
MARK = "/root/labbook-mark"
SOFTWARE_S = 300
FILES = "find /opt/labbook -type f | wc -l"


def create_volume(ground):
    volume = ground.cloud.create_volume(GB)
    taken = volume.moments["ready"] - volume.moments["called"]
    ground.cloud.delete_volume(volume)
    return True, f"{volume.size_gb} GB after {taken:.1f} s", {}


def delete_volume(ground):
    volume = ground.cloud.create_volume(GB)
    ground.cloud.delete_volume(volume)
    left = any(one.id == volume.id for one in ground.cloud.volumes())
    return not left, "still listed" if left else "listed no more", {}


def attach_usual_name(ground):
    """Under a name as Linux gives to the guest's own disks."""
    server, = ground.servers(1)
    first = sorted(ground.disks(server))[0]
    return _attached(ground, server, f"/dev/{first[:-1]}{LETTER}")


def attach_other_name(ground):
    server, = ground.servers(1)
    return _attached(ground, server, OTHER_NAME)


def _attached(ground, server, asked):
    """Works when the guest sees a new disk, under whichever name."""
    with _volume(ground, server, asked) as seen:
        as_asked = seen is not None and f"/dev/{seen}" == asked
        return (seen is not None, f"asked for {asked}, seen as {f'/dev/{seen}' if seen else 'nothing'}",
                {"named_as_asked": float(as_asked)})


def write_volume(ground):
    """A file system on it, a file in that, and the same bytes again."""
    server, = ground.servers(1)
    with _volume(ground, server) as seen:
        if seen is None:
            return False, "the guest sees no new disk", {}
        made = (f"mkfs.ext4 -qF /dev/{seen} && mkdir -p /mnt && mount /dev/{seen} /mnt && "
                "head -c 8000000 /dev/urandom >/mnt/file && sync && "
                "echo 3 >/proc/sys/vm/drop_caches && md5sum </mnt/file && umount /mnt")
        told = ground.ask(server, f"{made} && mount /dev/{seen} /mnt && md5sum </mnt/file && umount /mnt",
                          timeout=120).split()
        same = len(told) == 4 and told[0] == told[2]
        return same, "the same bytes when mounted again" if same else f"told {' '.join(told)[:100]}", {}


def detach(ground):
    server, = ground.servers(1)
    volume = ground.cloud.create_volume(GB)
    try:
        before = ground.disks(server)
        ground.cloud.attach(server, volume)
        seen = ground.new_disk(server, before)
        ground.cloud.detach(volume)
        gone = seen is not None and ground.disk_gone(server, seen)
    finally:
        ground.cloud.delete_volume(volume)
    return gone, f"{seen} was seen, and is {'gone' if gone else 'still there'}", {}


def snapshot_fresh(ground):
    """Of a server that has just booted."""
    server, = ground.started(1)
    ground.ask(server, f"echo here >{MARK} && sync")
    return _booted(ground, server, f"cat {MARK}", "here")


def installed_snapshot(ground):
    """After what makes many files in it."""
    server, = ground.started(1)
    ground.ask(server, f"{ground.software} && sync", timeout=SOFTWARE_S)
    return _booted(ground, server, FILES, ground.ask(server, FILES, timeout=SOFTWARE_S))


def _booted(ground, server, command, wanted):
    """Whether an image of the server boots, and has what the server had."""
    image = ground.cloud.snapshot(server)
    ground.cloud.terminate([server])
    other, = ground.started(1, image=image)
    found = ground.ask(other, command, timeout=SOFTWARE_S)
    ground.cloud.terminate([other])
    ground.cloud.delete_image(image)
    same = found == wanted
    return same, f"booted, and {'has' if same else 'lacks'} what was on it", {"snapshot_booted": 1.0}


@contextmanager
def _volume(ground, server, device=None):
    """A volume attached to the server for a while; yields the name that the guest sees it under."""
    volume = ground.cloud.create_volume(GB)
    try:
        before = ground.disks(server)
        ground.cloud.attach(server, volume, device)
        try:
            yield ground.new_disk(server, before)
        finally:
            ground.cloud.detach(volume)
    finally:
        ground.cloud.delete_volume(volume)
