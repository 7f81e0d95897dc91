"""Points of a summary that kept lists, such as bins through time."""

import numpy as np


def is_list(value) -> bool:
    """Whether it is one, and not empty: a point without has None or NaN there."""
    return isinstance(value, (list, tuple, np.ndarray)) and len(value) > 0


def with_lists(summary, *columns):
    """The points that have a list in the first of `columns`; none where the summary lacks any."""
    if not set(columns) <= set(summary):
        return summary.iloc[:0]
    return summary[summary[columns[0]].map(is_list).astype(bool)]


def middle(points, metric: str):
    """The point whose metric is in the middle, or just below."""
    ordered = points.sort_values(metric, kind="stable")
    return ordered.iloc[(len(ordered) - 1) // 2]
