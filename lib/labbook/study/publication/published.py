"""Published summaries, with which a page can be read and rebuilt without a lab.

data/published/STUDY/MACHINE/ is a set: what one kind of machine measured. In a set each experiment
has a small Parquet file. Each row is a point's summary, with its facts and provenance as JSON.
`run.json` has the notebook's parameters, the kind of machine, and each experiment's parameters and
number of points; `fingerprint.json` names the code and versions for which the summaries are valid, and lists the
changes of the code over which they were carried; `claims.json` has the verdicts on the set (see published_verdicts).

A page shows the set that decides the most claims, of several the one with the most points. Settings that it
did not measure are those of the next set that did; no setting is mixed of several machines, and no experiment
of modelled and other disks or of designs with other parameters.
"""

import json
from datetime import datetime

from labbook import paths
from labbook.atomic_files import write_whole
from labbook.claims.decisions import DECIDED
from labbook.errors import InputError
from labbook.lab import LabDescription
from labbook.study.point import normal
from labbook.study.records import sealed

JSON_COLUMNS = ["facts", "provenance"]    # removed from summaries
PROVENANCE = ("machine", "code", "during", "links", "lab", "failed_first", "versions")


def folder(study: str, machine: str):
    return paths.published_dir() / study / machine


def file(study: str, machine: str, experiment: str):
    return folder(study, machine) / f"{experiment}.parquet"


def sets(study: str) -> list[str]:
    """Names of a study's sets (see machine_kind.slug), that which decides the most claims first, then that
    with the most points."""
    found = sorted(path.parent.name for path in (paths.published_dir() / study).glob("*/run.json"))
    return sorted(found, key=lambda machine: (-_decided(study, machine), -points(study, machine)))


def _decided(study: str, machine: str) -> int:
    """How many claims a set decided when it was judged last; 0 without its claims.json."""
    try:
        judged = json.loads((folder(study, machine) / "claims.json").read_text())["claims"]
        return sum(one["verdict"] in DECIDED for one in judged)
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return 0


def points(study: str, machine: str) -> int:
    """The number of points in a set."""
    return sum(each["points"] for each in described(study, machine).values())


def described(study: str, machine: str) -> dict:
    """{experiment: what run.json says of it} of a set. A killed publishing may have left another's file."""
    return read_run(study, machine).get("experiments", {})


def experiments(study: str) -> list[str]:
    """Names of the experiments that any set has."""
    return sorted({name for machine in sets(study) for name in described(study, machine)})


def has(study: str, experiment: str) -> bool:
    return any(experiment in described(study, machine) for machine in sets(study))


def load(study, experiment: str):
    """DataFrame of the published points of a Study's experiment that a page shows: of each set in
    the order of the plan, in the order of `sets`.

    `stale` is true where the point was already stale when it was published, and for all points of a set
    whose fingerprint differs from that of the current code. InputError when the experiment has no
    published summary, or a damaged one.
    """
    return joined(parts(study, experiment))


def joined(parts: list[tuple]):
    """One DataFrame of all that `parts` found."""
    import pandas as pd

    frames = [frame for _, frame in parts]
    return pd.concat(frames, ignore_index=True) if len(frames) > 1 else frames[0]


def parts(study, experiment: str) -> list[tuple]:
    """(machine, DataFrame) of each set that a page shows points of; see `load`. Sets with points by today's code go
    before those without.

    Where sets have hosts with the models of disks that lab.yml names, points of other sets are left out: they
    are of another disk. So are points whose parameters have other names than those of the first set, or another
    value of one that has a single value there: they are of another design, such as the quick profile's.
    """
    found, seen, design, fixed, value = [], set(), None, (), None
    frames = {machine: rows(study.name, machine, experiment) for machine in sets(study.name)
              if experiment in described(study.name, machine)}
    frames = dict(sorted(frames.items(), key=lambda each: len(each[1]) > 0 and (
        bool(each[1]["stale"].all()) or bool(changed(study, each[0])))))
    lab = study.folder / "lab.yml"
    models = _models(host.limits for host in LabDescription.load(lab).of(experiment).hosts) if lab.is_file() else set()
    alike = [machine for machine, frame in frames.items() if models and _models_of(frame) == models]
    for machine in alike or frames:
        frame = frames[machine]
        names = parameters(study.name, machine, experiment)
        if len(frame) and set(names) != (design := design or set(names)):
            continue
        records = frame.to_dict("records")
        if value is None and records:
            fixed = _of_single_value(records, names)
            value = setting(records[0], fixed)
        frame = frame.loc[[setting(row, fixed) == value for row in records]]
        settings = [setting(row, names) for row in frame.to_dict("records")]
        new = frame.loc[[index for index, one in zip(frame.index, settings) if one not in seen]]
        seen |= set(settings)
        if len(new) or not found:
            stale = new["stale"].astype(bool) | bool(changed(study, machine))
            found.append((machine, new.assign(stale=stale)))
    if not found:
        raise InputError("nothing is published of this experiment",
                         file=paths.published_dir() / study.name, key=experiment)
    return [(machine, frame) for machine, frame in found if len(frame)] or found[:1]


def _of_single_value(records: list[dict], names) -> list[str]:
    """The parameters that have the same value in all points."""
    return [name for name in names if len({setting(row, [name]) for row in records}) == 1]


def _models_of(frame) -> set:
    """Names of the models of disks under the points of a set."""
    hosts = [host for text in frame.get("provenance", ()) for host in
             json.loads(text).get("lab", {}).get("hosts", {}).values()]
    return _models(host.get("limits") or {} for host in hosts)


def _models(limits) -> set:
    disks = [each.get("disk") or {} for each in limits]
    return {disk["model"] for disk in disks if "model" in disk}


def setting(row: dict, names) -> str:
    """A point's parameters as text, the same for 1 and 1.0; a missing value is one value."""
    return repr([None if row.get(name) != row.get(name) else normal(row.get(name), name) for name in sorted(names)])


def rows(study: str, machine: str, experiment: str):
    """DataFrame of all points that a set has of an experiment; InputError for a damaged file, and for none."""
    path = file(study, machine, experiment)
    try:
        return sealed.frame(sealed.read(path)[0])
    except FileNotFoundError:
        raise _damaged(path, "it is not there, though run.json names it") from None
    except sealed.Damaged as error:
        raise _damaged(path, error) from error


def measured(frame) -> list[dict]:
    """The provenance of each point of a published table, with what changed since, as conditions.combined takes them."""
    points = frame.drop_duplicates("point") if len(frame) else frame    # a paired point has a row an arm
    return [json.loads(text) | {"stale": ["code"] if stale else []}
            for text, stale in zip(points["provenance"], points["stale"])]


def parameters(study: str, machine: str, experiment: str) -> list[str]:
    """Names of an experiment's parameters in a set."""
    return read_run(study, machine)["experiments"][experiment]["parameters"]


def fingerprint_path(study: str, machine: str):
    return folder(study, machine) / "fingerprint.json"


def changed(study, machine: str) -> list[str]:
    """["code"] if a Study's published set is of other code than the current one, otherwise [].

    Versions are not compared: a machine that only reads the summaries may have other versions
    installed, or none.
    """
    return [] if _stamp(study.name, machine).get("code") == study.fingerprint.code else ["code"]


def code(study: str, machine: str) -> str:
    """The digest of the code for which a set's summaries are valid; empty without a stamp."""
    return str(_stamp(study, machine).get("code", ""))


def versions(study: str, machine: str) -> dict:
    """{package: version} for which a set's summaries are valid; empty without a stamp."""
    return dict(_stamp(study, machine).get("versions", {}))


def changes(study: str, machine: str) -> list[dict]:
    """The changes of the code over which a set was carried, oldest first: {"on": time in ISO 8601, "why": the reason
    for which no number depends on it}; empty without a stamp."""
    return list(_stamp(study, machine).get("changes", []))     # a set of an earlier version names none


def changes_since(study: str, machine: str, measured: list[dict]) -> list[dict]:
    """Those of `changes` that are later than any of these points of the set. measured: the provenance of each."""
    first = min((one["during"]["ended"] for one in measured), default=None)
    return [change for change in changes(study, machine)
            if first is not None and datetime.fromisoformat(change["on"]).timestamp() > first]


def _stamp(study: str, machine: str) -> dict:
    """A set's stamp, empty without one; InputError for a damaged one."""
    path = fingerprint_path(study, machine)
    try:
        found = json.loads(path.read_text())
        if not isinstance(found, dict) or not {"code", "versions"} <= set(found):
            raise TypeError("it is no mapping with code and versions")
        return found
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError) as error:
        raise _damaged(path, error) from error


def read_run(study: str, machine: str | None = None) -> dict:
    """run.json of a set, by default of the one that the page shows: {"profile", "parameters" (of the
    notebook), "machine" (its kind), "experiments": {name: {"points", "parameters"}}}.

    {} if nothing is published. InputError for a damaged file.
    """
    if machine is None:
        machine = next(iter(sets(study)), None)
    if machine is None:
        return {}
    path = folder(study, machine) / "run.json"
    try:
        run = json.loads(path.read_text())
        if not isinstance(run, dict):
            raise TypeError("it is no mapping")
        return run
    except (ValueError, TypeError) as error:
        raise _damaged(path, error) from error


def _damaged(path, error) -> InputError:
    named = path.relative_to(paths.checkout()) if path.is_relative_to(paths.checkout()) else path
    return InputError(f"the published file is damaged ({error})", file=path,
                      allowed=f"the file as it was published: git checkout -- {named}")


def stamp(study, machine: str, changes: list[dict]):
    """Declare a published set of a Study valid for the current code and versions.

    changes: all over which its points were carried, as the function of that name has them. Returns the path of
    fingerprint.json.
    """
    path = fingerprint_path(study.name, machine)
    today = study.fingerprint
    gone = {name for group in today.alternatives if set(group) & set(today.versions) for name in group}
    known = {name: version for name, version in versions(study.name, machine).items() if name not in gone}
    known |= today.versions     # also of packages that this machine lacks, but of alternatives the installed one alone
    text = json.dumps({"code": study.fingerprint.code, "versions": known,
                       "changes": changes}, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    write_whole(path, lambda out: out.write(text.encode()))
    return path


def provenance(meta: dict, profile: str) -> dict:
    """The published part of a point's provenance, with its environment and `profile`.

    The profile is that of the publishing run; an earlier run of another profile may have measured
    the point.
    """
    chosen = {k: meta["provenance"][k] for k in PROVENANCE if k in meta["provenance"]}
    return chosen | {"profile": profile, "environment": meta["environment"]}
