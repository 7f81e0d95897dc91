"""`labbook publish STUDY`: write the summaries and verdicts of this machine's last run of a profile, to be
committed.

A set a kind of machine, data/published/STUDY/MACHINE/, beside those of other machines.
"""

import json
from datetime import UTC, datetime

from labbook import paths
from labbook.checks import did_you_mean
from labbook.errors import InputError
from labbook.pipeline.executing import pages
from labbook.pipeline.publishing import adding, keeping
from labbook.pipeline.sources import notebooks, parameters


def publish(study: str, profile: str = "full", replace=(), report=lambda line: None, add: bool = False,
            further=()) -> list:
    """Write the set of this machine: a Parquet file an experiment, fingerprint.json, run.json and
    claims.json, in place of what it had. An experiment of which the run has fewer repeats than are
    published keeps its file, unless it is one to `replace`; `report` is given a line for each.

    add: the run's repeats go behind those that are published, with `further` parameters also of settings that are not
    (see labbook.pipeline.publishing.adding).

    Records that a machine of another kind left here go into that machine's set. Returns the paths of
    the files, none where nothing changes. InputError when this machine has no complete run of that
    profile, and with `add` when what is published is of other code or versions.
    """
    from labbook.study.study import Study

    study, = notebooks.selected([study])
    values, environment, fleet = _of_last_run(study, profile)
    of = Study(study, *([environment] if environment else []))
    of.run.fleet = fleet
    return export(of, profile, values, replace, report, add, further)


def carry_over(study: str, why: str, machines=(), without=()) -> list:
    """Let the published summaries of a study stand for today's code and versions without measuring
    again, and write down why, behind the earlier reasons. For changes that do not change what is measured.

    `machines`: the sets for which that holds; all by default. A set of still earlier code is none of them, so sets of
    different code must be named. Points that were published as stale stay stale, and those of the experiments `without`
    which the reason holds become it. InputError when nothing is published, or no such set or experiment.
    """
    from labbook.study.publication import published
    from labbook.study.study import Study

    study, = notebooks.selected([study])
    of, sets = Study(study), _sets(study)
    for machine in machines:
        if machine not in sets:
            raise InputError(f"no published set {machine!r} of {study}{did_you_mean(machine, sets)}", key="--set",
                             allowed=sets)
    if not machines and len({published.code(study, machine) for machine in sets}) > 1:
        raise InputError(f"the published sets of {study} are of different code, and the reason may not hold for all",
                         key="--set", allowed=sets)
    known = {name for machine in sets for name in published.described(study, machine)}
    for name in without:
        if name not in known:
            raise InputError(f"no published experiment {name!r} of {study}{did_you_mean(name, known)}", key="--without",
                             allowed=sorted(known))
    change = {"on": datetime.now(UTC).isoformat(timespec="milliseconds"), "why": why}
    changes = {machine: [*published.changes(study, machine), change] for machine in machines or sets}
    files = [file for machine in changes for file in keeping.make_stale(
        study, machine, [name for name, about in published.described(study, machine).items()
                         if name in without and about["points"]])]
    return files + [published.stamp(of, machine, each) for machine, each in changes.items()] + judge(study)


def judge(study: str) -> list:
    """Judge all published sets of a study by today's rules, and write their claims.json."""
    from labbook.study.publication import published_verdicts

    study, = notebooks.selected([study])
    return [published_verdicts.write(study, machine) for machine in _sets(study)]


def _sets(study: str) -> list[str]:
    from labbook.study.publication import published

    if not published.sets(study):
        raise InputError("nothing is published of this study", file=paths.published_dir() / study)
    return published.sets(study)


def export(study, profile: str = "full", values: dict | None = None, replace=(), report=lambda line: None,
           add: bool = False, further=()) -> list:
    """Write the records that the last complete run of a profile stood on, of all experiments of a
    Study. values: the notebook's parameters. Returns the files; InputError when there is no such run,
    a record is lost, or the run has no experiment to `replace`. An experiment that the run's notebook does not
    have any more is taken out of the set."""
    from labbook.study.publication import completed

    tables, known = _tables(study, profile), completed.experiments(study.place, study.name, profile)
    for name in replace:
        if name not in tables:
            raise InputError(f"no experiment {name!r} in this run{did_you_mean(name, tables)}", key="--replace",
                             allowed=list(tables))
    kinds, main, of_kinds = _by_machine(tables)
    if add:
        of_kinds = {machine: adding.joined(study, machine, of_kind, report, further)
                    for machine, of_kind in of_kinds.items()}
    files = []
    for machine, of_kind in of_kinds.items():
        rows = {name: table["rows"] for name, table in of_kind.items()}
        kept = keeping.kept_experiments(study, machine, rows, replace, report, known)
        # an experiment that the profile leaves out is a file without rows
        chosen = {name: table for name, table in of_kind.items() if name not in kept and (
            table["rows"] or not tables[name]["rows"] and machine == main)}
        if not chosen:
            continue
        earlier = {*kept, *(_grown(study.name, machine, known) if add else ())}
        run = {"profile": profile, "machine": kinds[machine],
               "parameters": _with_kept(study.name, machine, values or {}, earlier, chosen, report),
               "experiments": kept | {
                   name: {"points": len({row["point"] for row in table["rows"]}), "parameters": table["parameters"]}
                   for name, table in chosen.items()}}
        for name in keeping.gone(study, machine, known):
            report(f"{name}: taken out of what is published, since the run's notebook has no such experiment")
        files += _write(study, machine, run, chosen, kept)
    return files


def _by_machine(tables: dict) -> tuple[dict, str, dict]:
    """{machine: its kind}, the machine of the experiments without rows, and {machine: the tables with its rows alone}.

    The machine of those without rows is this one, unless only others have rows: then it is the first of these.
    """
    from labbook.study.publication import machine_kind
    from labbook.study.records import provenance

    def kind(row):
        return machine_kind.of_point(row["provenance"])

    here = machine_kind.kind(provenance.machine())
    kinds = {machine_kind.slug(found): found for table in tables.values() for found in map(kind, table["rows"])}
    kinds = kinds or {machine_kind.slug(here): here}
    main = machine_kind.slug(here) if machine_kind.slug(here) in kinds else next(iter(kinds))
    return kinds, main, {machine: {
        name: table | {"rows": [row for row in table["rows"] if machine_kind.slug(kind(row)) == machine]}
        for name, table in tables.items()} for machine in kinds}


def _grown(study: str, machine: str, known) -> list[str]:
    """The experiments of a set to whose points a run's are added, of the `known` ones (None: all): their parameters
    are those of all their points."""
    from labbook.study.publication import published

    there = published.read_run(study, machine)["experiments"] if machine in published.sets(study) else {}
    return [name for name, about in there.items() if about["points"] and (known is None or name in known)]


def _with_kept(study: str, machine: str, values: dict, earlier, chosen, report) -> dict:
    """The notebook's parameters, where experiments of `earlier` sets stay those that they were published with. So are
    those that experiments share, since the page shows them beside what was measured with them; `report` is given a
    line for each that the run had otherwise. `chosen`: the experiments that are written."""
    from labbook.study.parameters.adding import groups_of
    from labbook.study.publication import published

    if not earlier:
        return values
    before = published.read_run(study, machine).get("parameters", {})
    own, theirs = (groups_of(study, names) for names in (set(chosen) - earlier, earlier))
    shared = {name: value for name, value in before.items() if name in values and name not in own | theirs}
    for name, value in shared.items():
        if value != values[name]:
            report(f"{name}: stays as published, {value}, since published points were measured so; "
                   f"the run had {values[name]}")
    return values | shared | {name: value for name, value in before.items() if name in theirs}


def _write(study, machine: str, run: dict, tables: dict, kept) -> list:
    """Write one set in place of the one that is there, of which `kept` experiments stay."""
    from labbook.study.publication import published, published_verdicts

    folder = published.folder(study.name, machine)
    files = keeping.mark_stale(study, machine, list(kept))
    files += [_table(published.file(study.name, machine, name), table["rows"]) for name, table in tables.items()]
    about = folder / "run.json"
    pages.write_atomically(about, json.dumps(run, indent=1, ensure_ascii=False) + "\n")
    for old in folder.glob("*.parquet"):    # which run.json no longer names
        if old.stem not in run["experiments"]:
            old.unlink()
    stamp = published.stamp(study, machine, _changes(study.name, machine, run["experiments"]))
    return [*files, stamp, about, published_verdicts.write(study.name, machine)]


def _changes(study: str, machine: str, experiments) -> list[dict]:
    """The changes of the code over which points of a set were carried that are there now."""
    from labbook.study.publication import published

    frames = [published.rows(study, machine, name) for name in experiments]
    measured = [json.loads(text) for frame in frames if len(frame)
                for text in frame.loc[~frame["stale"].astype(bool), "provenance"]]
    return published.changes_since(study, machine, measured)


def _tables(study, profile) -> dict:
    """{experiment: {"parameters": names, "rows": a dict a point, its provenance as data, "changed": {point: what has
    changed since it was measured}}}."""
    from labbook.study.publication import completed
    from labbook.study.records.record import Records, grid_keys

    grids = completed.grids(study.place, study.name, profile)
    if not grids:
        raise InputError(f"no complete run of the profile {profile!r} on this machine", key=study.name,
                         allowed=f"after `labbook run {study.name} --profile {profile}`, or the other --profile")
    study.run.setups = completed.setups(study.place, study.name, profile)
    return {grid.parent.name: _rows(study, Records(grid.parent), grid_keys(grid), profile)
            for grid in grids}


def _rows(study, records, keys: list[str], profile: str) -> dict:
    from labbook.study import fleet
    from labbook.study.publication import published
    from labbook.study.records.record import parameter_names, summary_rows

    metas = {key: records.meta(key) for key in keys}
    lost = sum(meta is None for meta in metas.values())
    if lost:
        raise InputError(f"{lost} of its {len(keys)} points are not recorded any more",
                         key=f"{study.name}: {records.folder.name}",
                         allowed="after the same run again, which measures them")
    if study.run.fleet:
        metas = fleet.of_most(study, records.folder.name, metas)
    names = list(dict.fromkeys(name for meta in metas.values() for name in parameter_names(meta)))
    changed = {key: study.run.changed(meta) for key, meta in metas.items()}
    return {"parameters": names, "changed": changed, "rows": [
        row | {"facts": meta["facts"], "provenance": published.provenance(meta, profile)}
        for key, meta in metas.items() for row in summary_rows(meta, bool(changed[key]))]}


def _table(target, rows: list[dict]):
    import pandas as pd
    import pyarrow as pa

    from labbook.study.publication import published
    from labbook.study.records import sealed

    texts = [row | {name: _text(row[name]) for name in published.JSON_COLUMNS} for row in rows]
    frame = pd.DataFrame(texts, columns=None if texts else [*published.JSON_COLUMNS, "stale"])
    sealed.write(target, pa.Table.from_pandas(frame, preserve_index=False))
    return target


def _text(data) -> str:
    return json.dumps(data, ensure_ascii=False, sort_keys=True)


def _of_last_run(study, profile) -> tuple[dict, str | None, str | None]:
    """All parameters of the published run, its environment (None: the default) and its fleet. Complete, so that a later
    change of the quick profile does not change the page. Without the environment, a file that other checkouts lack.

    They are as the run wrote them down. Of a run that did not, they are those of the page if that has the profile,
    else the profile's.
    """
    from labbook.study.publication import completed

    declared, run = parameters.declared(study), completed.last(study, profile) or {}
    chosen = run.get("parameters")
    if chosen is None:
        chosen = _of_page(study, profile)
    values = {name: chosen.get(name, value) for name, value in declared.items() if name != "environment"}
    if run:
        return values, run["environment"], run["fleet"]
    return values, chosen.get("environment"), pages.note(study).get("fleet")


def _of_page(study, profile) -> dict:
    """What the last page set, if it has this profile and was measured here, else what the profile sets."""
    note = pages.note(study)
    if note.get("state") == pages.OK and note["profile"] == profile and not note["published"]:
        return note["parameters"]
    return parameters.chosen(study, profile)
