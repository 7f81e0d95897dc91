"""Whether a measure swings to and fro through time, by its means in bins of equal length. Pure."""

import math

import numpy as np

FEWEST = 8      # bins; fewer show no swing and no period


def swings(means, bin_s: float) -> dict:
    """swing: how many times as high the bins are that one in twenty exceeds as those that one in
    twenty stays below. Where they come again and again, also period_s, after how many seconds the
    bins are most like themselves, and regularity, their correlation at that distance (1: exactly).

    Bins without a value (None, NaN) are passed over; of too few the swing is NaN. The distance lies
    behind the first at which the bins are unlike (else neighbours, which are always alike, would be
    it) and is half of the time at most; a straight trend is taken out first.
    """
    found = np.array([value for value in means if value is not None and not math.isnan(value)], float)
    if len(found) < FEWEST:
        return {"swing": math.nan}
    low, high = np.quantile(found, [0.05, 0.95])
    return {"swing": float(high / low), **_period(found, bin_s)}


def _period(found, bin_s) -> dict:
    steps = np.arange(len(found))
    rest = found - np.polyval(np.polyfit(steps, found, 1), steps)
    power = float(rest @ rest)
    if power <= 1e-12 * float(found @ found):
        return {}
    alike = [float(rest[lag:] @ rest[:len(rest) - lag]) / power * len(rest) / (len(rest) - lag)
             for lag in range(len(rest) // 2 + 1)]
    first = next((lag for lag, value in enumerate(alike) if value < 0), len(alike))
    best = max(alike[first:], default=0.0)
    if best <= 0:
        return {}
    return {"period_s": alike.index(best, first) * bin_s, "regularity": min(1.0, best)}
