"""`labbook publish STUDY`: summaries of the last long run from here, to be committed."""

import json

from labbook import paths
from labbook.pipeline import notebooks, pages, parameters


def publish(study: str, profile: str = "full") -> list:
    """Write data/published/STUDY/: a Parquet file an experiment and run.json; the files' paths.

    InputError when this machine has no complete run of that profile.
    """
    from labbook.study import published
    from labbook.study.study import Study

    study, = notebooks.selected([study])
    given = _of_last_run(study, profile)
    measured = Study(study, given["environment"]) if given.get("environment") else study
    files = published.export(measured, profile)
    about = paths.published_dir() / study / "run.json"
    pages.write_atomically(about, json.dumps(
        {"profile": profile, "parameters": given}, indent=1) + "\n")
    return [*files, about]


def _of_last_run(study, profile) -> dict:
    """All parameters of the run that is published, so that a quick profile that changes later does
    not change what the published page shows: the page's own if it is of that profile."""
    note = pages.note(study)
    if note.get("state") == pages.OK and note["profile"] == profile and not note["published"]:
        given = note["parameters"]
    else:
        given = parameters.chosen(study, profile)
    quick = {name: value for name, value in parameters.declared(study).items()
             if name != "environment"}
    return quick | given
