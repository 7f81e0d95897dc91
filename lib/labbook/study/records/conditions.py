"""Conditions under which several points were measured, in one dict."""

import json
from collections import Counter
from datetime import datetime


def combined(measured: list[dict]) -> dict:
    """Conditions of points, from the provenance of each, with `stale`: what changed since; empty without points.

    Keys: machine, cpu, cores, memory_gib, kernel, system, python, environment, profile, commit, from, to
    (local time), points, stale (how many by earlier code or versions), stale_because (what changed;
    absent if nothing did), failed_first (how many failed before they succeeded; absent if none),
    cpu_pressure and steal (the highest share of a point's time). Where points are from
    several machines, differing values are listed with their number of points.
    `disk_models`: names of the models of disks that hosts had; absent if none had one.
    With remote hosts also `hosts`: {names of equal hosts: cpu, cores, memory_gib, kernel, system};
    the other entries then describe the driver's machine.
    """
    if not measured:
        return {}
    last = max(measured, key=lambda one: one["during"]["ended"])
    machine = last["machine"]
    hosts = _distinct_hosts(last.get("lab", {}).get("hosts", {}))
    because = list(dict.fromkeys(what for one in measured for what in one["stale"]))
    failed_first = sum("failed_first" in one for one in measured)
    return {
        **({"hosts": hosts} if hosts else {}),
        **{k: _common_value(one["machine"][k] for one in measured)
           for k in ("cpu", "cores", "memory_gib", "kernel", "system", "python")},
        "machine": machine["id"],
        "environment": _joined(one["environment"] for one in measured),
        "profile": _joined(one["profile"] for one in measured),
        "commit": _joined(_commit(one["code"]) for one in measured),
        "from": _local_time(min(one["during"]["started"] for one in measured)),
        "to": _local_time(last["during"]["ended"]),
        "points": len(measured), "stale": sum(bool(one["stale"]) for one in measured),
        **({"stale_because": because} if because else {}),
        **({"failed_first": failed_first} if failed_first else {}),
        **({"disk_models": models} if (models := _disk_models(measured)) else {}),
        "cpu_pressure": max(one["during"]["pressure"].get("cpu", 0.0) for one in measured),
        "steal": max(one["during"]["steal"] for one in measured),
    }


def _disk_models(measured) -> list[str]:
    """Names of the models of disks under any of these points."""
    limits = (host.get("limits") or {} for one in measured for host in one.get("lab", {}).get("hosts", {}).values())
    return sorted({limit["disk"]["model"] for limit in limits if "model" in (limit.get("disk") or {})})


def _distinct_hosts(hosts: dict) -> dict[str, dict]:
    """{names: facts} of remote hosts; hosts with equal facts share an entry."""
    names_by_facts = {}
    for name, facts in hosts.items():
        if "machine" in facts:
            names_by_facts.setdefault(json.dumps(facts["machine"], sort_keys=True), []).append(name)
    return {", ".join(names): json.loads(text) for text, names in names_by_facts.items()}


def _common_value(values):
    """The common value of all points, or each value with its number of points."""
    counts = Counter(values)
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{value} ({points} of {counts.total()} points)" for value, points in counts.most_common())


def _joined(values) -> str:
    return ", ".join(dict.fromkeys(str(v) for v in values))


def _commit(code: dict) -> str:
    commit = (code["commit"] or "no commit")[:12]
    unknown = code["commit"] and code["changed"] is None
    return commit + (" with changes" if code["changed"] else ", perhaps with changes" if unknown else "")


def _local_time(epoch: float) -> str:
    return datetime.fromtimestamp(epoch).astimezone().isoformat(sep=" ", timespec="minutes")
