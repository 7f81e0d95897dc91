"""Functions of a cloud's client that are about images, types and servers: see cloud_functions."""

from labbook.errors import InputError

SEVERAL = 3


def images(ground):
    found = ground.cloud.images()
    there = any(one.id == ground.image.id for one in found)
    return there, f"{len(found)} images, {'with' if there else 'without'} the guest's", {}


def vm_types(ground):
    found = ground.cloud.flavors()
    there = any(one.id == ground.flavor.id for one in found)
    return there, f"{len(found)} types, {'with' if there else 'without'} the one in use", {}


def quota(ground):
    told = ground.cloud.quota()
    return bool(told), ", ".join(f"{what}: {one.used} of {one.limit}" for what, one in sorted(told.items())), {}


def upload_image(ground):
    image = _uploaded(ground)
    taken = image.moments["ready"] - image.moments["called"]
    ground.cloud.delete_image(image)
    return True, f"ready after {taken:.1f} s", {}


def delete_image(ground):
    image = _uploaded(ground)
    ground.cloud.delete_image(image)
    left = any(one.id == image.id for one in ground.cloud.images())
    return not left, "still listed" if left else "listed no more", {}


def run_one(ground):
    server, = ground.started(1)
    taken = server.moments["answers"] - server.moments["called"]
    ground.cloud.terminate([server])
    return True, f"answered after {taken:.1f} s", {}


def run_several(ground):
    made = ground.started(SEVERAL)
    addresses = {server.address for server in made}
    ground.cloud.terminate(made)
    return len(addresses) == SEVERAL, f"{len(made)} answered, at {len(addresses)} addresses", {}


def run_all(ground):
    """As many as fit at once. The ground's own servers make room first."""
    ground.clear()
    made = ground.run(ground.fit, flavor=ground.large)
    ground.cloud.await_running(made, ground.seconds)
    ran = sum("running" in server.moments for server in made)
    faults = sorted({server.fault for server in made if server.fault})
    ground.cloud.terminate(made)
    return (ran == ground.fit, f"{ran} of {ground.fit} ran" + "".join(f"; {one}" for one in faults),
            {"failed_to_run": ground.fit - ran})


def servers_listed(ground):
    mine = ground.servers(2)
    listed = {one.id for one in ground.cloud.servers()}
    found = sum(server.id in listed for server in mine)
    return found == len(mine), f"{found} of {len(mine)} listed", {}


def each_rebooted(ground):
    """One call for each."""
    mine = ground.servers(SEVERAL)
    before = ground.boots(mine)
    for server in mine:
        ground.cloud.reboot([server], hard=ground.hard)
    return _told(ground.rebooted(mine, before))


def reboot_several(ground):
    """One call for all."""
    mine = ground.servers(SEVERAL)
    before = ground.boots(mine)
    ground.cloud.reboot(mine, hard=ground.hard)
    return _told(ground.rebooted(mine, before))


def _told(rebooted):
    number, all_of_them = sum(rebooted), len(rebooted)
    return (number == all_of_them, f"{number} of {all_of_them} in another boot",
            {"rebooted_share": number / all_of_them, "others_rebooted": sum(rebooted[1:])})


def terminate(ground):
    server, = ground.started(1)
    ground.cloud.terminate([server])
    left = any(one.id == server.id for one in ground.cloud.servers())
    return not left, "still listed" if left else "listed no more", {}


def _uploaded(ground):
    if ground.file is None:
        raise InputError("no file to upload as an image", key="file", allowed="a small raw image")
    return ground.cloud.upload_image(ground.file, label="tried")
