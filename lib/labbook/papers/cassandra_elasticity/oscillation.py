"""Detect an oscillation in a time series of equal bins, and its period. Pure functions.

Noise and a cache that warms up also give high and low bins. An oscillation differs in that it recurs.
The series is therefore divided into PARTS, and each part is detrended. The measure is how far the
parts agree on a component of the same period and phase: a wave and its HARMONICS, which short pauses
have. A step lies in a single part, so the parts do not agree on it.
"""

import math

import numpy as np

PARTS = 4
FEWEST = 5 * PARTS      # bins; with fewer, all metrics are NaN
SHORTEST = 2.5          # period, bins; faster waves are aliased
HARMONICS = 4           # including the fundamental wave
SHUFFLES, REACHED = 200, 0.99
LEAST_REGULAR = 0.25    # regularity of an oscillation; random drift may reach 0.1
PHASES = 8              # largest number of phases of a period, which resolves peaks of 1/8 of it


def oscillation_metrics(means, bin_s: float) -> dict:
    """Metrics of the oscillation of `means`, the mean values of bins of `bin_s` seconds.

    swing: ratio of the highest to the lowest phase of the mean period (1 without an oscillation).
    period_s: at most the length of a part. regularity, from 0 to 1: the share of the variance within
    the parts on which they agree at the best period, corrected for chance (0: no more than 99 of 100
    shuffles of the same bins; 1: a pure wave). oscillates: 1.0 if regularity is LEAST_REGULAR or more,
    otherwise 0.0.

    Bins without a value (None, NaN) are skipped; with fewer than FEWEST bins all metrics are NaN.
    Shuffles are seeded: the same bins give the same metrics.
    """
    values = np.array([math.nan if value is None else value for value in means], float)
    at = np.flatnonzero(~np.isnan(values))
    if len(at) < FEWEST:
        return dict.fromkeys(("swing", "period_s", "regularity", "oscillates"), math.nan)
    parts = np.array_split(np.arange(len(at)), PARTS)
    rest = np.concatenate([_without_trend(at[part], values[at[part]]) for part in parts])
    if not rest.any():
        return {"swing": 1.0, "period_s": math.nan, "regularity": 0.0, "oscillates": 0.0}
    numbers, step = _frequencies(at, parts)
    found = _agreement(at, rest[:, None], parts, numbers, step)[:, 0]
    chance = _by_chance(at, rest, parts, numbers, step)
    regular = float(np.clip((found.max() - chance) / (1 - chance), 0, 1)) if chance < 1 else 0.0
    oscillates = regular >= LEAST_REGULAR
    # A wave of one period also recurs after two: the shortest of them counts.
    period = 1 / (step * numbers[np.flatnonzero(found >= 0.9 * found.max())[-1]])
    return {"swing": _swing(at, rest + values[at].mean(), period) if oscillates else 1.0,
            "period_s": period * bin_s if oscillates else math.nan,
            "regularity": regular, "oscillates": float(oscillates)}


def _without_trend(at, values):
    """Residuals of a straight line; rounding errors become 0."""
    rest = values - np.polyval(np.polyfit(at - at[0], values, 1), at - at[0])
    return np.where(np.abs(rest) > 1e-9 * np.abs(values).max(), rest, 0.0)


def _frequencies(at, parts):
    """Integers, and a step: their products are the frequencies (periods a bin) to test."""
    longest = min(at[part[-1]] - at[part[0]] + 1 for part in parts)
    step = 1 / (4 * (at[-1] + 1))
    return np.arange(math.ceil(1 / longest / step), int(1 / SHORTEST / step) + 1), step


def _agreement(at, rests, parts, numbers, step):
    """For each frequency (rows) and series (columns): the mean over all pairs of parts of the product
    of their waves, with each part's variance scaled to 1, summed over the harmonics. A wave common to
    all parts gives 1, noise about 0."""
    waves = []
    for part in parts:
        turns = np.exp(-2j * np.pi * step * np.outer(numbers, at[part]))
        size = np.sqrt((rests[part] ** 2).mean(axis=0))
        waves.append(np.sqrt(2) * (turns @ rests[part]) / len(part) / np.where(size, size, 1))
    alone = sum(np.abs(wave) ** 2 for wave in waves)
    each = (np.abs(sum(waves)) ** 2 - alone) / (PARTS * (PARTS - 1))
    found = each.copy()
    for harmonic in range(2, HARMONICS + 1):
        there = numbers * harmonic <= numbers[-1]
        found[there] += each[numbers[there] * harmonic - numbers[0]]
    return np.minimum(1, found)


def _by_chance(at, rest, parts, numbers, step) -> float:
    """The REACHED quantile of the shuffles' best agreement. Each part is shuffled separately, so that
    the shuffles keep a change between parts, such as a step."""
    draw = np.random.default_rng(1)
    shuffled = np.concatenate([
        draw.permuted(np.tile(rest[part][:, None], SHUFFLES), axis=0) for part in parts])
    return float(np.quantile(_agreement(at, shuffled, parts, numbers, step).max(axis=0), REACHED))


def _swing(at, course, period) -> float:
    """The highest over the lowest mean of a phase."""
    phases = max(2, min(PHASES, int(period)))
    phase = (at / period % 1 * phases).astype(int)
    means = [course[phase == one].mean() for one in range(phases) if (phase == one).any()]
    return float(max(means) / min(means)) if min(means) > 0 else math.nan
