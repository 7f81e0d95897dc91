"""Select points of a summary, and summarise their repeats."""

import math
from dataclasses import replace
from functools import wraps
from inspect import signature

import numpy as np
import pandas as pd

from labbook.claims.statistics import LEVEL, median_interval


def over_repeats(summary: pd.DataFrame, by: list[str], metric: str) -> pd.DataFrame:
    """A row for each setting in `by`: n (repeats that have the metric), median, low, high, level (of the interval),
    limited, most_points (of a repeat: 1, unless other parameters differ).

    `limited` is True where at least one repeat was limited by its clients. A repeat is one number: the mean of its
    points, where parameters that are not in `by` differ. Repeats of several machines are not pooled: those of the
    first count.
    """
    rows, marked = [], summary.assign(limited=client_limited(summary, metric))
    for setting, group in marked.dropna(subset=[metric]).groupby(by, sort=True):
        group = of_one_machine(group)
        values = _of_repeats(group, metric)
        found = median_interval(values)
        rows.append((*setting, found.n, found.value, found.low, found.high, found.level,
                     bool(group["limited"].any()), math.ceil(len(group) / len(values))))
    return pd.DataFrame(rows, columns=[*by, "n", "median", "low", "high", "level", "limited", "most_points"])


def _of_repeats(points: pd.DataFrame, metric: str) -> pd.Series:
    """A number for each repeat."""
    return points.groupby("repeat")[metric].mean() if "repeat" in points else points[metric]


def made(summary: pd.DataFrame, by: list[str]) -> dict[tuple, int]:
    """{setting: how many repeats were made}, also those without a metric; {} of what was left out."""
    if not len(summary) or not {"repeat", *by} <= set(summary):
        return {}
    return {setting: of_one_machine(group)["repeat"].nunique() for setting, group in summary.groupby(by)}


def of_one_machine(summary: pd.DataFrame, *settings: dict) -> pd.DataFrame:
    """The rows of the first machine that has points of each of `settings`, by default of any."""
    if "machine" not in summary:
        return summary
    machines = summary["machine"].fillna("here")
    for machine in machines.unique():
        rows = summary[machines == machine]
        if all(len(of(rows, **where)) for where in settings):
            return rows
    return summary.iloc[:0]


def of_those_made(n: int, repeats: int | None, level: float = LEVEL) -> str:
    """What is said of a number from fewer repeats than were made, or of whose interval the level is lower than that of
    verdicts; "" of others."""
    if repeats and n < repeats:
        return f"in {n} of {repeats} repeats"
    return f"in {n} repeats" if 1 < n and level < LEVEL else ""


def of(summary: pd.DataFrame, **chosen) -> pd.DataFrame:
    """The points with these values of parameters. An empty summary, of what was left out, may lack the columns."""
    for parameter, value in chosen.items() if len(summary) else ():
        summary = summary[summary[parameter] == value]
    return summary


def client_limited(summary: pd.DataFrame, metric: str = "") -> pd.Series:
    """For each row, whether the clients were the limit rather than the server: by the metric's own mark,
    `METRIC_limited`, where it has one, as in the rules."""
    of_point = summary.get("client_limited", pd.Series(0.0, index=summary.index))
    return summary.get(f"{metric}_limited", of_point).fillna(of_point).fillna(0).astype(float) > 0


def band_words(spread: pd.DataFrame) -> str:
    """Explain line and band for a caption; `spread` is the result of over_repeats."""
    least, most = int(spread["n"].min()), int(spread["n"].max())
    if most == 1:
        return "one repeat, so no spread is shown"
    repeats = f"{least}" if least == most else f"{least} to {most}"
    several = "; a repeat is the mean of its points" * (int(spread["most_points"].max()) > 1)
    level = spread["level"][spread["n"] > 1].min()
    return (f"line: median of {repeats} repeats; "
            f"band: interval of the median at a level of {math.floor(100 * level)} %{several}")


def with_metric(summary: pd.DataFrame, metric: str) -> pd.DataFrame:
    """The points that have the metric, converted to numbers; their `client_limited` is the metric's."""
    if metric not in summary:
        return summary.iloc[:0]
    columns = {metric: pd.to_numeric(summary[metric])}
    if f"{metric}_limited" in summary:
        columns["client_limited"] = client_limited(summary, metric).astype(float)
    return summary.assign(**columns).dropna(subset=[metric])


def is_list(value) -> bool:
    """Whether it is a non-empty list; a point without the metric has None or NaN."""
    return isinstance(value, (list, tuple, np.ndarray)) and len(value) > 0


def with_lists(summary, *columns):
    """Points with a list in the first of `columns`; no point if the summary lacks any column."""
    if not set(columns) <= set(summary):
        return summary.iloc[:0]
    return summary[summary[columns[0]].map(is_list).astype(bool)]


def middle(points, metric: str):
    """The point with the median of the metric, or the one just below."""
    ordered = points.sort_values(metric, kind="stable")
    return ordered.iloc[(len(ordered) - 1) // 2]


def says_run(draw):
    """Decorator of a function that draws a `summary`: the caption says so where points are of the
    published run (results.summary), not of this one, and where they are of several machines."""
    @wraps(draw)
    def drawn(*args, **named):
        made = draw(*args, **named)
        summary = signature(draw).bind(*args, **named).arguments["summary"]
        text = " ".join(f"{words}." for words in (run_words(summary), machine_words(summary)) if words)
        caption = getattr(made, "caption", "")      # which says it already, where one such function called another
        return replace(made, caption=f"{caption} {text}") if text and caption and not caption.endswith(text) else made

    return drawn


def origin(summary: pd.DataFrame) -> list[str]:
    """The columns that say where its points are from, as far as it has them."""
    return [name for name in ("run", "machine") if name in summary]


def machine_words(summary: pd.DataFrame) -> str:
    """That the settings were measured on several machines, and on which; empty of one machine."""
    machines = summary["machine"].dropna().unique() if "machine" in summary else ()
    return "" if len(machines) < 2 else f"Some settings were measured on {'; others on '.join(machines)}"


def run_words(summary: pd.DataFrame) -> str:
    """"Published run" of points that are the published run's, "Partly the published run" of some; or empty."""
    of_it = summary["run"] == "published" if "run" in summary else pd.Series(dtype=bool)
    return "" if not of_it.any() else "Published run" if of_it.all() else "Partly the published run"
