"""Nearest neighbours by cosine, and log-probabilities smoothed over them."""

import numpy as np
import pytest

from longtail.core import neighbours
from longtail.core.neighbours import nearest

ROWS = np.random.default_rng(0).normal(size=(60, 5))


def naive(rows, count):
    """Sample by sample, and pair by pair."""
    found, weights = [], []
    for i, row in enumerate(rows):
        cosines = {
            j: row @ other / np.linalg.norm(row) / np.linalg.norm(other)
            for j, other in enumerate(rows)
            if j != i
        }
        best = sorted(cosines, key=cosines.get, reverse=True)[:count]
        raw = np.exp([10 * cosines[j] for j in best])
        found.append(best)
        weights.append(dict(zip(best, raw / raw.sum(), strict=True)))
    return found, weights


def test_they_are_the_nearest_by_cosine_with_their_weights():
    made, (found, weights) = nearest(ROWS, 4), naive(ROWS, 4)
    for i in range(len(ROWS)):
        assert sorted(made.at[i].tolist()) == sorted(found[i])
        expected = [weights[i][j] for j in made.at[i]]
        np.testing.assert_allclose(made.weights[i], expected, rtol=1e-4)


def test_smoothing_adds_a_share_of_the_neighbours_log_probabilities():
    made, logits = nearest(ROWS, 4), np.random.default_rng(1).normal(size=(60, 3))
    logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    expected = [
        own + 0.3 * sum(w * logs[j] for j, w in zip(at, weights, strict=True))
        for own, at, weights in zip(logs, *made, strict=True)
    ]
    np.testing.assert_allclose(made.smoothed(logits), expected, rtol=1e-9)
    np.testing.assert_allclose(made.smoothed(logits + 7.0), expected, rtol=1e-9)
    np.testing.assert_allclose(made.smoothed(logits, 0.0), logs, rtol=1e-9)


def test_the_length_of_a_row_does_not_matter():
    lengths = np.random.default_rng(2).uniform(1e-3, 1e3, size=(60, 1))
    np.testing.assert_array_equal(
        np.sort(nearest(ROWS * lengths, 3).at), np.sort(nearest(ROWS, 3).at)
    )


def test_many_rows_are_looked_at_in_parts_that_run_through_all_of_them(monkeypatch):
    monkeypatch.setattr(neighbours, "_MOST", 25)  # so three parts of 20
    made = nearest(ROWS, 4)
    for part in range(3):
        own = nearest(ROWS[part::3], 4)
        np.testing.assert_array_equal(made.at[part::3], own.at * 3 + part)
        np.testing.assert_allclose(made.weights[part::3], own.weights)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_of_few_rows_there_are_fewer_and_of_one_row_none(count):
    made = nearest(ROWS[:count], 10)
    assert made.at.shape == made.weights.shape == (count, count - 1)
    logits = np.zeros((count, 2))
    np.testing.assert_allclose(made.smoothed(logits)[:, 0] - made.smoothed(logits)[:, 1], 0.0)


def test_a_row_of_zeros_is_no_ones_fault():
    rows = np.vstack([np.zeros(5), ROWS[:5]])
    assert np.isfinite(nearest(rows, 3).weights).all()


def test_a_row_that_is_there_several_times_counts_as_often():
    times = np.ones(60)
    times[7] = 3.0
    once, often = nearest(ROWS, 4), nearest(ROWS, 4, times)
    np.testing.assert_array_equal(once.at, often.at)
    raised = once.weights * times[once.at]
    np.testing.assert_allclose(often.weights, raised / raised.sum(axis=1, keepdims=True))


def test_a_class_that_a_neighbour_rules_out_is_not_ruled_out():
    logits = np.array([[0.0, 1.0], [0.0, -np.inf], [1.0, 0.0]])
    smoothed = nearest(np.ones((3, 2)), 2).smoothed(logits)
    assert np.isfinite(smoothed[[0, 2]]).all()
    assert smoothed[1, 1] == -np.inf
