"""Neighbours: they count where they help, and not where they do not."""

import numpy as np
import pytest

from longtail import Prior, Scores
from longtail.core.draws import Draws
from longtail.posthoc.validation import check_validation
from longtail.shift import estimate_prior
from longtail.shift.neighbours import SHARES, best_share
from longtail.shift.simulated import simulated_shifts


def clustered(number, seed, noise):
    """Samples in clusters of features, and a model that looks at them through noise."""
    rng = np.random.default_rng(seed)
    means = 4 * np.eye(8)
    labels = rng.choice(8, number)
    features = means[labels] + 0.7 * rng.normal(size=(number, 8))
    logits = means[labels] @ means.T / 16 * 2 + noise * rng.normal(size=(number, 8))
    return Scores(logits, labels, Prior.uniform(8)), features


def test_they_count_where_they_tell_and_not_where_they_do_not():
    scores, features = clustered(1000, 0, noise=1.0)
    validation = check_validation(scores, "a test")
    shifts = simulated_shifts(validation, 500, Draws(0))
    assert best_share(validation, features, shifts) == max(SHARES)
    nothing = np.random.default_rng(0).normal(size=features.shape)
    assert best_share(validation, nothing, shifts) < 0.2


def test_estimates_by_them_are_nearer_and_their_scores_are_better():
    validation, known = clustered(1000, 0, noise=1.0)
    test, features = clustered(3000, 1, noise=1.0)
    at = np.flatnonzero(np.random.default_rng(2).random(3000) < np.array([1, 0.1] * 4)[test.labels])
    scores, near = test.take(at), features[at]
    truth = np.bincount(scores.labels, minlength=8) / len(at)
    plain = estimate_prior(scores, validation=validation)
    found = estimate_prior(scores, validation=validation, features=near, validation_features=known)
    assert (plain.neighbours, found.neighbours) == (None, max(SHARES))
    off = [np.abs(each.prior.probs - truth).sum() for each in (found, plain)]
    assert off[0] < off[1]
    right = [np.mean(each.scores.predict() == scores.labels) for each in (found, plain)]
    assert right[0] > right[1] + 0.05


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_scores_come_back_as_they_went_in_and_carry_the_estimate(kind):
    scores, _ = clustered(200, 3, noise=1.0)
    given = Scores(scores.logits.astype(kind), scores.labels, scores.carried)
    found = estimate_prior(given, validation=scores)
    assert found.scores.logits.dtype == kind
    assert found.scores.carried == found.prior
    moved = found.calibration(given).under(found.prior)
    np.testing.assert_allclose(found.scores.probs(), moved.probs(), atol=1e-5)
    np.testing.assert_array_equal(found.scores.labels, given.labels)
