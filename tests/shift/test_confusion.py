"""BBSE and RLLS against naive solutions, and where the confusion matrix is singular."""

import numpy as np
import pytest
from scipy.optimize import minimize, nnls

from longtail import Prior, Scores
from longtail.shift import estimate_prior
from longtail.shift.confusion import (
    confusion_bound,
    joint_confusion,
    predictions,
    solve_bbse,
    solve_rlls,
)


@pytest.mark.parametrize("soft", [False, True])
def test_the_joint_confusion_counts_predictions_by_label(soft):
    logits = np.random.default_rng(0).normal(size=(30, 3))
    labels = np.random.default_rng(1).integers(0, 3, size=30)
    weights = np.random.default_rng(2).integers(1, 4, size=30).astype(float)
    expected = np.zeros((3, 3))
    for row, label, weight in zip(logits, labels, weights, strict=True):
        probs = np.exp(row) / np.exp(row).sum() if soft else np.eye(3)[row.argmax()]
        for k in range(3):
            expected[k, label] += weight * probs[k] / weights.sum()
    joint = joint_confusion(predictions(logits, soft), labels, weights)
    np.testing.assert_allclose(joint, expected, atol=1e-12)


JOINT = np.array([[0.40, 0.05, 0.02], [0.06, 0.22, 0.02], [0.04, 0.03, 0.16]])


def test_bbse_solves_the_equation_where_it_can():
    ratio = np.array([0.3, 1.5, 2.4])
    found = solve_bbse(JOINT, JOINT @ ratio)
    np.testing.assert_allclose(found, np.linalg.solve(JOINT, JOINT @ ratio), atol=1e-6)


def test_bbse_keeps_ratios_from_going_below_zero_by_least_squares():
    mean = np.array([0.02, 0.60, 0.38])
    assert np.linalg.solve(JOINT, mean).min() < 0
    found = solve_bbse(JOINT, mean)
    np.testing.assert_allclose(found, nnls(JOINT, mean)[0], atol=1e-6)


def test_of_a_singular_matrix_bbse_takes_the_solution_nearest_to_no_shift():
    twins = np.array([[0.3, 0.3, 0.0], [0.05, 0.05, 0.0], [0.0, 0.0, 0.3]])
    mean = twins @ np.array([0.5, 0.9, 1.7])
    found = solve_bbse(twins, mean)
    np.testing.assert_allclose(found, [0.7, 0.7, 1.7], atol=1e-6)


def test_a_class_never_seen_in_validation_stays_where_it_is():
    hollow = JOINT.copy()
    hollow[:, 1] = 0
    for solve in (solve_bbse, lambda *given: solve_rlls(*given, 100)[0]):
        found = solve(hollow, JOINT.sum(axis=1))
        assert float(found[1]) == pytest.approx(1.0)
        assert np.isfinite(found).all()


@pytest.mark.parametrize("num_validation", [2, 5, 50, 100_000])
def test_rlls_minimises_the_sum_of_norms(num_validation):
    mean = np.array([0.25, 0.30, 0.45])
    delta = 0.01 * confusion_bound(3, num_validation)

    def objective(ratio):
        return np.linalg.norm(JOINT @ ratio - mean) + delta * np.linalg.norm(ratio - 1)

    found, _, settled = solve_rlls(JOINT, mean, num_validation)
    tries = [
        minimize(objective, start, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-13})
        for start in (np.ones(3) * 1.1, np.array([0.2, 1.0, 2.0]))
    ]
    best = min(tries, key=lambda attempt: attempt.fun)
    assert settled
    assert best.x.min() > 0
    assert objective(found) <= best.fun + 1e-8  # what keeps the matrix from being singular
    np.testing.assert_allclose(found, best.x, atol=1e-4)


def test_rlls_leaves_less_of_the_shift_the_fewer_validation_samples_there_are():
    joint, mean = JOINT, np.array([0.25, 0.30, 0.45])
    moved = [np.linalg.norm(solve_rlls(joint, mean, n)[0] - 1) for n in (5, 50, 5000)]
    assert moved[0] < moved[1] < moved[2] <= np.linalg.norm(solve_bbse(joint, mean) - 1)


def test_rlls_of_no_shift_is_no_shift():
    found, _, settled = solve_rlls(JOINT, JOINT.sum(axis=1), 100)
    np.testing.assert_allclose(found, np.ones(3), atol=1e-9)
    assert settled


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("method", ["bbse", "rlls"])
def test_both_find_the_prior_of_many_samples(gaussian_scores, method, soft):
    validation = gaussian_scores([5, 3, 2], 20_000, seed=1, split="validation")
    truth = np.array([0.1, 0.3, 0.6])
    scores = gaussian_scores(truth, 20_000, seed=2)
    estimate = estimate_prior(scores, method, validation, soft=soft, calibrate=False)
    np.testing.assert_allclose(estimate.prior.probs, truth, atol=0.03)
    assert estimate.converged
    assert (estimate.method, estimate.slope, estimate.evidence) == (method, None, None)


@pytest.mark.parametrize("method", ["bbse", "rlls"])
def test_a_model_that_says_the_same_of_everything_moves_nothing(method):
    level = Scores(np.zeros((60, 3)), labels=[0, 0, 1, 2] * 15, carried=[1, 1, 1])
    estimate = estimate_prior(level, method, level, pseudo_count=0, soft=True, intervals=False)
    assert estimate.prior.is_close(Prior.of([2, 1, 1]))
