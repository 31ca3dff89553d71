"""Neighbours: by hand, chosen where they help and not where they do not."""

import numpy as np
import pytest

from longtail import Prior, Scores
from longtail.core.draws import Draws
from longtail.posthoc.validation import check_validation
from longtail.shift import estimate_prior, neighbours
from longtail.shift.neighbours import best_weight, smoothed
from longtail.shift.simulated import simulated_shifts


def by_hand(logits, features, weight):
    rows = []
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    for i, row in enumerate(logits):
        cosines = [(unit[i] @ unit[j], j) for j in range(len(logits)) if j != i]
        nearest = sorted(cosines, reverse=True)[:10]
        weights = np.array([np.exp(10 * cosine) for cosine, _ in nearest])
        level = np.array([logits[j] - logits[j].max() for _, j in nearest])
        rows.append(row + weight * (weights / weights.sum()) @ level)
    return np.array(rows)


def test_it_is_the_formula():
    rng = np.random.default_rng(0)
    logits, features = rng.normal(size=(40, 3)), rng.normal(size=(40, 5)) + 1
    found = smoothed(logits, features, 0.3, Draws(0))
    np.testing.assert_allclose(found, by_hand(logits, features, 0.3), atol=1e-5)
    np.testing.assert_array_equal(smoothed(logits, features, 0.0, Draws(0)), logits)


def test_fewer_samples_than_neighbours_and_a_single_one():
    rng = np.random.default_rng(1)
    logits, features = rng.normal(size=(4, 3)), rng.normal(size=(4, 5))
    found = smoothed(logits, features, 0.5, Draws(0))
    np.testing.assert_allclose(found, by_hand(logits, features, 0.5), atol=1e-5)
    np.testing.assert_array_equal(smoothed(logits[:1], features[:1], 0.5, Draws(0)), logits[:1])


def test_a_class_that_a_neighbour_rules_out_is_not_ruled_out():
    logits = np.array([[0.0, 1.0], [0.0, -np.inf], [1.0, 0.0]])
    found = smoothed(logits, np.ones((3, 2)), 0.3, Draws(0))
    assert np.isfinite(found[0]).all()
    assert found[1, 1] == -np.inf


def test_neighbours_are_sought_among_some_at_once(monkeypatch):
    rng = np.random.default_rng(2)
    logits, features = rng.normal(size=(60, 3)), rng.normal(size=(60, 4))
    monkeypatch.setattr(neighbours, "_AT_ONCE", 20)
    found = smoothed(logits, features, 0.3, Draws(0))
    order = Draws(0).permutation(60)
    for part in np.array_split(order, 3):
        wanted = by_hand(logits[part], features[part], 0.3)
        np.testing.assert_allclose(found[part], wanted, atol=1e-5)


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
    assert best_weight(validation, features, shifts) == max(neighbours.WEIGHTS)
    nothing = np.random.default_rng(0).normal(size=features.shape)
    assert best_weight(validation, nothing, shifts) < 0.2


def test_estimates_by_them_are_nearer_and_their_scores_are_better():
    validation, known = clustered(1000, 0, noise=1.0)
    test, features = clustered(3000, 1, noise=1.0)
    at = np.flatnonzero(np.random.default_rng(2).random(3000) < np.array([1, 0.1] * 4)[test.labels])
    scores, near = test.take(at), features[at]
    truth = np.bincount(scores.labels, minlength=8) / len(at)
    plain = estimate_prior(scores, validation=validation)
    found = estimate_prior(scores, validation=validation, features=near, validation_features=known)
    assert (plain.neighbours, found.neighbours) == (None, max(neighbours.WEIGHTS))
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
