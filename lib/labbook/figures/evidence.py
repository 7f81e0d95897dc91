"""What works and what fails, with what was seen of it."""

import pandas as pd

from labbook.figures.tables import Table
from labbook.figures.words import in_order, name


def evidence(summary: pd.DataFrame, *, by: str, col: str, label: str, head: str) -> Table:
    """A row for each value of `by`, a column for each of `col`: how many of the repeats worked, and
    the evidence of each that did not, or of the last one. `summary`: works (1 or 0), evidence.

    In the order of paper.yml's names; `head` is what the first column is called.
    """
    if not len(summary):
        return Table((head, ""), (("Not measured in this profile.", "–"),), label=label, numbers=False)
    columns = in_order(summary[col], col)
    rows = [(name(value, by), *(_cell(summary[(summary[by] == value) & (summary[col] == column)])
                                for column in columns)) for value in in_order(summary[by], by)]
    return Table((head, *(name(column, col) for column in columns)), tuple(rows), label=label,
                 caption="How many of the repeats worked, and what was seen.", numbers=False)


def _cell(found) -> str:
    if not len(found):
        return "–"
    worked = found["works"].astype(float) == 1
    told = found if worked.all() else found[~worked]
    seen = list(dict.fromkeys(told["evidence"].astype(str)))
    words = seen[-1] if worked.all() else "; ".join(seen)
    verdict = "works" if worked.all() else "fails" if not worked.any() else "fails at times"
    return f"{verdict}, {int(worked.sum())} of {len(found)}: {words}"
