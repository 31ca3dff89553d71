import math
from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from longtail.stats import (
    Interval,
    correlation_interval,
    estimate,
    rank_correlation,
    stratified_variance,
    student_reach,
)


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


@pytest.mark.parametrize("pairs", [4, 5, 6, 7])
def test_orders_that_chance_gives_seldom_correlate(pairs):
    """All orders of a few pairs, exactly: zero is outside of the intervals of 5 % at most."""
    order, outside, number = np.arange(float(pairs)), 0, 0
    for other in permutations(range(pairs)):
        rho = rank_correlation(order, np.array(other, float))
        made = correlation_interval(rho, pairs)
        assert made.low <= rho <= made.high
        outside, number = outside + (made.is_above_zero or made.is_below_zero), number + 1
    assert outside <= 0.05 * number
    assert (outside > 0) == (pairs > 5)


def test_a_perfect_order_is_not_certain():
    made = correlation_interval(1.0, 100)
    assert (made.value, made.high) == (1.0, 1.0)
    assert 0.9999 < made.low < 0.99999


@pytest.mark.parametrize(("common", "rare"), [(0.01, 0.15), (0.03, 0.3), (0.1, 0.1)])
def test_differences_are_held_where_rare_classes_change_most_and_some_have_one_sample(common, rare):
    """Sizes like those of R52; two methods that differ in few samples, mostly of rare classes."""
    few = [2, 3, 3, 4, 4, 5, 6, 7, 9, 9, 10, 11, 12, 12, 15, 19, 25]
    sizes = np.array([1] * 6 + 2 * few + [75, 81, 87, 121, 696, 1083])
    labels, weight = np.repeat(np.arange(len(sizes)), sizes), 1 / len(sizes) / sizes
    changes = rare + (common - rare) * np.minimum(np.log(sizes) / np.log(100), 1)
    random, held = np.random.default_rng(0), []
    for _ in range(400):
        drawn = random.random(len(labels)) / changes[labels]
        terms = np.where(drawn < 2 / 3, 1.0, np.where(drawn < 1, -1.0, 0.0))
        variance, freedom = stratified_variance(terms, labels, weight)
        apart = weight[labels] @ terms - (changes / 3).mean()
        held.append(abs(apart) <= student_reach(0.05, freedom) * variance**0.5)
    assert 0.9 <= np.mean(held) < 1
