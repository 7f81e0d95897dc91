"""Add the repeats of a run to those of the same experiment that are published already, of the same code and design.

Repeats are independent, each with a start of its own, so those of several days make one longer series. They are
numbered on from the published ones, in the order in which they were measured, since claims are judged after fixed
numbers of repeats.
"""

import json

from labbook.errors import InputError
from labbook.study.point import digest
from labbook.study.publication import published


def joined(study, machine: str, tables: dict, tell=lambda line: None) -> dict:
    """{experiment: rows} of the published rows of a Study's set, and behind them those of a run that are not there.

    tables: {experiment: {"parameters": names, "rows": rows of the run on this machine}}. tell: is given a line for
    each experiment that gets repeats. InputError, before anything is written, where the set is of other code, or has
    other parameters than the run.
    """
    if machine not in published.sets(study.name):
        return {name: table["rows"] for name, table in tables.items()}
    if published.changed(study, machine):
        raise InputError("what is published was measured by other code than today's", key="--add",
                         file=published.folder(study.name, machine), allowed=(
                             "publish without --add, or with --carry-over first, if the change does not change what is measured"))
    there = published.read_run(study.name, machine)["experiments"]
    return {name: _joined(study, machine, name, table, tell) if there.get(name, {}).get("points") else table["rows"]
            for name, table in tables.items()}


def _joined(study, machine, name, table, tell) -> list[dict]:
    if not table["rows"]:
        return []
    names = published.parameters(study.name, machine, name)
    if set(names) != set(table["parameters"]):
        raise InputError(f"{name} is published with other parameters", key="--add",
                         file=published.file(study.name, machine, name), allowed=sorted(names))
    earlier = [row | {column: json.loads(row[column]) for column in published.JSON_COLUMNS}
               for row in published.rows(study.name, machine, name).to_dict("records")]
    known = {_began(row) for row in earlier}
    new = [row for row in table["rows"] if _began(row) not in known]
    last = max(row["repeat"] for row in earlier)
    numbers = {repeat: last + number for number, repeat in enumerate(sorted({row["repeat"] for row in new}), 1)}
    if new:
        tell(f"{name}: repeats 1 to {last} as published, {last + 1} to {max(numbers.values())} added")
    return earlier + [row | {"repeat": numbers[row["repeat"]], "point": digest([row["point"], numbers[row["repeat"]]])}
                      for row in new]


def _began(row) -> tuple:
    """What tells a measurement from all others: its machine, and when it began there."""
    return row["provenance"]["machine"].get("id"), row["provenance"]["during"]["started"]
