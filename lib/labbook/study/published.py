"""Published summaries, with which a page can be read and rebuilt without a lab.

Each experiment has one small Parquet file. Each row is a point's summary, with its facts and
provenance as JSON. `fingerprint.json` in the same folder names the code and versions for which the
summaries are valid.
"""

import json

from labbook import paths
from labbook.atomic_files import write_whole
from labbook.errors import InputError
from labbook.study import sealed

JSON_COLUMNS = ["facts", "provenance"]    # removed from summaries
PROVENANCE = ("machine", "code", "during", "links", "lab", "failed_first", "versions")


def path(study: str, experiment: str):
    return paths.published_dir() / study / f"{experiment}.parquet"


def load(study, experiment: str):
    """DataFrame of all published points of a Study's experiment, in the order of the plan.

    `stale` is true where the point was already stale when it was published, and for all points when
    the published fingerprint differs from that of the current code. InputError when the experiment
    has no published summary, or a damaged one.
    """
    file = path(study.name, experiment)
    if not file.exists():
        raise InputError("nothing is published of this experiment", file=file)
    try:
        frame = sealed.frame(sealed.read(file)[0])
    except sealed.Damaged as error:
        raise _damaged(file, error) from error
    return frame.assign(stale=frame["stale"].astype(bool) | bool(changed(study)))


def fingerprint_path(study: str):
    return paths.published_dir() / study / "fingerprint.json"


def changed(study) -> list[str]:
    """["code"] if a Study's published summaries are of other code than the current one, otherwise [].

    Versions are not compared: a machine that only reads the summaries may have other versions
    installed, or none.
    """
    try:
        valid_for = json.loads(fingerprint_path(study.name).read_text())
        return [] if valid_for["code"] == study.fingerprint.code else ["code"]
    except FileNotFoundError:
        return ["code"]
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged(fingerprint_path(study.name), error) from error


def read_run(study: str) -> dict:
    """{"profile", "parameters"} of the published summaries; {} if nothing is published. InputError for
    a damaged file."""
    file = paths.published_dir() / study / "run.json"
    try:
        run = json.loads(file.read_text())
        if not isinstance(run, dict):
            raise TypeError("it is no mapping")
        return run
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError) as error:
        raise _damaged(file, error) from error


def _damaged(file, error) -> InputError:
    return InputError(f"the published file is damaged ({error})", file=file,
                      allowed=f"the file as it was published: git checkout -- {file.name}, or labbook publish")


def stamp(study, why: str):
    """Declare the published summaries of a Study valid for the current code and versions.

    why: the reason, for readers of fingerprint.json. Returns the path of that file.
    """
    file = fingerprint_path(study.name)
    text = json.dumps({"code": study.fingerprint.code, "versions": study.fingerprint.versions,
                       "why": why}, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    write_whole(file, lambda out: out.write(text.encode()))
    return file


def provenance(meta: dict, profile: str) -> dict:
    """The published part of a point's provenance, with its environment and `profile`.

    The profile is that of the publishing run; an earlier run of another profile may have measured
    the point.
    """
    parts = {k: meta["provenance"][k] for k in PROVENANCE if k in meta["provenance"]}
    return parts | {"profile": profile, "environment": meta["environment"]}
