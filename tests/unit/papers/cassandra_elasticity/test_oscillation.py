"""Made-up series: a wave is an oscillation; noise, trends and steps are not."""

import math

import numpy as np
import pytest

from labbook.papers.cassandra_elasticity.oscillation import FEWEST, oscillation_metrics

SECONDS = np.arange(120)


def noise(size, seed=1, number=len(SECONDS)):
    return np.random.default_rng(seed).normal(0, size, number)


SINE = 10 + 4 * np.sin(2 * np.pi * SECONDS / 12)


def test_a_wave_in_noise_is_an_oscillation():
    found = oscillation_metrics(SINE + noise(1), 0.5)
    assert found["oscillates"] == 1 and found["regularity"] > 0.6
    assert found["period_s"] == pytest.approx(6, rel=0.05)
    assert found["swing"] == pytest.approx(14 / 6, rel=0.15)


def test_a_wave_alone_is_wholly_regular():
    assert oscillation_metrics(SINE, 1)["regularity"] > 0.9


def test_a_pause_that_comes_again_and_again_is_one():
    found = oscillation_metrics(10 + 20 * (SECONDS % 10 == 3) + noise(0.5), 1)
    assert found["oscillates"] == 1 and found["swing"] > 2


def test_a_wave_under_a_trend_is_one_by_itself():
    assert oscillation_metrics(SINE + 0.5 * SECONDS, 1)["period_s"] == pytest.approx(12, rel=0.05)


@pytest.mark.parametrize("course", [
    *(10 + noise(3, seed) for seed in range(5)),
    *(np.exp(noise(0.5, seed)) for seed in range(5)),
    10 + 0.3 * SECONDS + noise(0.5),
    10 + 30 * np.exp(-SECONDS / 15) + noise(0.5),       # a cache warms up
    10.0 + 5 * (SECONDS > 47),
    10 + 5 * (SECONDS >= 60) + noise(0.3),
    10 + 9 * ((SECONDS > 40) & (SECONDS < 46)) + noise(0.3),
    np.full(len(SECONDS), 7.3), 2 + 0.1 * SECONDS])
def test_noise_trends_and_steps_are_none(course):
    found = oscillation_metrics(course, 1)
    assert found["oscillates"] == 0 and found["swing"] == 1 and found["regularity"] < 0.25
    assert math.isnan(found["period_s"])


def test_bins_without_a_value_are_passed_over_and_keep_their_time():
    course = [None if i % 7 == 2 else math.nan if i % 11 == 5 else one
              for i, one in enumerate(SINE + noise(1))]
    assert oscillation_metrics(course, 1)["period_s"] == pytest.approx(12, rel=0.05)


def test_too_few_bins_give_nothing():
    found = oscillation_metrics([1.0, 3.0, 2.0, None] * (FEWEST // 4), 1)
    assert set(found) == {"swing", "period_s", "regularity", "oscillates"}
    assert all(math.isnan(value) for value in found.values())


def test_the_same_bins_give_the_same():
    assert oscillation_metrics(SINE + noise(4), 1) == oscillation_metrics(SINE + noise(4), 1)
