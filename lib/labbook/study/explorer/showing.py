"""One recorded point through time: `experiment.show(clients=90, repeat=1)`, and `labbook show`."""

import re

from labbook.errors import InputError
from labbook.study.explorer import choosing
from labbook.study.watcher import NAME

PREFIX = re.compile(r"[0-9a-f]{4,20}")      # of a point's id
draw = None     # (metadata, series, rows) -> what is shown; set by labbook.figures, which this room does not import


def show(records, meta: dict):
    """What is shown of a point; InputError where it has no series of hosts."""
    if NAME not in meta.get("series", {}):
        raise InputError("nothing was sampled while this point was measured", key=meta["label"],
                         allowed="a point that was measured since records have series of hosts: "
                         "`labbook run ... --remeasure`")
    return draw(meta, records.series(meta["key"], NAME), records.rows(meta["key"]))


def of_experiment(experiment, point, parameters: dict):
    """Of a Point, or of the one recorded point with these parameters."""
    records = experiment.study.records(experiment.name)
    if point is None:
        return show(records, choosing.of_experiment(experiment, parameters))
    if parameters or records.meta(point.key) is None:
        raise InputError("a point, and parameters beside it" if parameters else "this point is not recorded here",
                         key=f"experiment {experiment.name}", allowed="a recorded point, or its parameters")
    return show(records, records.meta(point.key))


def by_prefix(folders: dict, prefix: str) -> tuple:
    """(records, metadata) of the one point whose id begins so. folders: {experiment: Records}. InputError when
    none or several do."""
    found = [(records, key) for records in folders.values() for key in records.keys() if key.startswith(prefix)]
    if len(found) != 1:
        raise InputError(f"{len(found)} recorded points begin so" if found else "no recorded point begins so",
                         key=prefix, allowed=sorted(key for _, key in found)[:10]
                         or "an id of the column `point`, or an experiment and its parameters: "
                         f"{', '.join(folders)}")
    records, key = found[0]
    if (meta := records.meta(key)) is None:
        raise InputError("; ".join(records.set_aside), key=prefix, allowed="a point with a whole record")
    return records, meta
