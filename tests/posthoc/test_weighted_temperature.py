"""A temperature of samples that weigh differently: a weight is a repetition."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import longtail as lt
from longtail.posthoc import Temperature

COUNTS = [60, 30, 10]


def scores(sharpness=2.5, seed=0, size=400):
    random = np.random.default_rng(seed)
    labels = random.choice(3, size=size, p=[0.5, 0.3, 0.2])
    evidence = random.normal(size=(size, 3)) + 1.5 * np.eye(3)[labels]
    logits = sharpness * (1.5 * evidence + np.log(COUNTS))
    return lt.Scores(logits, labels, COUNTS, split="validation")


def test_equal_weights_of_one_are_none():
    validation = scores()
    ours = Temperature.fit(validation, weights=np.ones(400))
    assert ours.temperature == pytest.approx(Temperature.fit(validation).temperature, rel=1e-12)
    assert ours.source == validation.carried


def test_it_is_the_minimum_found_by_hand():
    validation = scores()
    weights = np.random.default_rng(1).exponential(size=400)
    share = np.array([weights[validation.labels == k].sum() for k in range(3)]) / weights.sum()

    def objective(log_t):
        total = log_t**2 / 2
        for f, y, w in zip(validation.logits, validation.labels, weights, strict=True):
            z = f / np.exp(log_t) + np.log(share) - np.log(np.divide(COUNTS, 100))
            total -= w * (z[y] - np.log(np.exp(z).sum()))
        return total

    by_hand = minimize_scalar(objective, bracket=(0, 1), tol=1e-10).x
    assert np.log(Temperature.fit(validation, weights=weights).temperature) == pytest.approx(
        by_hand, abs=1e-6
    )


def test_a_weight_of_two_is_two_samples_and_of_zero_none():
    validation = scores()
    weights = np.random.default_rng(1).integers(0, 4, size=400)
    repeated = lt.Scores(
        validation.logits.repeat(weights, axis=0), validation.labels.repeat(weights), COUNTS
    )
    weighted = Temperature.fit(validation, weights=weights.astype(float)).temperature
    assert weighted == pytest.approx(Temperature.fit(repeated).temperature, rel=1e-10)


def test_classes_that_are_ruled_out_and_those_without_samples_do_no_harm():
    validation = scores()
    first_two = validation.labels < 2
    logits = np.where([False, False, True], -np.inf, validation.logits)[first_two]
    ruled_out = lt.Scores(logits, validation.labels[first_two], COUNTS)
    of_two = lt.Scores(logits[:, :2], validation.labels[first_two], COUNTS[:2])
    assert Temperature.fit(ruled_out).temperature == pytest.approx(
        Temperature.fit(of_two).temperature
    )


def test_a_model_without_error_and_one_that_is_always_wrong_get_a_finite_temperature():
    sure = np.array([[9.0, 0.0], [0.0, 9.0]] * 20)
    labels = np.array([0, 1] * 20)
    right = Temperature.fit(lt.Scores(sure, labels, [1, 1])).temperature
    wrong = Temperature.fit(lt.Scores(1e6 * sure, 1 - labels, [1, 1])).temperature
    assert 0.01 < right < 1 < wrong < np.inf
