"""Published summaries: a small Parquet file an experiment, so that a page can be read and rebuilt
without a lab. Each row is a point's summary and, as JSON, where it came from."""

import json

from labbook import paths
from labbook.atomic_files import write_whole
from labbook.errors import InputError
from labbook.study.record import Records

OWN = ["facts", "provenance"]    # columns that a summary does not show
KEPT = ("machine", "code", "during", "links", "lab", "failed_first")


def path(study: str, experiment: str):
    return paths.published_dir() / study / f"{experiment}.parquet"


def export(study, profile: str = "full") -> list:
    """Write what the last complete run of a profile stood on, of all experiments of a Study (or
    of the study so named, on this machine). Returns the files; InputError when there is none."""
    if isinstance(study, str):
        from labbook.study.study import Study

        study = Study(study)
    folder = paths.records_dir() / study.place / study.name
    grids = sorted(folder.glob(f"*/{profile}.grid"))
    if not grids:
        raise InputError(f"no complete run of the profile {profile!r} on this machine",
                         key=study.name)
    return [_export(study, Records(grid.parent), grid.read_text().split(), profile)
            for grid in grids]


def _export(study, records: Records, keys: list[str], profile: str):
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    from labbook.study.results import row

    metas = {key: records.meta(key) for key in keys}
    lost = sum(meta is None for meta in metas.values())
    if lost:
        raise InputError(f"{lost} of its {len(keys)} points are not recorded any more",
                         key=f"{study.name}: {records.folder.name}")
    rows = [row(meta, study.run.is_stale(meta)) | {
        "facts": _text(meta["facts"]), "provenance": _text(kept(meta, profile))}
        for meta in metas.values()]
    frame = pd.DataFrame(rows, columns=None if rows else [*OWN, "stale"])  # left out
    table = pa.Table.from_pandas(frame, preserve_index=False)
    target = path(study.name, records.folder.name)
    write_whole(target, lambda file: pq.write_table(table, file, compression="zstd"))
    return target


def kept(meta: dict, profile: str) -> dict:
    """What goes with a point of its provenance, and the profile that it is read for: an earlier
    run of another profile may have measured it."""
    found = {k: meta["provenance"][k] for k in KEPT if k in meta["provenance"]}
    return found | {"profile": profile, "environment": meta["environment"]}


def load(study: str, experiment: str):
    """DataFrame of all published points of an experiment, in the order of the plan."""
    import pandas as pd

    file = path(study, experiment)
    if not file.exists():
        raise InputError("nothing is published of this experiment", file=file)
    return pd.read_parquet(file)


def _text(data) -> str:
    return json.dumps(data, ensure_ascii=False, sort_keys=True)
