"""What control groups, such as a container's, let this process use of the machine."""

import math
from pathlib import Path

GROUPS, OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
UNLIMITED = 1 << 60     # version 1 says so of memory by a number that no machine has


def cores(groups: Path = GROUPS, own: Path = OWN) -> float:
    """Processors' worth of time; infinity without a limit."""
    found = [_quota(*(folder / "cpu.max").read_text().split()) for folder in _folders(groups, own, "")
             if (folder / "cpu.max").is_file()]
    found += [_quota((folder / "cpu.cfs_quota_us").read_text(), (folder / "cpu.cfs_period_us").read_text())
              for folder in _folders(groups, own, "cpu") if (folder / "cpu.cfs_quota_us").is_file()]
    return min(found, default=math.inf)


def memory(groups: Path = GROUPS, own: Path = OWN) -> float:
    """Bytes; infinity without a limit."""
    files = [folder / "memory.max" for folder in _folders(groups, own, "")]
    files += [folder / "memory.limit_in_bytes" for folder in _folders(groups, own, "memory")]
    found = [int(text) for file in files if file.is_file() and (text := file.read_text().strip()) != "max"]
    return min((size for size in found if size < UNLIMITED), default=math.inf)


def _quota(quota: str, period: str) -> float:
    return int(quota) / int(period) if quota.strip() not in ("max", "-1") else math.inf


def _folders(groups: Path, own: Path, controller: str) -> list[Path]:
    """Those of this process's group and of the groups above it: of version 2 for controller "", else of 1."""
    for line in own.read_text().splitlines() if own.is_file() else ():
        _, names, path = line.split(":", 2)
        if (controller in names.split(",")) if controller else names == "":
            top = groups / controller
            inner = top / path.lstrip("/")
            return [inner, *(one for one in inner.parents if one.is_relative_to(top))]
    return []
