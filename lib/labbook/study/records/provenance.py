"""Provenance of a point: machine, environment, load and commit."""

import hashlib
import os
import platform
import subprocess
from functools import lru_cache
from pathlib import Path

from labbook import paths
from labbook.lab import clock
from labbook.study import noise

STEAL, CPU_FIELDS = 7, 8    # in /proc/stat: user nice system idle iowait irq softirq steal


def machine() -> dict:
    """CPU model, cores, memory (GiB), kernel and system of this machine."""
    return {"id": machine_id(), "cpu": _cpu_model(), "cores": os.cpu_count(),
            "memory_gib": round(_meminfo("MemTotal") / 2**20, 1), "kernel": platform.release(),
            "system": _system(), "python": platform.python_version()}


@lru_cache
def machine_id() -> str:
    """Ten hex digits from the installation, the CPU model and the number of cores.

    A copy of a virtual machine on other hardware thus has another id.
    """
    parts = (_text("/etc/machine-id") or platform.node(), _cpu_model(), str(os.cpu_count()))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:10]


def place(environment: Path) -> str:
    """Name of the folder of records for an environment file, which identifies where was measured.

    Without remote hosts it is this machine's id. With remote hosts it is a digest of their names,
    addresses, sites and roles, but not of logins and keys. The user's clouds (by name, endpoint and what servers
    start from) and the user's benchmark programs (by name and path), where the environment has any, are part of it.
    """
    from labbook.study.point import digest

    defined = _environment(environment)
    if not defined.hosts and not defined.clouds and not defined.programs:
        return machine_id()
    what = sorted([h.name, h.address, h.data, h.site, sorted(h.roles)] for h in defined.hosts)
    if defined.clouds:
        clouds = sorted([c.name, c.kind, c.endpoint or c.profile, c.region, c.zone, c.network, sorted(c.images.items()),
                         sorted(c.flavors.items())] for c in defined.clouds)      # names differ
        what = [what or machine_id(), clouds]
    if defined.programs:
        what = [what or machine_id(), sorted(defined.programs.items())]
    return f"{environment.stem}-{digest(what)[:10]}"


def redactor(environment: Path):
    """A function that removes addresses, user names and key paths from data for a record."""
    from labbook.lab.environment import redact

    return redact.redactor(_environment(environment))


def _environment(file: Path):
    from labbook.lab.environment.environment import Environment

    return Environment.load(file, keys=False)


def before() -> dict:
    """Snapshot of the machine's counters at the start of a point, for `during`."""
    clock.anchor()
    return {"time": clock.now(), "load": list(os.getloadavg()), "cpu": _cpu_ticks(),
            "stall": _stalls(), "memory_free_gib": _free_gib(), "reference_ms": noise.reference_loop()}


def during(start: dict, reference_ms=None) -> dict:
    """Times (epoch s), load, steal and pressure as shares of the time since `start`, and the reference
    loop (see noise) after the point's set-up and in the end, in ms, and how far these are apart.

    reference_ms: runs the loop and returns its ms; by default noise.reference_loop.
    """
    now = clock.now()
    elapsed = max(now - start["time"], 1e-9)
    ticks = [b - a for a, b in zip(start["cpu"], _cpu_ticks())]
    stalls = _stalls()
    return {
        "started": start["time"], "ended": now,
        "load_before": start["load"], "load_after": list(os.getloadavg()),
        "memory_free_gib": start["memory_free_gib"],
        "steal": ticks[STEAL] / sum(ticks) if sum(ticks) > 0 else 0.0,
        "pressure": {what: (stalls[what] - since) / 1e6 / elapsed
                     for what, since in start["stall"].items() if what in stalls},
        "reference_loop": _reference(start["reference_ms"], (reference_ms or noise.reference_loop)()),
    }


def _reference(before: float, after: float) -> dict:
    return {"before_ms": before, "after_ms": after, "off": max(before, after) / min(before, after) - 1}


@lru_cache
def code() -> dict:
    """{commit, changed}: the checkout's commit, and whether tracked files differ; None outside git, and where git does
    not say."""
    head = _git("rev-parse", "HEAD")
    differ = _git("status", "--porcelain", "-uno") if head else None
    return {"commit": head, "changed": None if differ is None else bool(differ)}


def _git(*arguments) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(paths.checkout()), *arguments], capture_output=True,
                              text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _cpu_ticks() -> list[int]:
    first = _text("/proc/stat").partition("\n")[0].split()[1:]
    return [int(v) for v in first[:CPU_FIELDS]] or [0] * CPU_FIELDS


def _stalls() -> dict:
    """Microseconds since boot in which some task waited for cpu, memory or io (Linux >= 4.20)."""
    stalls = {}
    for what in ("cpu", "memory", "io"):
        first = _text(f"/proc/pressure/{what}").partition("\n")[0]
        if first.startswith("some"):
            stalls[what] = int(first.rpartition("total=")[2])
    return stalls


def _free_gib() -> float:
    return round(_meminfo("MemAvailable") / 2**20, 2)


def _meminfo(name: str) -> int:
    """A value of /proc/meminfo, KiB; 0 if absent."""
    return next((int(line.split()[1]) for line in _text("/proc/meminfo").splitlines()
                 if line.startswith(f"{name}:")), 0)


@lru_cache
def _cpu_model() -> str:
    named = (line.partition(":")[2].strip() for line in _text("/proc/cpuinfo").splitlines()
             if line.startswith("model name"))
    return next(named, platform.machine())


def _system() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.system()


def _text(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
