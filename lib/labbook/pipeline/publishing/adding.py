"""Add the repeats of a run to those of the same experiment that are published already, of the same code, versions and
design.

Repeats are independent, each with a start of its own, so those of several days make one longer series. They are
numbered on from the published ones, in the order of their own numbers, since claims are judged after fixed
numbers of repeats. A repeat of which a part is published keeps its number. Settings that are not published stay out,
unless they differ from a published one in parameters that are named alone. Their repeats are behind those of the
others, with which they share no start: claims about both do not count them.
"""

import json

from labbook.errors import InputError
from labbook.pipeline.publishing import keeping
from labbook.study.point import digest
from labbook.study.publication import published
from labbook.study.records.fingerprint import Fingerprint


def joined(study, machine: str, tables: dict, report=lambda line: None, further=()) -> dict:
    """Of each experiment the published rows of a Study's set, and behind them those of a run that are not there.

    tables: {experiment: {"parameters": names, "rows": rows of the run on this machine, "changed": {point: what has
    changed since it was measured}}}; it returns parameters and rows. An experiment that the run measured with other
    parameters stays as it is. Points that were measured before a change stay out. further: parameters of which values
    that are not published are added. report: is given a line for each. InputError, before anything is written,
    where the set is of other code, or of other versions than what would be added, or has points of earlier ones.
    """
    if machine not in published.sets(study.name):
        return tables
    if published.changed(study, machine):
        raise InputError("what is published was measured by other code than today's", key="--add",
                         file=published.folder(study.name, machine), allowed=(
                             "publish without --add, or with --carry-over first, "
                             "if the change does not change what is measured"))
    there = published.read_run(study.name, machine)["experiments"]
    found, differing = {}, {}
    outdated = keeping.outdated(study, machine)
    for name, table in tables.items():
        if not table["rows"] or not there.get(name, {}).get("points"):
            found[name] = table
            continue
        found[name], added = _joined(study, machine, name, table, report, further)
        if other := _other_versions(study, machine, added):
            differing[name] = other
        if outdated and not added:      # the set's stamp will name today's versions
            found[name]["rows"] = [row | {"stale": True} for row in found[name]["rows"]]
    if differing:
        raise _of_other_versions(study, machine, differing)
    return found


def _joined(study, machine, name, table, report, further) -> tuple[dict, list]:
    """An experiment's table with the rows of the run behind the published ones, and the former alone."""
    names = published.parameters(study.name, machine, name)
    earlier = [row | {column: json.loads(row[column]) for column in published.JSON_COLUMNS}
               for row in published.rows(study.name, machine, name).to_dict("records")]
    known = {began(row) for row in earlier}
    new = _of_today(name, [row for row in table["rows"] if began(row) not in known], table["changed"], report)
    if odd := sorted(set(names) ^ set(table["parameters"])):
        report(f"{name}: kept as it is published, since this run has other parameters ({', '.join(odd)})")
        return {"parameters": names, "rows": earlier}, []
    new = _of_settings(name, new, earlier, names, further, report)
    if new and any(row["stale"] for row in earlier):
        raise InputError("what is published was measured before a change of code or versions", key=f"--add: {name}",
                         file=published.file(study.name, machine, name),
                         allowed=f"--replace {name} in the place of --add")
    numbers, last = _numbers(new, table["rows"], earlier, names), max(row["repeat"] for row in earlier)
    if behind := [number for number in numbers.values() if number > last]:
        report(f"{name}: repeats 1 to {last} as published, {last + 1} to {max(behind)} added")
    if within := sorted({number for number in numbers.values() if number <= last}):
        report(f"{name}: points added to the published repeats {', '.join(map(str, within))}")
    return {"parameters": names, "rows": earlier + [
        row | {"repeat": numbers[row["point"]], "point": digest([row["point"], numbers[row["point"]]])}
        for row in new]}, new


def _of_settings(name, new: list, earlier: list, names, further, report) -> list:
    """The new rows at published settings, and at those that differ from one in `further` parameters alone."""
    others = [parameter for parameter in names if parameter not in further]
    there, near = ({published.setting(row, of) for row in earlier} for of in (names, others))
    known, added, left = [], [], []
    for row in new:
        (known if published.setting(row, names) in there else
         added if published.setting(row, others) in near else left).append(row)
    for rows, what in ((added, "settings that are not published are added"),
                       (left, "points at settings that are not published stay out")):
        if rows:
            report(f"{name}: {what} ({_in_words(rows, earlier, names)})")
    return known + added


def _numbers(new: list, rows: list, earlier: list, names) -> dict[str, int]:
    """{point: number of its repeat} of the `new` ones of a run's rows. It is that of the run's same repeat where this
    is published in part and the point's setting lacks it there; the others are numbered on."""
    there, same = {began(row): row["repeat"] for row in earlier}, {}
    for repeat, number in sorted({(row["repeat"], there[began(row)]) for row in rows if began(row) in there}):
        if repeat not in same and number not in same.values():
            same[repeat] = number
    taken = {(published.setting(row, names), row["repeat"]) for row in earlier}
    known = {setting for setting, _ in taken}
    behind = {row["point"]: row["repeat"] for row in new if row["repeat"] not in same
              or published.setting(row, names) not in known
              or (published.setting(row, names), same[row["repeat"]]) in taken}
    last = max(row["repeat"] for row in earlier)
    on = {repeat: last + number for number, repeat in enumerate(sorted(set(behind.values())), 1)}
    return {row["point"]: on[behind[row["point"]]] if row["point"] in behind else same[row["repeat"]] for row in new}


def _of_today(name, rows: list, changed: dict, report) -> list:
    """The rows of points that were measured by today's code and versions."""
    stale = [row for row in rows if row["stale"]]
    if stale:
        count = len({row["repeat"] for row in stale})
        what = sorted({each for row in stale for each in changed[row["point"]]})
        report(f"{name}: {count} repeat{'s' * (count > 1)} measured before a change stay{'s' * (count == 1)} out "
               f"({', '.join(what)})")
    return [row for row in rows if not row["stale"]]


def _other_versions(study, machine, rows) -> list[str]:
    """In words, the packages that rows were measured with in other versions than those of a Study's set."""
    then, alternatives = published.versions(study.name, machine), study.fingerprint.alternatives
    measured_with = {json.dumps(row["provenance"].get("versions", {}), sort_keys=True) for row in rows}
    return sorted({each for text in measured_with
                   for each in Fingerprint("", json.loads(text), alternatives).differs("", then)})


def _of_other_versions(study, machine, differing: dict[str, list[str]]) -> InputError:
    what = sorted({each for packages in differing.values() for each in packages})
    replace = " ".join(f"--replace {name}" for name in differing)
    return InputError(f"what is published is of other versions than this run: {', '.join(what)}",
                      key=f"--add: {', '.join(differing)}", file=published.folder(study.name, machine),
                      allowed=f"{replace} in the place of --add; or --carry-over first, if the versions do not change "
                              "what is measured")


def _in_words(odd, earlier, names) -> str:
    """What settings have that no earlier row has."""
    values = {name: {repr(row[name]) for row in earlier} for name in names}
    named = sorted({f"{name} {row[name]}" for row in odd for name in names if repr(row[name]) not in values[name]})
    return ", ".join(named) or "combined otherwise"


def began(row) -> tuple:
    """Of a published row or a record, what distinguishes a measurement from others: its machine, and when it began."""
    return row["provenance"]["machine"].get("id"), row["provenance"]["during"]["started"]
