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
    """Of each experiment the published rows of a Study's set, and behind them those of a run that are not there.

    tables: {experiment: {"parameters": names, "rows": rows of the run on this machine}}, as it returns them. An
    experiment that the run measured with other parameters stays as it is, and so do settings that are not published: their
    repeats would not be whole. tell: is given a line for each. InputError, before anything is written, where the set is of
    other code.
    """
    if machine not in published.sets(study.name):
        return tables
    if published.changed(study, machine):
        raise InputError("what is published was measured by other code than today's", key="--add",
                         file=published.folder(study.name, machine), allowed=(
                             "publish without --add, or with --carry-over first, if the change does not change what is measured"))
    there = published.read_run(study.name, machine)["experiments"]
    return {name: _joined(study, machine, name, table, tell) if table["rows"] and there.get(name, {}).get("points")
            else table for name, table in tables.items()}


def _joined(study, machine, name, table, tell) -> dict:
    names = published.parameters(study.name, machine, name)
    earlier = [row | {column: json.loads(row[column]) for column in published.JSON_COLUMNS}
               for row in published.rows(study.name, machine, name).to_dict("records")]
    known = {began(row) for row in earlier}
    new = [row for row in table["rows"] if began(row) not in known]
    if odd := sorted(set(names) ^ set(table["parameters"])):
        tell(f"{name}: kept as it is published, since this run has other parameters ({', '.join(odd)})")
        return {"parameters": names, "rows": earlier}
    there = {published.setting(row, names) for row in earlier}
    if odd := [row for row in new if published.setting(row, names) not in there]:
        tell(f"{name}: points at settings that are not published stay out ({_in_words(odd, earlier, names)})")
        new = [row for row in new if published.setting(row, names) in there]
    last = max(row["repeat"] for row in earlier)
    numbers = {repeat: last + number for number, repeat in enumerate(sorted({row["repeat"] for row in new}), 1)}
    if new:
        tell(f"{name}: repeats 1 to {last} as published, {last + 1} to {max(numbers.values())} added")
    return {"parameters": names, "rows": earlier + [
        row | {"repeat": numbers[row["repeat"]], "point": digest([row["point"], numbers[row["repeat"]]])} for row in new]}


def _in_words(odd, earlier, names) -> str:
    """What settings have that no earlier row has."""
    values = {name: {repr(row[name]) for row in earlier} for name in names}
    named = sorted({f"{name} {row[name]}" for row in odd for name in names if repr(row[name]) not in values[name]})
    return ", ".join(named) or "combined otherwise"


def began(row) -> tuple:
    """Of a published row or a record, what tells a measurement from all others: its machine, and when it began there."""
    return row["provenance"]["machine"].get("id"), row["provenance"]["during"]["started"]
