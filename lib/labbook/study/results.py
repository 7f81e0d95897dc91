"""Results: a table with a row per point, from this machine's records or the published ones."""

import json
from collections import Counter
from datetime import datetime

from labbook.study import published
from labbook.study.record import row


def summary(experiment):
    """DataFrame sorted in the order of the plan; columns point, the parameters, repeat, block,
    order, stale and the metrics. `stale` marks points measured with earlier code or versions."""
    import pandas as pd

    if experiment.study.run.published:
        return published.load(experiment.study, experiment.name).drop(columns=published.OWN)
    rows = [row(meta, experiment.study.run.is_stale(meta)) for meta in metas(experiment)]
    columns = ["point", *experiment.parameters, "repeat", "block", "order", "stale"]
    return pd.DataFrame(rows) if rows else pd.DataFrame(columns=columns)


def metas(experiment) -> list[dict]:
    """Metadata of the experiment's recorded points, in the order of the plan."""
    records = experiment.study.records(experiment.name)
    found = (records.meta(point.key) for point in experiment.points())
    return [meta for meta in found if meta is not None]


def conditions(study, experiments) -> dict:
    """The conditions under which the points were measured; empty without points.

    machine, cpu, cores, memory_gib, kernel, system, python, environment, profile, commit, from, to
    (local time), points, stale (how many by earlier code or versions), stale_because (what changed;
    absent if nothing did), failed_first (how many failed before they succeeded; absent if none),
    cpu_pressure and steal (the highest share of a point's time). Where points are from
    several machines, differing values are listed with their number of points.
    With remote hosts also `hosts`: {names of equal hosts: cpu, cores, memory_gib, kernel, system};
    the other entries then describe the driver's machine.
    """
    told = []
    for experiment in experiments:
        if study.run.published:
            frame = published.load(study, experiment.name)
            because = published.changed(study) or ["code"]
            told += [json.loads(text) | {"stale": because if stale else []}
                     for text, stale in zip(frame["provenance"], frame["stale"])]
        else:
            told += [published.kept(meta, study.run.profile) | {"stale": study.run.changed(meta)}
                     for meta in metas(experiment)]
    return _digest(told)


def _digest(told: list[dict]) -> dict:
    if not told:
        return {}
    last = max(told, key=lambda one: one["during"]["ended"])
    machine = last["machine"]
    hosts = _kinds(last.get("lab", {}).get("hosts", {}))
    because = list(dict.fromkeys(what for one in told for what in one["stale"]))
    failed_first = sum("failed_first" in one for one in told)
    return {
        **({"hosts": hosts} if hosts else {}),
        **{k: _counted(one["machine"][k] for one in told)
           for k in ("cpu", "cores", "memory_gib", "kernel", "system", "python")},
        "machine": machine["id"],
        "environment": _together(one["environment"] for one in told),
        "profile": _together(one["profile"] for one in told),
        "commit": _together(_commit(one["code"]) for one in told),
        "from": _when(min(one["during"]["started"] for one in told)),
        "to": _when(last["during"]["ended"]),
        "points": len(told), "stale": sum(bool(one["stale"]) for one in told),
        **({"stale_because": because} if because else {}),
        **({"failed_first": failed_first} if failed_first else {}),
        "cpu_pressure": max(one["during"]["pressure"].get("cpu", 0.0) for one in told),
        "steal": max(one["during"]["steal"] for one in told),
    }


def _kinds(hosts: dict) -> dict[str, dict]:
    """Remote hosts, equal ones under one key."""
    kinds = {}
    for name, facts in hosts.items():
        if "machine" in facts:
            kinds.setdefault(json.dumps(facts["machine"], sort_keys=True), []).append(name)
    return {", ".join(names): json.loads(kind) for kind, names in kinds.items()}


def _counted(values):
    """The common value of all points, or each value with its number of points."""
    found = Counter(values)
    if len(found) == 1:
        return next(iter(found))
    return ", ".join(f"{value} ({points} of {found.total()} points)" for value, points in found.most_common())


def _together(values) -> str:
    return ", ".join(dict.fromkeys(str(v) for v in values))


def _commit(code: dict) -> str:
    commit = (code["commit"] or "no commit")[:12]
    return f"{commit} with changes" if code["changed"] else commit


def _when(epoch: float) -> str:
    return datetime.fromtimestamp(epoch).astimezone().isoformat(sep=" ", timespec="minutes")
