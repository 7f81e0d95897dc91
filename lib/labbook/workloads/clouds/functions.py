"""The functions of a cloud's client, tried one by one: each works or fails, with evidence.

A function takes the Testbed and returns (whether it works, evidence, numbers). A failure of the cloud
is a result; a wrong input is raised.
"""

import math
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import pandas as pd

from labbook.errors import InputError, LabbookError, LabError, SystemFailure
from labbook.workloads.clouds.testbed import Testbed

NUMBERS = ("failed_to_run", "beyond_fit", "ran_of_fit", "rebooted_share", "others_rebooted", "named_as_asked",
           "snapshot_booted", "clients_differ", "other_works")
# Four commands had problems in the report; it does not name the other functions. One call too many shows that as
# many as fit were reached.
OF_THE_REPORT = ("run_all", "run_one_too_many", "reboot_several", "attach_usual_name", "attach_other_name",
                 "snapshot_fresh", "snapshot_two_clients", "installed_snapshot")
SEVERAL = 3
GB = 1
LETTER = "f"            # the sixth disk: so that the next free name is not the one asked for by chance
OTHER_NAME = "/dev/labbook"
MARK = "/root/labbook-mark"
SOFTWARE_S = 300
FILES = "find /opt/labbook -type f | wc -l"


@dataclass(frozen=True)
class Load:
    """`rows`: one row: started_s, seconds, ok, evidence. `metrics`: works (1 or 0), evidence (text),
    and NUMBERS, NaN for those of other functions: failed_to_run, beyond_fit and ran_of_fit (servers that ran beyond
    those that fit, and the share of these that ran, where one too many was asked for), rebooted_share,
    others_rebooted, named_as_asked, snapshot_booted, clients_differ (1 where of images by two versions of the client
    one boots and one does not), and other_works (works, of a function that the report does not name)."""

    rows: pd.DataFrame
    metrics: dict


def cloud_function(name: str, testbed: Testbed) -> Load:
    """Try one function on the testbed: it fails when the cloud fails at it, or refuses. After a
    failure the servers are dropped, so that the next function gets others.

    InputError for an unknown name; LabError when the cloud or the lab cannot be reached.
    """
    if name not in FUNCTIONS:
        raise InputError(f"no function {name!r}", key="function", allowed=sorted(FUNCTIONS))
    begin, testbed.trying = time.monotonic(), False
    try:
        works, evidence, numbers = FUNCTIONS[name](testbed)
    except (SystemFailure, LabError) as error:
        works, evidence = False, _refusal(error)
        numbers = _failed(name, testbed) if testbed.trying else {}
    if not works:
        testbed.abandon()
    if name not in OF_THE_REPORT:
        numbers["other_works"] = works
    metrics = {"works": float(works), "evidence": evidence,
                **{number: float(numbers.get(number, math.nan)) for number in NUMBERS}}
    rows = pd.DataFrame([{"started_s": 0.0, "seconds": time.monotonic() - begin, "ok": bool(works),
                          "evidence": evidence}])
    return Load(rows, metrics)


def _refusal(error) -> str:
    """What the cloud failed at or refused; any other error of a lab is raised."""
    if isinstance(error, LabError) and not getattr(error, "refused", False):
        raise error
    return str(error).partition("\n")[0]


@contextmanager
def _tried(testbed):
    """What a function's numbers are about is in the block: what fails before or after says nothing of them."""
    testbed.trying = True
    yield
    testbed.trying = False


def _failed(name, testbed) -> dict:
    """The numbers of a function that failed where they are decided."""
    if name == "run_all":
        return {"failed_to_run": testbed.fit}
    if name == "run_one_too_many":
        return {"beyond_fit": 0.0, "ran_of_fit": 0.0}
    metric = {"snapshot": "snapshot_booted", "attach": "named_as_asked", "reboot": "rebooted_share"}
    return {found: 0.0 for word, found in metric.items() if word in name}


# Images, types and servers


def images(testbed):
    found = testbed.cloud.images()
    there = any(one.id == testbed.image.id for one in found)
    return there, f"{len(found)} images, {'with' if there else 'without'} the guest's", {}


def vm_types(testbed):
    found = testbed.cloud.flavors()
    there = any(one.id == testbed.flavor.id for one in found)
    return there, f"{len(found)} types, {'with' if there else 'without'} the one in use", {}


def quota(testbed):
    limits = sorted(testbed.cloud.quota().items())
    return bool(limits), ", ".join(f"{what}: {one.used} of {one.limit}" for what, one in limits), {}


def upload_image(testbed):
    image = _uploaded(testbed)
    taken = image.moments["ready"] - image.moments["called"]
    testbed.cloud.delete_image(image)
    return True, f"ready after {taken:.1f} s", {}


def delete_image(testbed):
    image = _uploaded(testbed)
    testbed.cloud.delete_image(image)
    left = any(one.id == image.id for one in testbed.cloud.images())
    return not left, "still listed" if left else "listed no more", {}


def run_one(testbed):
    server, = testbed.started(1)
    taken = server.moments["answers"] - server.moments["called"]
    testbed.cloud.terminate([server])
    return True, f"answered after {taken:.1f} s", {}


def run_several(testbed):
    made = testbed.started(SEVERAL)
    addresses = {server.address for server in made}
    testbed.cloud.terminate(made)
    return len(addresses) == SEVERAL, f"{len(made)} answered, at {len(addresses)} addresses", {}


def run_all(testbed):
    """As many as fit by one call; the testbed's own servers are terminated first."""
    ran, evidence = _filled(testbed, testbed.fit)
    return ran == testbed.fit, evidence, {"failed_to_run": testbed.fit - ran}


def run_one_too_many(testbed):
    """One more than fit, by one call. It works where no more than fit run, be it these or none."""
    try:
        ran, evidence = _filled(testbed, testbed.fit + 1)
    except LabError as error:
        if not getattr(error, "refused", False):
            raise
        ran, evidence = 0, f"refused: {error.message}"
    return ran <= testbed.fit, evidence, {"beyond_fit": max(0, ran - testbed.fit), "ran_of_fit": ran / testbed.fit}


def _filled(testbed, number) -> tuple[int, str]:
    """(how many of so many large servers ran that one call started, and that in words); there are none then."""
    testbed.clear()
    if left := [one for one in testbed.cloud.servers() if one.id in testbed.begun]:
        raise SystemFailure(f"{len(left)} servers of earlier functions have not ended, so fewer fit")
    with _tried(testbed):
        made = testbed.run(number, flavor=testbed.large)
        testbed.cloud.await_running(made, testbed.seconds)
    ran = sum("running" in server.moments for server in made)
    faults = sorted({server.fault for server in made if server.fault})
    try:
        testbed.cloud.terminate(made)
    except SystemFailure as error:      # so many ran all the same
        testbed.abandon()
        faults.append(str(error).partition("\n")[0])
    return ran, f"{ran} of {number} ran" + "".join(f"; {one}" for one in faults)


def servers_listed(testbed):
    mine = testbed.servers(2)
    listed = {one.id for one in testbed.cloud.servers()}
    found = sum(server.id in listed for server in mine)
    return found == len(mine), f"{found} of {len(mine)} listed", {}


def each_rebooted(testbed):
    """One call for each."""
    mine, before = _before_reboot(testbed)
    with _tried(testbed):
        for server in mine:
            testbed.cloud.reboot([server], hard=testbed.hard)
        return _counted(testbed.rebooted(mine, before))


def reboot_several(testbed):
    """One call for all."""
    mine, before = _before_reboot(testbed)
    with _tried(testbed):
        testbed.cloud.reboot(mine, hard=testbed.hard)
        return _counted(testbed.rebooted(mine, before))


def _before_reboot(testbed) -> tuple[list, list[str]]:
    """(several servers, the boot id of each); SystemFailure when one does not answer."""
    mine = testbed.servers(SEVERAL)
    before = testbed.boots(mine)
    silent = [server.name for server, boot in zip(mine, before) if not boot]
    if silent:
        raise SystemFailure(f"{', '.join(silent)} did not answer before the reboot")
    return mine, before


def _counted(rebooted):
    number, all_of_them = sum(rebooted), len(rebooted)
    return (number == all_of_them, f"{number} of {all_of_them} in another boot",
            {"rebooted_share": number / all_of_them, "others_rebooted": sum(rebooted[1:])})


def terminate(testbed):
    server, = testbed.started(1)
    testbed.cloud.terminate([server])
    left = any(one.id == server.id for one in testbed.cloud.servers())
    return not left, "still listed" if left else "listed no more", {}


def _uploaded(testbed):
    if testbed.file is None:
        raise InputError("no file to upload as an image", key="file", allowed="a small raw image")
    return testbed.cloud.upload_image(testbed.file, label="tried")


# Volumes and snapshots


def create_volume(testbed):
    volume = testbed.cloud.create_volume(GB)
    taken = volume.moments["ready"] - volume.moments["called"]
    testbed.cloud.delete_volume(volume)
    return True, f"{volume.size_gb} GB after {taken:.1f} s", {}


def delete_volume(testbed):
    volume = testbed.cloud.create_volume(GB)
    testbed.cloud.delete_volume(volume)
    left = any(one.id == volume.id for one in testbed.cloud.volumes())
    return not left, "still listed" if left else "listed no more", {}


def attach_usual_name(testbed):
    """With a device name such as the guest's Linux gives to its disks."""
    server, = testbed.servers(1)
    first = sorted(testbed.disks(server))[0]
    return _attached(testbed, server, f"/dev/{first[:-1]}{LETTER}")


def attach_other_name(testbed):
    server, = testbed.servers(1)
    return _attached(testbed, server, OTHER_NAME)


def _attached(testbed, server, device):
    """It works when the guest sees a new disk, under any name."""
    with _volume(testbed, server, device) as seen:
        as_asked = seen is not None and f"/dev/{seen}" == device
        return (seen is not None, f"asked for {device}, seen as {f'/dev/{seen}' if seen else 'nothing'}",
                {"named_as_asked": float(as_asked)})


def write_volume(testbed):
    """Make a file system and a file on it, and read the same bytes back after a new mount."""
    server, = testbed.servers(1)
    with _volume(testbed, server) as seen:
        if seen is None:
            return False, "the guest sees no new disk", {}
        made = (f"mkfs.ext4 -qF /dev/{seen} && mkdir -p /mnt && mount /dev/{seen} /mnt && "
                "head -c 8000000 /dev/urandom >/mnt/file && sync && "
                "echo 3 >/proc/sys/vm/drop_caches && md5sum </mnt/file && umount /mnt")
        sums = testbed.ask(server, f"{made} && mount /dev/{seen} /mnt && md5sum </mnt/file && umount /mnt",
                          timeout=120).split()
        same = len(sums) == 4 and sums[0] == sums[2]
        return same, "the same bytes when mounted again" if same else f"md5sum printed {' '.join(sums)[:100]}", {}


def detach(testbed):
    server, = testbed.servers(1)
    volume = testbed.cloud.create_volume(GB)
    with _at_last(testbed.cloud.delete_volume, volume):
        before = testbed.disks(server)
        testbed.cloud.attach(server, volume)
        seen = testbed.new_disk(server, before)
        testbed.cloud.detach(volume)
        gone = seen is not None and testbed.disk_gone(server, seen)
    if seen is None:
        return False, "the guest sees no new disk", {}
    return gone, f"{seen} was seen, and is {'gone' if gone else 'still there'}", {}


def snapshot_fresh(testbed):
    """Of a server that has just booted."""
    return _booted(testbed, _marked(testbed), f"cat {MARK}", "here")


def snapshot_two_clients(testbed):
    """Of a server that has just booted, by each of two versions of the client; snapshot_booted is of the other one."""
    other = testbed.cloud.other_client
    if other is None:
        return False, "this cloud is reached by one version of the client", {}
    server = _marked(testbed)
    images = [_image_by(testbed, server, by_other) for by_other in (False, True)]
    testbed.cloud.terminate([server])
    own_boots, other_boots = (boots for boots, _, _ in images)
    return (all(same for _, same, _ in images), f"{images[0][2]}; by {other}: {images[1][2]}",
            {"snapshot_booted": float(other_boots), "clients_differ": float(own_boots != other_boots)})


def _image_by(testbed, server, by_other: bool) -> tuple[bool, bool, str]:
    """Of an image of the server by the other client or the study's: whether it boots, whether it has the server's
    file, and evidence."""
    try:
        with _tried(testbed):
            image = testbed.cloud.snapshot(server, by_other=by_other)
        same, evidence, _ = _of_image(testbed, image, f"cat {MARK}", "here")
        return True, same, evidence
    except (SystemFailure, LabError) as error:
        if not testbed.trying:
            raise
        testbed.trying = False
        return False, False, _refusal(error)


def _marked(testbed):
    """A new server with a file of its own."""
    server, = testbed.started(1)
    testbed.ask(server, f"echo here >{MARK} && sync")
    return server


def installed_snapshot(testbed):
    """Of a server with many files added."""
    server, = testbed.started(1)
    testbed.ask(server, f"{testbed.software} && sync", timeout=SOFTWARE_S)
    return _booted(testbed, server, FILES, testbed.ask(server, FILES, timeout=SOFTWARE_S))


def _booted(testbed, server, command, wanted):
    """Whether an image of the server boots, and has the server's files."""
    with _tried(testbed):
        image = testbed.cloud.snapshot(server)
    testbed.cloud.terminate([server])
    return _of_image(testbed, image, command, wanted)


def _of_image(testbed, image, command, wanted):
    """The same of an image that was made."""
    with _tried(testbed):
        other, = testbed.started(1, image=image)
        found = testbed.ask(other, command, timeout=SOFTWARE_S)
    testbed.cloud.terminate([other])
    testbed.cloud.delete_image(image)
    same = found == wanted
    return same, f"booted, and {'has' if same else 'lacks'} what was on it", {"snapshot_booted": 1.0}


@contextmanager
def _volume(testbed, server, device=None):
    """A volume, attached to the server within the block; yields its name in the guest, or None."""
    volume = testbed.cloud.create_volume(GB)
    with _at_last(testbed.cloud.delete_volume, volume):
        before = testbed.disks(server)
        with _tried(testbed):
            testbed.cloud.attach(server, volume, device)
        with _at_last(testbed.cloud.detach, volume):
            yield testbed.new_disk(server, before)


@contextmanager
def _at_last(act, volume):
    """A context after which act(volume) is called; its error does not hide one of the block."""
    try:
        yield
    except BaseException:
        with suppress(LabbookError):
            act(volume)
        raise
    act(volume)


FUNCTIONS = {function.__name__: function for function in (
    images, vm_types, quota, upload_image, delete_image, run_one, run_several, run_all,
    run_one_too_many, servers_listed, each_rebooted, reboot_several, terminate, create_volume,
    attach_usual_name, attach_other_name, write_volume, detach, delete_volume,
    snapshot_fresh, snapshot_two_clients, installed_snapshot)}
