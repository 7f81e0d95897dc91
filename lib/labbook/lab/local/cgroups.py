"""Limits of a host by control groups, version 1 or 2, whichever the machine uses."""

import math
import os
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
PERIOD_US = 10_000  # short, so that a host over its quota stalls for milliseconds, not for 0.1 s
LEAST_US = 1_000  # the kernel's minimum quota in a period
CONTROLLER = {"cores": "cpuset", "quota": "cpu", "memory": "memory", "io": "io",
              "freeze": "freezer"}
UNIFIED = "unified"     # version 2 beside version 1, without controllers


def version(root: Path = ROOT) -> int:
    return 2 if (root / "cgroup.controllers").exists() else 1


def folders(lab: str, host: str, wanted: set[str], root: Path = ROOT) -> dict[str, Path]:
    """{limit: folder} for the wanted limits, which are keys of CONTROLLER."""
    if version(root) == 2:
        return {limit: root / f"labbook-{lab}" / host for limit in wanted}
    return {limit: root / _v1(CONTROLLER[limit]) / f"labbook-{lab}" / host for limit in wanted}


def account(lab: str, host: str, root: Path = ROOT) -> Path | None:
    """The host's group whose use of processors the kernel counts, without any limit: its group of version 2, in a
    hierarchy of its own where version 1 has the controllers. None where version 1 is alone."""
    if version(root) == 2:
        return root / f"labbook-{lab}" / host
    return root / UNIFIED / f"labbook-{lab}" / host if (root / UNIFIED / "cgroup.procs").exists() else None


def _v1(controller):
    return "blkio" if controller == "io" else controller


def wanted(limits: dict) -> set[str]:
    """Keys of CONTROLLER that a host with these limits needs."""
    disk = limits.get("disk") or {}
    throttled = {"io"} if {"iops", "mb_per_s"} & set(disk) else set()
    cores = {"cores"} if {"cores", "cores_of"} & set(limits) else set()
    return {key for key in ("quota", "memory") if limits.get(key)} | cores | throttled


def make(places: dict[str, Path], root: Path = ROOT) -> None:
    """Make the folders, with their controllers enabled."""
    for limit, folder in places.items():
        folder.mkdir(parents=True, exist_ok=True)
        if version(root) == 2:
            for controller in needs(limit):
                _enable(root, controller)
                _enable(folder.parent, controller)
        elif limit == "cores":
            _inherit_cpuset(folder.parent)
            _inherit_cpuset(folder)


def needs(limit: str) -> tuple[str, ...]:
    """Controllers of version 2 that a limit needs."""
    # without the memory controller, writeback is charged to the root group; every group can freeze
    return {"io": ("io", "memory"), "freeze": ()}.get(limit, (CONTROLLER[limit],))


def _enable(folder, controller):
    (folder / "cgroup.subtree_control").write_text(f"+{controller}")


def _inherit_cpuset(folder):
    for name in ("cpuset.cpus", "cpuset.mems"):
        if not (folder / name).read_text().strip():
            (folder / name).write_text((folder.parent / name).read_text())


def settings(limits: dict, cores: list[int] | None, device: str | None, v: int) -> list[tuple]:
    """(limit, file, value) to write, for cgroup version `v`. `device` is major:minor."""
    out = []
    if cores is not None:
        out.append(("cores", "cpuset.cpus", ",".join(map(str, cores))))
    if limits.get("quota"):
        out += quota(limits["quota"], v)
    if limits.get("memory"):
        name = "memory.limit_in_bytes" if v == 1 else "memory.max"
        out.append(("memory", name, limits["memory"]))
    return out + _io(limits.get("disk") or {}, device, v)


def quota(share: float | None, v: int) -> list[tuple]:
    """Settings for a quota of `share` CPUs' time, or (None) for no quota."""
    period = PERIOD_US if share is None else max(PERIOD_US, math.ceil(LEAST_US / share))
    left = None if share is None else max(LEAST_US, round(share * period))
    if v == 2:
        return [("quota", "cpu.max", f"{'max' if left is None else left} {period}")]
    left = -1 if left is None else left
    lift = [("quota", "cpu.cfs_quota_us", -1)]  # first, since a quota restricts the period
    return [*lift, ("quota", "cpu.cfs_period_us", period), ("quota", "cpu.cfs_quota_us", left)]


def _io(disk, device, v):
    rates = {"bps": disk.get("mb_per_s") and int(disk["mb_per_s"] * 1e6), "iops": disk.get("iops")}
    rates = {kind: rate for kind, rate in rates.items() if rate}
    if v == 1:
        return [("io", f"blkio.throttle.{way}_{kind}_device", f"{device} {rate}")
                for kind, rate in rates.items() for way in ("read", "write")]
    text = " ".join(f"{way}{kind}={rate}" for kind, rate in rates.items() for way in "rw")
    return [("io", "io.max", f"{device} {text}")] if text else []


def apply(places: dict[str, Path], values: list[tuple], root: Path = ROOT) -> None:
    for limit, name, value in values:
        (places[limit] / name).write_text(str(value))
        if name.startswith("blkio.throttle.write"):
            # version 1 charges writeback to the root group
            (root / "blkio" / name).write_text(str(value))


def ended_for_memory(lab: str, host: str, root: Path = ROOT) -> int:
    """How many processes of a host the kernel has killed at the host's memory limit."""
    name = "memory.events" if version(root) == 2 else "memory.oom_control"
    try:
        events = (folders(lab, host, {"memory"}, root)["memory"] / name).read_text()
    except OSError:     # it has no such limit
        return 0
    return sum(int(line.split()[1]) for line in events.splitlines() if line.startswith("oom_kill "))


def unthrottle(device: str, root: Path = ROOT) -> None:
    """Remove a device's limits from version 1's root group."""
    for kind in ("bps", "iops"):
        place = root / "blkio" / f"blkio.throttle.write_{kind}_device"
        if place.exists():
            place.write_text(f"{device} 0")


def alike(folder: Path, root: Path = ROOT) -> list[Path]:
    """A host's folder, and with version 1 those of the same name in the other hierarchies, which what runs on the host
    may have made: containers need some of their own below the host's in each."""
    others = [] if version(root) == 2 else [one / folder.parent.name / folder.name for one in sorted(root.glob("*"))]
    return [folder, *(one for one in others if one != folder and one.is_dir())]


def remove(folder: Path) -> None:
    """Remove a host's folder with all below it, and the lab's when it is empty."""
    below = [Path(place) for place, _, _ in os.walk(folder, topdown=False)][:-1]
    for place in (*below, folder, folder.parent):
        try:
            os.rmdir(place)
        except FileNotFoundError:
            pass
        except OSError:
            if place != folder.parent:
                raise
