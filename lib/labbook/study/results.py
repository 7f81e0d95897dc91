"""Results of experiments, from the records of this machine or from published summaries."""

from labbook.study.publication import machine_kind, published
from labbook.study.records.conditions import combined
from labbook.study.records.record import summary_rows


def summary(experiment):
    """DataFrame with a row for each recorded point, or for each of its arms, in the order of the plan.

    Columns: point, the parameters, repeat, block, order, stale and the metrics. `stale` is true for
    points that were measured with earlier code or versions. The page of an ask that measured no such
    point has the published rows instead, with the column `run` "published". Published rows have a column
    `machine`: what it is, in words.
    """
    found, run = measured(experiment), experiment.study.run
    if len(found) or not (run.ask and run.ask.page) or not published.has(
            experiment.study.name, experiment.name):
        return found
    rows = _published(experiment)
    return rows.assign(run="published") if len(rows) else found


def measured(experiment):
    """DataFrame of the rows that this machine, or with LABBOOK_PUBLISHED the published run, measured."""
    import pandas as pd

    if experiment.study.run.published:
        rows = [] if _came_later(experiment) else _published(experiment)
    else:
        rows = [row for meta in metas(experiment)
                for row in summary_rows(meta, experiment.study.run.is_stale(meta))]
    columns = ["point", *experiment.parameters, "repeat", "block", "order", "stale"]
    return pd.DataFrame(rows) if len(rows) else pd.DataFrame(columns=columns)


def _published(experiment):
    """The published rows, each with its machine in words. They have no value of a parameter that came later."""
    rows = published.joined([(machine, frame.assign(machine=_words(experiment, machine)))
                             for machine, frame in _parts(experiment)]).drop(columns=published.JSON_COLUMNS)
    return rows.reindex(columns=dict.fromkeys([*rows, *experiment.parameters]))


def _parts(experiment) -> list[tuple]:
    """(machine, DataFrame) of each published set; a page that shows nothing else reads them once."""
    study = experiment.study
    if not study.run.published:
        return published.parts(study, experiment.name)
    if experiment.name not in study.published_parts:
        study.published_parts[experiment.name] = published.parts(study, experiment.name)
    return study.published_parts[experiment.name]


def shown_first(study, experiment=None) -> str:
    """The published set whose points of an experiment a page shows first; without points, the study's first."""
    if experiment is None or not published.has(study.name, experiment.name):
        return published.sets(study.name)[0]
    return _parts(experiment)[0][0]


def _words(experiment, machine: str) -> str:
    return machine_kind.words(published.read_run(experiment.study.name, machine)["machine"])


def _came_later(experiment) -> bool:
    """Whether the published run had no such experiment: it has neither points nor a file."""
    return not len(experiment) and not published.has(experiment.study.name, experiment.name)


def metas(experiment) -> list[dict]:
    """Metadata of the experiment's recorded points, in the order of the plan; of an ask that measures stale ones again,
    without those that it did not need."""
    run, records = experiment.study.run, experiment.study.records(experiment.name)
    each = (records.meta(point.key) for point in experiment.points())
    return [meta for meta in each if meta is not None and (not run.ask or run.is_valid(meta))]


def changes(study, experiments) -> list[dict]:
    """The changes of the code over which the published points of the experiments were carried, oldest first, each
    once; see published.changes. None of points that this machine measured."""
    if not study.run.published:
        return []
    frames = [part for one in experiments if not _came_later(one) for part in _parts(one)]
    found = [change for machine, frame in frames for change in published.changes_since(
        study.name, machine, published.measured(frame.loc[~frame["stale"].astype(bool)]))]
    return sorted({(one["on"], one["why"]): one for one in found}.values(), key=lambda one: one["on"])


def conditions(study, experiments) -> dict:
    """The conditions under which the points of the experiments were measured; empty without points. Keys as
    labbook.study.records.conditions.combined has them."""
    measured = []
    for experiment in experiments:
        if study.run.published:
            if _came_later(experiment):
                continue
            measured += [one for _, frame in _parts(experiment) for one in published.measured(frame)]
        else:
            measured += [published.provenance(meta, study.run.profile) | {"stale": study.run.changed(meta)}
                         for meta in metas(experiment)]
    return combined(measured)
