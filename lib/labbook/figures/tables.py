"""Tables of a page: Table, the paper's numbers beside ours, medians, outcomes, conditions."""

import html
import math
from dataclasses import dataclass
from pathlib import Path
from statistics import median, stdev

import pandas as pd

from labbook.claims import claims
from labbook.claims.decisions import DECIDED, OPEN
from labbook.claims.paper_file import load
from labbook.claims.rules import numbers
from labbook.errors import InputError
from labbook.figures.numbers import between, in_order, name, number, plural, times
from labbook.figures.repeats import made, of_those_made, over_repeats, says_run, with_metric
from labbook.lab.quantities import size_text

LONG = 10       # rows: more than a screen, with their intervals
LACKING = "–"


@dataclass(frozen=True)
class Table:
    """Rows of text, shown as an HTML table that scrolls sideways in its own frame; a long one is folded."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""
    label: str = "table"
    numbers: bool = True    # columns after the first hold numbers

    def _repr_html_(self) -> str:
        kind = "labbook-table numbers" if self.numbers else "labbook-table"
        head = "".join(f'<th scope="col">{html.escape(c)}</th>' if c else "<td></td>" for c in self.columns)
        body = "".join(_row(row, self.columns) for row in self.rows)
        caption = f"<caption>{html.escape(self.caption)}</caption>" if self.caption else ""
        table = (f'<div class="labbook-scroll" role="region" tabindex="0" '
                 f'aria-label="{html.escape(self.label, quote=True)}">'
                 f'<table class="{kind}">{caption}<thead><tr>{head}</tr></thead>'
                 f"<tbody>{body}</tbody></table></div>")
        return table if len(self.rows) < LONG else (
            f'<details class="labbook-long"><summary>Table of {len(self.rows)} rows: '
            f"{html.escape(self.label)}</summary>{table}</details>")

    def __repr__(self) -> str:
        return pd.DataFrame(self.rows, columns=self.columns).to_string(index=False)


def _row(row, columns):
    """Attach the column's name to each cell, so that a narrow page can stack the cells."""
    first, *rest = [html.escape(str(cell)) for cell in row]
    cells = "".join(f'<td data-label="{html.escape(column, quote=True)}">{cell}</td>'
                    for column, cell in zip(columns[1:], rest))
    return f'<tr><th scope="row">{first}</th>{cells}</tr>'


def not_measured(head, label: str, numbers: bool = True) -> Table:
    """The table of a part that this run leaves out."""
    return Table(head, (("Not measured in this profile.", *[LACKING] * (len(head) - 1)),), label=label, numbers=numbers)


def in_order_of(settings, by) -> list[tuple]:
    """Settings, each a value for every parameter of `by`, in the order of paper.yml's names."""
    order = [in_order([setting[i] for setting in settings], parameter) for i, parameter in enumerate(by)]
    return sorted(settings, key=lambda setting: [order[i].index(value) for i, value in enumerate(setting)])


@says_run
def paper_table(paper: pd.DataFrame, summary: pd.DataFrame, *, rows: str, columns: str,
                ours="mean_ms", unit="ms") -> Table:
    """Table of the paper's numbers (columns `rows`, `columns`, `server`, `value`, in `unit`) and our medians.

    `summary` has the points to compare, with a column `server`. Each setting of `rows` and `columns`
    becomes a cell with the median of the repeats and its interval. The last column is the ratio of
    the first value of `columns` to the second, which depends least on the machine.
    """
    cells = {(p["server"], p[rows], p[columns]): (number(p["value"]), p["value"])
             for _, p in paper.iterrows()}
    cells |= {(p["server"], p[rows], p[columns]): (_cell(p), p["median"])
              for _, p in over_repeats(summary, ["server", rows, columns], ours).iterrows()}
    first, second = sorted(paper[columns].unique())
    places = [*dict.fromkeys(paper["server"]), *dict.fromkeys(summary["server"])]
    body = []
    for value in dict.fromkeys(paper[rows]):
        for place in places:
            (one, of), (other, than) = (cells.get((place, value, c), ("not measured", None))
                                        for c in (first, second))
            body.append((name(value), place, one, other,
                         number(of / than) if of and than else LACKING))
    head = ("", "where", f"{name(first)}, {unit}", f"{name(second)}, {unit}",
            f"{name(first)} / {name(second)}")
    return Table(head, tuple(body), label="the paper's printed numbers beside ours",
                 caption="Paper: as printed. Here: median of the repeats and its interval.")


def _cell(point) -> str:
    spread = "" if point["n"] == 1 else f" ({between(point['low'], point['high'])})"
    return number(point["median"]) + spread + (" limited by the client" if point["limited"] else "")


def differences(paper_file: Path, description, **known) -> Table:
    """Table of the paper's set-up and ours, from the `setup` list of paper.yml.

    `ours` there may contain fields, so that the table matches the run: `{host[cores]}` and other
    limits of a host, `{system[version]}` and other settings, and the names of `known`. InputError
    names a field that is unknown.
    """
    known = _described(description) | known
    rows = []
    for i, entry in enumerate(load(paper_file).get("setup") or ()):
        try:
            ours = entry["ours"].format(**known)
        except (KeyError, IndexError, AttributeError, ValueError) as error:
            raise InputError(f"cannot be filled in: {error!r}", file=paper_file,
                             key=f"setup.{i}.ours", allowed=sorted(known)) from None
        rows.append((entry["what"], entry["paper"], ours, entry["matters"]))
    return Table(("What", "In the paper", "Here", "Why it may matter"), tuple(rows),
                 label="the paper's set-up beside ours", numbers=False)


def _described(description) -> dict:
    """host -> its limits (sizes as text), and system -> its settings."""
    hosts = {host.name: {k: size_text(v) if k == "memory" else v for k, v in host.limits.items()}
             for host in description.hosts}
    return hosts | {s.get("label", s["name"]): s.get("settings", {}) for s in description.systems}


_CONDITIONS = {
    "cpu": "Processor", "cores": "Cores", "memory_gib": "Memory, GiB", "kernel": "Linux",
    "system": "System", "python": "Python", "environment": "Environment", "profile": "Profile",
    "commit": "Commit of the code", "from": "First measurement", "to": "Last measurement",
    "points": "Measurements", "stale": "of these, by earlier code or versions",
    "stale_because": "changed since these", "disk_models": "Models of disks",
    "failed_first": "of all, succeeded at the second attempt",
    "cpu_pressure": "Largest share of a measurement's time in which a task waited for a processor",
    "steal": "Largest share of a measurement's time taken by other virtual machines",
}


_MACHINE = ("cpu", "cores", "memory_gib", "kernel", "system")


def conditions(found: dict) -> Table:
    """Table of Study.conditions()."""
    rows = [(label, _condition(key, found[key])) for key, label in _CONDITIONS.items() if key in found]
    rows += [(f"Change of the code on {one['on'][:10]}, after some of these measurements", one["why"])
             for one in found.get("changes", ())]
    if "hosts" not in found:
        return Table(("", "On this machine"), tuple(rows), label="conditions", numbers=False)
    driver = {_CONDITIONS[key] for key in (*_MACHINE, "cpu_pressure", "steal")}
    hosts = [(f"Host{'s' * (', ' in names)} {names}", _machine(one))
             for names, one in found["hosts"].items()]
    rest = [row for row in rows if row[0] not in driver]
    return Table(("", "On these hosts"), (*hosts, ("Driven from", _machine(found)), *rest),
                 label="conditions", numbers=False)


def _condition(key: str, value) -> str:
    if key in ("cpu_pressure", "steal"):
        return f"{value:.0%}"
    return ", ".join(value) if key in ("stale_because", "disk_models") else str(value)


def _machine(one: dict) -> str:
    cores = "1 core" if one["cores"] == 1 else f"{one['cores']} cores"
    return (f"{one['cpu']}, {cores}, {one['memory_gib']} GiB of memory, Linux {one['kernel']}, "
            f"{one['system']}")


@says_run
def paper_vs_measured(printed: pd.DataFrame, summary: pd.DataFrame, *, by: dict[str, str], arm: str, metric: str,
           unit: str, label: str) -> Table:
    """Table of printed and measured values: a row a setting, a column a value of `arm` and source.

    by: parameter -> column title, such as {"image_gb": "Image, GB"}. `printed` has the same columns;
    where its `metric` is missing, its `cell` starts with what the paper prints there. Measured
    cells: the median of the repeats and its interval.
    """
    parameters, cells = list(by), {}
    for row in printed.to_dict("records"):
        cells.setdefault(_setting(row, parameters), {})[row[arm], "paper"] = _printed(row, metric)
    for (value, *setting), cell in _medians(summary, [arm, *parameters], metric).items():
        cells.setdefault(tuple(setting), {})[value, "here"] = cell
    arms = in_order({value for of in cells.values() for value, _ in of}, arm)
    columns = [(value, where) for value in arms for where in ("paper", "here")]
    head = (*by.values(), *(f"{name(value, arm)}, {where}, {unit}" for value, where in columns))
    return Table(head, tuple(
        (*(name(value, parameter) for value, parameter in zip(setting, parameters)),
         *(cells[setting].get(column, "") for column in columns))
        for setting in in_order_of(cells, parameters)), label=label,
        caption="Paper: as printed. Here: median of the repeats and its interval. Empty: no such setting.")


def _medians(summary, parameters: list[str], metric: str) -> dict[tuple, str]:
    """{setting: the cell of its median}; a setting whose repeats all lack the metric says so."""
    known = {*parameters, metric} <= set(summary)
    of_settings = made(summary, parameters) if known else {}
    cells = {setting: f"no value in {plural(count, 'repeat')}" for setting, count in of_settings.items()}
    found = with_metric(summary, metric) if known else summary.iloc[:0]
    for point in over_repeats(found, parameters, metric).itertuples() if len(found) else ():
        setting = tuple(getattr(point, parameter) for parameter in parameters)
        cells[setting] = _median_cell(point, of_settings.get(setting))
    return cells


def _setting(row, parameters) -> tuple:
    return tuple(row[parameter] for parameter in parameters)


def _printed(row, metric) -> str:
    if not math.isnan(row[metric]):
        return number_as_printed(row[metric])
    return str(row.get("cell", LACKING)).split()[0].replace("-", LACKING)


def number_as_printed(value: float) -> str:
    return f"{value:,.10g}"


@says_run
def median_table(summary: pd.DataFrame, *, by: dict[str, str], metrics: dict[str, str],
            label: str, caption="Medians of the repeats, and their intervals.") -> Table:
    """Table of medians: a row for each setting of `by`, a column for each of `metrics`.

    Both map names to titles: {"load": "Load"}, {"join_s": "Join time, s"}. Rows are in the order of
    paper.yml's names. A metric that a setting lacks is a dash.
    """
    parameters, found = list(by), {}
    of_settings = made(summary, parameters)
    for metric in metrics:
        rows = with_metric(summary, metric) if set(parameters) <= set(summary) else summary.iloc[:0]
        for point in over_repeats(rows, parameters, metric).itertuples() if len(rows) else ():
            setting = tuple(getattr(point, parameter) for parameter in parameters)
            found.setdefault(setting, {})[metric] = _median_cell(point, of_settings.get(setting))
    head = (*by.values(), *metrics.values())
    if not found:
        return not_measured(head, label)
    body = tuple((*(name(value, parameter) for value, parameter in zip(setting, parameters)),
                  *(found[setting].get(metric, LACKING) for metric in metrics))
                 for setting in in_order_of(found, parameters))
    return Table(head, body, caption=caption, label=label)


def _median_cell(point, repeats: int | None = None) -> str:
    """repeats: how many were made, of which some may lack the metric."""
    ends = between(point.low, point.high) if point.n > 1 else ""
    spread = " ".join(filter(None, (ends, of_those_made(point.n, repeats, point.level))))
    notes = ", ".join(filter(None, (spread, "limited by the clients" * bool(point.limited))))
    return number(point.median) + (f" ({notes})" if notes else "")


ALL = "all"


@says_run
def outcome_table(summary: pd.DataFrame, *, by: dict[str, str], outcomes: dict[str, str], label: str,
            caption="Numbers of runs.") -> Table:
    """Table of outcomes: a row for each setting of `by`, the number of runs, and for each of
    `outcomes` the number of runs in which this metric is not 0. The last row sums all settings.
    A metric that some of the runs lack says of how many it is.
    """
    head = (*by.values(), "Runs", *outcomes.values())
    if not len(summary) or not set(by) <= set(summary):
        return not_measured(head, label)
    groups = {setting: rows for setting, rows in summary.groupby(list(by), sort=True)}
    body = [(*(name(value, p) for value, p in zip(setting, by)), *_outcome_cells(groups[setting], outcomes))
            for setting in in_order_of(groups, by)]
    body.append((ALL, *[""] * (len(by) - 1), *_outcome_cells(summary, outcomes)))
    return Table(head, tuple(body), caption=caption, label=label)


def _outcome_cells(rows, outcomes):
    yield str(len(rows))
    for metric in outcomes:
        found = pd.to_numeric(rows[metric]).dropna() if metric in rows else pd.Series(dtype=float)
        count = str(int((found != 0).sum()))
        yield LACKING if not len(found) else count if len(found) == len(rows) else f"{count} of {len(found)}"


@says_run
def evidence_table(summary: pd.DataFrame, *, by: str, col: str, label: str, head: str) -> Table:
    """Table of what works: a row for each value of `by`, a column for each of `col`.

    A cell has the number of repeats that worked and the evidence of those that failed, or of the
    last. `summary` has the columns works (1 or 0) and evidence. `head`: title of the first column.
    """
    if not len(summary):
        return not_measured((head, ""), label, numbers=False)
    columns = in_order(summary[col], col)
    rows = [(name(value, by), *(_evidence_cell(summary[(summary[by] == value) & (summary[col] == column)])
                                for column in columns)) for value in in_order(summary[by], by)]
    return Table((head, *(name(column, col) for column in columns)), tuple(rows), label=label,
                 caption="How many of the repeats worked, and what was seen.", numbers=False)


def _evidence_cell(found) -> str:
    if not len(found):
        return LACKING
    worked = found["works"].astype(float) == 1
    chosen = found if worked.all() else found[~worked]
    seen = list(dict.fromkeys(chosen["evidence"].astype(str)))
    evidence = seen[-1] if worked.all() else "; ".join(seen)
    verdict = "works" if worked.all() else "fails" if not worked.any() else "fails at times"
    # a cloud without a limit is recorded as "of None"
    return f"{verdict}, {int(worked.sum())} of {len(found)}: {evidence.replace(' of None', ', no limit')}"


@says_run
def ratios(summary: pd.DataFrame, metric: str, rows) -> Table:
    """Table of ratios. `rows`: (text, of, than, where), each a ratio of the metric between two
    arms, paired by repeat."""
    body = tuple((text, times(summary, metric, of, than, **where))
                 for text, of, than, where in rows)
    return Table(("Compared", "Ratio"), body, label="what makes how much of a difference",
                 caption="Ratio: median of the repeats' ratios, and its interval.")


def repeats_table(experiment, ids: list[str]) -> Table:
    """Table of the number of repeats that each claim's verdict takes.

    `ids`: claims of the experiment whose rule bounds a ratio (ratio_between, equal_within). Numbers are those of
    the verdicts; only the spread is computed here.
    """
    known = {claim["id"]: claim for claim in claims.load(experiment.study.name)}
    summary = experiment.summary()
    machines = ([rows for _, rows in summary.groupby("machine", sort=False)] if "machine" in summary else
                [summary] * bool(len(summary)))
    each = [rows.to_dict("records") for rows in machines]
    body = tuple(_repeats_row(known[one], experiment.study.judge(one), [
        [*numbers(known[one], rows, experiment.parameters).values()] for rows in each]) for one in ids)
    return Table(
        ("Claim", "Ratio wanted", "Measured", "Spread of the repeats", "Repeats made",
         "Repeats it takes"), body, label="how many repeats the verdicts take",
        caption="Measured: as in the verdict. Spread: standard deviation of the ratios, of which each repeat gives "
                "one. Repeats it takes: those at which a verdict is expected if repeats go on to vary as much; a guess "
                "while few were made.")


def _repeats_row(claim, judged, machines) -> tuple[str, ...]:
    """machines: the repeats' numbers on each. Those of the machine that was judged are as many as the verdict's, and
    the nearest to its value."""
    alike = [each for each in machines if each and len(each) == judged.n]
    found = min(alike, key=lambda each: abs(median(each) - judged.measured), default=[])
    rule = claim["rule"]
    low, high = ((rule["low"], rule["high"]) if rule["name"] == "ratio_between" else
                 (1 / rule["margin"], rule["margin"]))
    several = f" ({_ratio_range(judged.low, judged.high)})" if judged.n > 1 else ""
    needed = judged.repeats_needed if judged.verdict == OPEN else None
    takes = "decided" if judged.verdict in DECIDED else str(needed or LACKING)
    return (claim["statement"], _ratio_range(low, high),
            _ratio(judged.measured) + several if judged.n else "not measured",
            _ratio(stdev(found)) if len(found) > 1 else LACKING, str(judged.n), takes)


def _ratio_range(low, high) -> str:
    return " to ".join("no end" if one is None else _ratio(one) for one in (low, high))


def _ratio(value) -> str:
    """Three decimals, so that bounds and measured ratios compare."""
    return f"{value:.3f}"
