"""Whether a measure swings to and fro through time, by its means in bins of equal length. Pure."""

import math

import numpy as np

FEWEST = 8      # bins; fewer show no swing and no period


def swing(means) -> float:
    """How many times as high the bins are that one in twenty exceeds as those that one in twenty
    stays below. Bins without a value (None, NaN) are passed over; ValueError when few are left."""
    found = _there(means)
    if len(found) < FEWEST:
        raise ValueError(f"{len(found)} bins, where {FEWEST} are the fewest")
    low, high = np.quantile(found, [0.05, 0.95])
    return float(high / low)


def period(means, bin_s: float) -> dict:
    """After how many seconds the bins are most like themselves again: period_s, and regularity,
    their correlation at that distance (1: exactly). Nothing where they are alike at none.

    A straight trend is taken out first. The distance lies behind the first at which they are unlike
    (else neighbours, which are always alike, would be it) and is half of the time at most.
    """
    found = _there(means)
    if len(found) < FEWEST:
        return {}
    steps = np.arange(len(found))
    rest = found - np.polyval(np.polyfit(steps, found, 1), steps)
    power = float(rest @ rest)
    if power <= 1e-12 * float(found @ found):
        return {}
    alike = [float(rest[lag:] @ rest[:len(rest) - lag]) / power * len(rest) / (len(rest) - lag)
             for lag in range(len(rest) // 2 + 1)]
    first = next((lag for lag, value in enumerate(alike) if value < 0), len(alike))
    later = alike[first:]
    if not later or max(later) <= 0:
        return {}
    best = max(later)
    return {"period_s": (first + later.index(best)) * bin_s, "regularity": min(1.0, best)}


def _there(means) -> np.ndarray:
    return np.array([value for value in means if value is not None and not math.isnan(value)], float)
