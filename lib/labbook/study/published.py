"""Published summaries: a small Parquet file an experiment, so that a page can be read and rebuilt
without a lab. Each row is a point's summary with its facts and provenance as JSON. Beside them,
`fingerprint.json` says for which code and versions they stand."""

import json

from labbook import paths
from labbook.atomic_files import write_whole
from labbook.errors import InputError

OWN = ["facts", "provenance"]    # columns that a summary does not show
KEPT = ("machine", "code", "during", "links", "lab", "failed_first", "versions")


def path(study: str, experiment: str):
    return paths.published_dir() / study / f"{experiment}.parquet"


def load(study, experiment: str):
    """DataFrame of all published points of an experiment of a Study, in the order of the plan.

    `stale` is true where a point was measured by earlier code than what was published, or where
    the fingerprint is not today's. InputError when nothing is published.
    """
    import pandas as pd

    file = path(study.name, experiment)
    if not file.exists():
        raise InputError("nothing is published of this experiment", file=file)
    frame = pd.read_parquet(file)
    return frame.assign(stale=frame["stale"].astype(bool) | bool(changed(study)))


def fingerprint_path(study: str):
    return paths.published_dir() / study / "fingerprint.json"


def changed(study) -> list[str]:
    """["code"] where a Study's published summaries do not stand for today's code, else nothing.

    The versions beside it are those of the machine that published; where the summaries are only
    read, other versions may be installed, or none.
    """
    try:
        stands_for = json.loads(fingerprint_path(study.name).read_text())
    except FileNotFoundError:
        return ["code"]
    return [] if stands_for["code"] == study.fingerprint.code else ["code"]


def stamp(study, why: str):
    """Write that the published summaries of a Study stand for today's code and versions, and why;
    the file's path."""
    file = fingerprint_path(study.name)
    text = json.dumps({"code": study.fingerprint.code, "versions": study.fingerprint.versions,
                       "why": why}, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    write_whole(file, lambda out: out.write(text.encode()))
    return file


def kept(meta: dict, profile: str) -> dict:
    """What of a point's provenance is published, and the profile for which the point counts (it
    may have been measured by an earlier run of another profile)."""
    found = {k: meta["provenance"][k] for k in KEPT if k in meta["provenance"]}
    return found | {"profile": profile, "environment": meta["environment"]}
