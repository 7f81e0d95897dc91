"""Check the parameters of the cloud report's notebook."""

import math

from labbook.errors import InputError
from labbook.papers.cloud_platforms.boot import UNTIL
from labbook.papers.cloud_platforms.experiments import FLAVOR_BY_CORES
from labbook.papers.cloud_platforms.platforms import STARTS
from labbook.systems.cloud.model import PAPER_FLAVORS
from labbook.systems.openstack.config import VCPUS
from labbook.systems.openstack.guest import SIZES_GB
from labbook.systems.openstack.lab_cloud import OpenStack
from labbook.workloads.clouds.functions import FUNCTIONS
from labbook.workloads.machines import npb as nas
from labbook.workloads.machines.bonnie_disk import TIMES_MEMORY

DISK_SHARE = 0.95       # of a platform's disk, which a file system and the platform's own files leave
OF_KERNELS = ("shapes", "applications", "own_network")
WITHOUT_LOGIN = ("images", "vm_types", "quota", "upload_image", "delete_image", "create_volume", "delete_volume")
FLAVORS = [one.name for one in PAPER_FLAVORS]
CACHE_MODES = OpenStack.SETTINGS["cache_mode"]["enum"]
PLUMBING = OpenStack.SETTINGS["plumbing"]["enum"]


def check(experiments, releases: list, cache_mode: str, starts: str, groups: dict[str, dict]) -> None:
    """InputError for a value that cannot be measured. `groups`: {experiment: its parameters}."""
    _one_of("cache_mode", cache_mode, CACHE_MODES)
    _one_of("starts", starts, STARTS)
    known = sorted({*releases, "older", "newer"})
    allowed = {
        "functions": {"function": list(FUNCTIONS), "releases": known, "vm": FLAVORS, "large": FLAVORS},
        "boot": {"vm": FLAVORS, "until": UNTIL, **({} if experiments.own else {"image_gb": list(SIZES_GB)})},
        "compute_hosts": {"release": known, "vm": FLAVORS, "image_gb": list(SIZES_GB)},
        "unixbench": {"place": ["vm", "node"], "copies": ["one", "all"], "cores": list(FLAVOR_BY_CORES)},
        "disk": {"volume": ["local", "network", "node"], "vm": FLAVORS},
        "caching": {"cache_mode": CACHE_MODES},
        "shapes": {"kernel": nas.KERNELS, "size": nas.SIZES, "releases": known, "vm_cores": list(FLAVOR_BY_CORES)},
        "applications": {"kernel": nas.KERNELS, "size": nas.SIZES, "vm_cores": list(FLAVOR_BY_CORES)},
        "own_network": {"kernel": nas.KERNELS, "size": nas.SIZES, "vm_cores": list(FLAVOR_BY_CORES),
                        "network": PLUMBING},
        "latency": {"network": PLUMBING},
        "containers": {"kernel": nas.KERNELS, "size": nas.SIZES, "vm": FLAVORS, "image_gb": list(SIZES_GB)},
        "swapping": {"size": list(nas.SIZES[2:])},      # smaller sizes fit into any server's memory
    }
    for group, entries in allowed.items():
        for name, values in entries.items():
            _one_of(f"{group}.{name}", groups[group][name], values)
    if groups["disk"]["files"] < 0:
        raise InputError(f"{groups['disk']['files']} is less than 0", key="disk.files",
                         allowed="0 or more, in units of 1024 files")
    for number in groups["scaling"]["vms"]:
        if number < 1 or number & (number - 1):
            raise InputError(f"{number} servers", key="scaling.vms", allowed="powers of two: 1, 2, 4, 8, ...")
    _check_times(groups, "scaling", of_limit="shapes")
    _check_times(groups, "own_network", of_limit="own_network")
    _check_times(groups, "containers", of_limit="containers")
    _check_fit(experiments, groups["functions"])
    _check_way(experiments, groups)
    _check_file(experiments.description, groups["disk"])
    if not experiments.own:
        _check_room(experiments.description, groups["boot"])
    for group in ("boot", "unixbench", "disk", "latency", "containers", *OF_KERNELS):
        if groups[group]["pairs"] < 1:
            raise InputError(f"{groups[group]['pairs']} pairs", key=f"{group}.pairs", allowed="1 or more")
    if groups["unixbench"]["repeats"] and "unixbench" in experiments.programs and (
            groups["unixbench"]["share_of_time"] != 1):
        raise InputError(f"{groups['unixbench']['share_of_time']} is not 1",
                         key="unixbench.share_of_time", allowed="1, since the original UnixBench sets its times")
    for group in OF_KERNELS:
        ranks, cores = groups[group]["ranks"], groups[group]["vm_cores"]
        if ranks % max(cores):
            raise InputError(f"{ranks} ranks do not fill servers of {max(cores)} cores", key=f"{group}.ranks",
                             allowed=f"a multiple of {max(cores)}")


def _check_times(groups, group, of_limit) -> None:
    """InputError where runs are repeated for as long as one may take at most, or longer."""
    timed_s, longest = groups[group]["timed_s"], groups[of_limit]["seconds_at_most"]
    if not 0 <= timed_s < longest:
        raise InputError(f"{timed_s} s", key=f"{group}.timed_s",
                         allowed=f"0 to less than {of_limit}.seconds_at_most, {longest:g} s")


def _check_fit(experiments, functions) -> None:
    """InputError where `fit` is not how many large servers a platform of the lab's own takes."""
    if experiments.own or not {"run_all", "run_one_too_many"} & set(functions["function"]):
        return
    large = next(one for one in PAPER_FLAVORS if one.name == functions["large"])
    if functions["fit"] != VCPUS // large.cores:
        raise InputError(f"{functions['fit']} servers of the type {large.name} are not as many as fit",
                         key="functions.fit", allowed=str(VCPUS // large.cores))


def _check_way(experiments, groups) -> None:
    """InputError where servers of the user's clouds are to be logged in to from a host that has no way there."""
    if not experiments.own or experiments.logs_in_to_own:
        return
    without = {"functions": set(groups["functions"]["function"]) <= {*WITHOUT_LOGIN},
               "boot": groups["boot"]["until"] == "running",
               "caching": True, "swapping": True, "compute_hosts": True, "containers": True}   # of the lab's own cloud
    for name, group in groups.items():
        if group["repeats"] and not without.get(name):
            raise InputError(
                f"{name} logs in to servers of {', '.join(sorted(experiments.own))} from the client's host, "
                "and a host on this machine has no way out of its lab",
                file=experiments.study.environment, key="provider",
                allowed=f"ssh, with hosts of your own; or {name}.repeats 0"
                + f", or the functions {', '.join(WITHOUT_LOGIN)}" * (name == "functions"))


def _check_file(description, disk) -> None:
    """A file of bonnie++ is larger than what memory holds of it."""
    memory_mb = {disk["vm"]: next(one.memory_mb for one in PAPER_FLAVORS if one.name == disk["vm"])}
    if "node" in disk["volume"]:
        memory_mb |= {host.name: host.limits["memory"] >> 20 for host in description.hosts
                      if host.role == "node" and "memory" in host.limits}
    largest = max(memory_mb, key=memory_mb.get)
    if disk["size_mb"] < TIMES_MEMORY * memory_mb[largest]:
        raise InputError(f"{disk['size_mb']} MB fit the page cache of {largest}, which has {memory_mb[largest]} MB",
                         key="disk.size_mb", allowed=f"{TIMES_MEMORY * memory_mb[largest]} and more")


def _check_room(description, boot) -> None:
    """A platform's disk has room for the images, and for a copy of the largest for each server at once."""
    disk_gb = min((host.limits["disk"]["size"] / 2**30 for host in description.hosts
                   if host.role == "cloud" and "disk" in host.limits), default=math.inf)
    most, largest, images = max(boot["at_once"]), max(boot["image_gb"]), sum({*boot["image_gb"], SIZES_GB[0]})
    if boot["repeats"] and most * largest + images > disk_gb * DISK_SHARE:
        raise InputError(f"{most} servers with images of {largest:g} GB do not fit a platform's disk of {disk_gb:g} GB",
                         key="boot.at_once", allowed=f"{int((disk_gb * DISK_SHARE - images) // largest)} and fewer, or "
                         "a larger disk of the cloud's hosts in lab.yml")


def _one_of(key, given, allowed) -> None:
    for one in given if isinstance(given, list) else [given]:
        if one not in allowed:
            raise InputError(f"{one!r} is not allowed", key=key, allowed=allowed)
