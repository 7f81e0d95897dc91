"""The table of what a check of operation histories found."""

import pandas as pd

from labbook.figures.numbers import name
from labbook.figures.repeats import says_run
from labbook.figures.tables import Table, in_order_of, not_measured

COUNTS = {"checked_calls": "Calls checked", "unknown_calls": "Writes of unknown outcome",
          "lost_writes": "Acknowledged writes lost", "stale_reads": "Stale reads",
          "phantom_values": "Values from nowhere", "backward_reads": "Reads back in time",
          "own_backward_reads": "of one client"}
CAPTION = "Sums over the runs whose history was checked."


@says_run
def anomaly_table(summary: pd.DataFrame, *, by: dict[str, str], label: str, caption=CAPTION) -> Table:
    """Table of anomalies: a row for each setting of `by` ({parameter: title}), the number of runs, and
    the sums of the metrics of histories.calls. Runs whose history was not checked do not count."""
    head = (*by.values(), "Runs", *COUNTS.values())
    checked = summary[summary["checked_calls"].notna()] if "checked_calls" in summary else summary.iloc[:0]
    if not len(checked):
        return not_measured(head, label)
    groups = {setting: rows for setting, rows in checked.groupby(list(by), sort=True)}
    return Table(head, tuple(
        (*(name(value, parameter) for value, parameter in zip(setting, by)), str(len(groups[setting])),
         *(f"{groups[setting][metric].sum():,.0f}" for metric in COUNTS))
        for setting in in_order_of(groups, by)), caption=caption, label=label)
