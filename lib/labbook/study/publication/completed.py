"""What publishing has to know of a profile's last complete run, beside its points.

It is a file beside the folders of the run's experiments, data/records/PLACE/STUDY/PROFILE.json. Runs of before there
were such files have none.
"""

import json
import time
from contextlib import suppress
from pathlib import Path

from labbook import paths
from labbook.atomic_files import write_whole
from labbook.errors import InputError
from labbook.study.parameters import given
from labbook.study.records import provenance
from labbook.study.records.record import plain


def write(study) -> None:
    """Write down a Study's run, which is complete, unless the last one that was written down was the same."""
    about = {"experiments": sorted(study.experiments), "parameters": given.values(study.name),
             "environment": str(study.environment), "fleet": study.run.fleet,
             "setups": {name: setup_names(experiment) for name, experiment in study.experiments.items()}}
    about = json.loads(json.dumps(about, default=plain))
    path = _path(study.place, study.name, study.run.profile)
    with suppress(InputError):      # a damaged file is written anew
        found = last(study.name, study.run.profile) or {}
        if found.get("file") == path and about.items() <= found.items():
            return
    text = json.dumps(about | {"completed": time.time()}, indent=1, ensure_ascii=False) + "\n"
    write_whole(path, lambda file: file.write(text.encode()))


def setup_names(experiment) -> list[str] | None:
    """The parameters for which the notebook restarts an experiment's systems; None of one without points."""
    point = next(iter(experiment.planned(1)), None)
    return point and sorted(point.setup)


def last(study: str, profile: str) -> dict | None:
    """The last complete run of a profile on this machine, on hosts of an environment or on a fleet: {experiments:
    names, parameters (of the notebook, None: unknown), environment, fleet (folder of its records, or None), setups
    ({experiment: see setup_names}, empty: unknown), completed (epoch s), file}; None for one of before these were
    written down. InputError for a damaged file."""
    found = [_read(path) for path in sorted(paths.records_dir().glob(f"*/{study}/{profile}.json"))]
    return max(filter(_is_from_here, found), key=lambda run: run["completed"], default=None)


def _is_from_here(run: dict) -> bool:
    """Whether a run from here would measure at its place: a folder of records may be of several machines."""
    try:
        place = run["fleet"] or provenance.place(paths.checkout() / run["environment"])
    except InputError:      # its environment is there no more
        return False
    return run["file"].parent.parent.name == place


def experiments(place: str, study: str, profile: str) -> list[str] | None:
    """Names of the experiments of the last complete run at a place, a folder of the records; None if unknown."""
    path = _path(place, study, profile)
    return _read(path)["experiments"] if path.exists() else None


def setups(place: str, study: str, profile: str) -> dict[str, list[str] | None]:
    """{experiment: see setup_names} of that run; {} if unknown."""
    path = _path(place, study, profile)
    return _read(path)["setups"] if path.exists() else {}


def grids(place: str, study: str, profile: str) -> list[Path]:
    """The lists of the points of that run (see Run.write_grids), one an experiment. Where its experiments are unknown
    all that lie there, also of an experiment that the notebook has no more."""
    found = sorted((paths.records_dir() / place / study).glob(f"*/{profile}.grid"))
    known = experiments(place, study, profile)
    return found if known is None else [grid for grid in found if grid.parent.name in known]


def _path(place, study, profile) -> Path:
    return paths.records_dir() / place / study / f"{profile}.json"


def _read(path: Path) -> dict:
    try:
        run = json.loads(path.read_text())
        return {"parameters": run["parameters"], "environment": str(run["environment"]), "fleet": run["fleet"],
                "experiments": [*run["experiments"]], "setups": {**run.get("setups", {})},
                "completed": float(run["completed"]), "file": path}
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"what a run wrote down of itself is damaged ({error})", file=path,
                         allowed="remove it, then repeat the run with --force; no point is measured again") from error
