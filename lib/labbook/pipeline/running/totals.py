"""How much a run has to do, known before it begins: points of every experiment, and seconds of a point.

A notebook declares its experiments one after the other, so its own count grows as it goes. The totals of
its last run stand as long as code, parameters and records are the same; otherwise the notebook is
executed once without measuring.
"""

import hashlib
import json
import statistics
from pathlib import Path

from labbook import paths
from labbook.checks import load_yaml
from labbook.pipeline.executing import pages
from labbook.pipeline.executing.driver import look
from labbook.pipeline.sources import keys, notebooks, parameters
from labbook.study.options import PROFILES

PROFILE = "LABBOOK_PROFILE"
DPKG = Path("/var/lib/dpkg/status")     # written whenever a package is installed or removed


class Refused(Exception):
    """A notebook cannot be run with these parameters. Nothing was started."""


def check_input(outcome) -> None:
    """Refused if an execution that only plans ended by wrong input."""
    if (outcome.error or {}).get("name") == "InputError":
        raise Refused(outcome.message())


def before(study, chosen, variables, partial, interrupts) -> dict | None:
    """{experiments: {name: {done, total, seconds_before (of a point, or None)}}, point_s (see the function)} of a
    study with a lab; None where the notebook does not say. Refused where its input is wrong."""
    if not (paths.papers(study) / "lab.yml").is_file() or "LABBOOK_PUBLISHED" in variables:
        return None
    experiments = _stored(study, _key(study, chosen, variables))
    if experiments is None:
        outcome, story = look(study, chosen, partial, variables, interrupts)
        check_input(outcome)
        if outcome.state != pages.PAUSED:
            return None
        experiments = story.experiments
    found = {name: {key: one.get(key) for key in ("done", "total", "seconds_before")}
             for name, one in experiments.items()}
    profile = variables.get(PROFILE, PROFILES[0])
    points = sum(one["total"] or 0 for one in found.values())
    unknown = any(one["seconds_before"] is None and (one["total"] or 0) > (one["done"] or 0) for one in found.values())
    return {"experiments": found, "point_s": point_s(study, profile, points, chosen) if unknown else None}


def keep(study, chosen, variables, story) -> None:
    """Store the totals after a run of a study with a lab."""
    if story.experiments and (paths.papers(study) / "lab.yml").is_file() and "LABBOOK_PUBLISHED" not in variables:
        found = {name: {"done": one.get("done"), "total": one.get("total"),
                        "seconds_before": story.seconds_of_point(name)} for name, one in story.experiments.items()}
        pages.write_atomically(path(study), json.dumps(
            {"key": _key(study, chosen, variables), "experiments": found}, indent=1) + "\n")


def path(study):
    """build/totals/STUDY.json."""
    return paths.build_dir() / "totals" / f"{study}.json"


def _stored(study, key) -> dict | None:
    try:
        found = json.loads(path(study).read_text())
        return found["experiments"] if found["key"] == key else None
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def _key(study, chosen, variables) -> str:
    """Digest of what decides how much is left: code, parameters, lab, library, versions, records."""
    cells = [notebooks.source(cell) for cell in notebooks.read(paths.notebook(study))["cells"]
             if cell["cell_type"] == "code"]
    digest = hashlib.sha256(json.dumps([cells, chosen, variables.get(PROFILE), "LABBOOK_REMEASURE" in variables,
                                        keys.records(study)], sort_keys=True).encode())
    packages = DPKG.stat().st_mtime_ns if DPKG.exists() else 0
    for part in [(paths.papers(study) / "lab.yml").read_bytes(), str(packages), *keys.library()]:
        digest.update(part if isinstance(part, bytes) else str(part).encode())
    return digest.hexdigest()


def point_s(study: str, profile: str, points: int, chosen: dict | None = None) -> float | None:
    """Seconds of a point of which nothing else is known, or None.

    Where so many points are all of the profile they share its minutes in lab.yml. With parameters (`chosen`) other than
    the profile's they may be a small part of it, so a point takes what the study's published points take on average.
    """
    if chosen is not None and differ(study, profile, chosen):
        return published_point_s(study)
    file = paths.papers(study) / "lab.yml"
    needs = ((load_yaml(file) or {}).get("needs") or {}) if file.is_file() else {}
    minutes = needs.get("minutes", {}).get(profile)
    return 60 * minutes / points if minutes and points else None


def differ(study: str, profile: str, chosen: dict) -> bool:
    """Whether parameters are others than the profile's, but for the place of the hosts."""
    return {**chosen, "environment": None} != {**parameters.chosen(study, profile), "environment": None}


def published_point_s(study: str) -> float | None:
    """The mean over all published points of a study; a point's span has the set-up of its block where it is the
    block's first."""
    from labbook.study.publication import published

    spans = [json.loads(row.provenance)["during"]
             for machine in published.sets(study)
             for name, of in published.read_run(study, machine)["experiments"].items()
             if of["points"] for row in published.rows(study, machine, name).drop_duplicates("point").itertuples()]
    return statistics.fmean(span["ended"] - span["started"] for span in spans) if spans else None
