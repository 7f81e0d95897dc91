"""`labbook publish STUDY`: write the summaries of this machine's last long run, to be committed."""

import json

from labbook import paths
from labbook.errors import InputError
from labbook.pipeline import notebooks, pages, parameters


def publish(study: str, profile: str = "full") -> list:
    """Write data/published/STUDY/: a Parquet file an experiment, fingerprint.json and run.json.

    Returns the files' paths. InputError when this machine has no complete run of that profile.
    """
    from labbook.study.study import Study

    study, = notebooks.selected([study])
    values = _of_last_run(study, profile)
    environment = [values["environment"]] if values.get("environment") else []
    files = export(Study(study, *environment), profile)
    about = paths.published_dir() / study / "run.json"
    pages.write_atomically(about, json.dumps(
        {"profile": profile, "parameters": values}, indent=1) + "\n")
    return [*files, about]


def carry_over(study: str, why: str) -> list:
    """Let the published summaries of a study stand for today's code and versions without measuring
    again, and write down why. For changes that do not change what is measured.

    Points that were published as stale stay stale. InputError when nothing is published.
    """
    from labbook.study import published
    from labbook.study.study import Study

    study, = notebooks.selected([study])
    if not any((paths.published_dir() / study).glob("*.parquet")):
        raise InputError("nothing is published of this study", file=paths.published_dir() / study)
    return [published.stamp(Study(study), why)]


def export(study, profile: str = "full") -> list:
    """Write the records that the last complete run of a profile stood on, of all experiments of a
    Study. Returns the files; InputError when there is no such run or a record is lost."""
    from labbook.study import published
    from labbook.study.record import Records, grid_keys

    folder = paths.records_dir() / study.place / study.name
    grids = sorted(folder.glob(f"*/{profile}.grid"))
    if not grids:
        raise InputError(f"no complete run of the profile {profile!r} on this machine",
                         key=study.name)
    files = [_export(study, Records(grid.parent), grid_keys(grid), profile)
             for grid in grids]
    return [*files, published.stamp(study, "published from the records of a run")]


def _export(study, records, keys: list[str], profile: str):
    import pandas as pd
    import pyarrow as pa

    from labbook.study import published, sealed
    from labbook.study.record import row

    metas = {key: records.meta(key) for key in keys}
    lost = sum(meta is None for meta in metas.values())
    if lost:
        raise InputError(f"{lost} of its {len(keys)} points are not recorded any more",
                         key=f"{study.name}: {records.folder.name}")
    rows = [row(meta, study.run.is_stale(meta)) | {
        "facts": _text(meta["facts"]), "provenance": _text(published.provenance(meta, profile))}
        for meta in metas.values()]
    # an experiment that the profile leaves out is a file without rows
    frame = pd.DataFrame(rows, columns=None if rows else [*published.JSON_COLUMNS, "stale"])
    table = pa.Table.from_pandas(frame, preserve_index=False)
    target = published.path(study.name, records.folder.name)
    sealed.write(target, table)
    return target


def _text(data) -> str:
    return json.dumps(data, ensure_ascii=False, sort_keys=True)


def _of_last_run(study, profile) -> dict:
    """All parameters of the published run: those of the page if it has that profile, else the
    profile's. Complete, so that a later change of the quick profile does not change the page."""
    note = pages.note(study)
    if note.get("state") == pages.OK and note["profile"] == profile and not note["published"]:
        chosen = note["parameters"]
    else:
        chosen = parameters.chosen(study, profile)
    quick = {name: value for name, value in parameters.declared(study).items()
             if name != "environment"}
    return quick | chosen
