import math

import numpy as np
import pytest
from scipy import stats

from longtail.stats import Interval, estimate


def test_over_seeds_it_is_students_interval():
    values = [0.41, 0.38, 0.44, 0.40]
    found = estimate([Interval(value, 0.0, 1.0) for value in values])
    ends = stats.t.interval(0.95, 3, loc=np.mean(values), scale=stats.sem(values))
    assert found.over == "seeds"
    assert (found.low, found.high) == pytest.approx(ends)
    assert found.runs == tuple(values)


def test_of_one_run_it_is_the_one_over_samples():
    found = estimate([Interval(0.4, 0.37, 0.42)])
    assert (found.value, found.low, found.high, found.over) == (0.4, 0.37, 0.42, "samples")
    assert found.reach == pytest.approx(0.025)


def test_what_is_missing_or_infinite_has_no_interval():
    assert estimate([Interval(None)]).value is None
    infinite = estimate([Interval(math.inf), Interval(2.0)])
    assert infinite.value == math.inf
    assert infinite.low is None
    assert infinite.over is None
    assert estimate([Interval(0.1)]).over is None


def test_students_interval_holds_the_mean_as_often_as_it_says():
    random = np.random.default_rng(0)
    held = 0
    for _ in range(800):
        found = estimate([Interval(value) for value in random.normal(0.4, 0.1, 3)])
        held += found.low <= 0.4 <= found.high
    assert held / 800 == pytest.approx(0.95, abs=0.02)
