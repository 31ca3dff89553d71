"""EM: by hand with loops, exact where the population is known, steady in every corner."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar

from longtail import Prior, Scores
from longtail.shift import em, estimate_prior
from longtail.shift.em import climb, free_step, likelihoods, slope_of, trend_step
from longtail.testing import FiniteWorld

LOGITS = np.random.default_rng(0).normal(size=(40, 3), scale=2)


def em_by_hand(logits, rounds, pseudo_count):
    """Logits carry the uniform prior."""
    num_classes = logits.shape[1]
    prior = [1 / num_classes] * num_classes
    for _ in range(rounds):
        counts = [pseudo_count] * num_classes
        for row in logits:
            joint = [prior[y] * np.exp(row[y]) for y in range(num_classes)]
            for y in range(num_classes):
                counts[y] += joint[y] / sum(joint)
        prior = [count / sum(counts) for count in counts]
    return np.array(prior)


@pytest.mark.parametrize("pseudo_count", [0.0, 1.0, 7.5])
def test_em_is_saerens_update_with_a_dirichlet(pseudo_count, monkeypatch):
    start = np.full((3, 1), 1 / 3)
    once = np.ones((40, 1))
    step = free_step(np.float64(pseudo_count))
    for rounds in (1, 5):
        monkeypatch.setattr(em, "_MAX_ITER", rounds)
        end = climb(likelihoods(LOGITS), once, start, step, 0.0)
        expected = em_by_hand(LOGITS, rounds, pseudo_count)
        np.testing.assert_allclose(end.priors[:, 0], expected, atol=1e-12)
        assert (end.iterations, end.converged) == (rounds, False)


@pytest.mark.parametrize("pseudo_count", [0.5, 1.0, 4.0])
def test_the_estimate_without_validation_is_where_that_ends(pseudo_count):
    scores = Scores(LOGITS, carried=[1, 1, 1])
    estimate = estimate_prior(scores, pseudo_count=pseudo_count)
    assert estimate.converged
    expected = em_by_hand(LOGITS, 3000, pseudo_count)
    np.testing.assert_allclose(estimate.prior.probs, expected, atol=1e-6)


def test_columns_are_problems_of_their_own_and_a_weight_is_a_repetition():
    likelihood = likelihoods(LOGITS)
    times = np.random.default_rng(1).integers(0, 4, size=(40, 2)).astype(float)
    start = np.full((3, 2), 1 / 3)
    step = free_step(np.float64(1.0))
    both = climb(likelihood, times, start, step).priors
    for column in range(2):
        repeated = np.repeat(LOGITS, times[:, column].astype(int), axis=0)
        alone = estimate_prior(Scores(repeated, carried=[1, 1, 1]), resamples=0)
        np.testing.assert_allclose(both[:, column], alone.prior.probs, atol=1e-7)


def population(world, times):
    """Exact scores of a world in which class y occurs times[y] as often, and its prior."""
    table = world.table * torch.tensor(times)
    exact = world.posterior(world.prior).log()
    rows = exact.repeat_interleave(table.sum(dim=1), dim=0)
    return Scores(rows, carried=world.prior), Prior.of(table.sum(dim=0))


@pytest.mark.parametrize("times", [(1, 1, 1, 1), (1, 2, 4, 20), (5, 1, 1, 2)])
def test_exact_posteriors_of_a_population_give_its_prior(times):
    scores, truth = population(FiniteWorld.long_tailed(), times)
    estimate = estimate_prior(scores, pseudo_count=0, resamples=0)
    np.testing.assert_allclose(estimate.prior.probs, truth.probs, atol=2e-4)


def test_in_random_worlds_too():
    for seed in range(5):
        scores, truth = population(FiniteWorld.drawn(seed, points=8, classes=3), (1, 3, 9))
        estimate = estimate_prior(scores, pseudo_count=0, resamples=0)
        np.testing.assert_allclose(estimate.prior.probs, truth.probs, atol=1e-3)


@pytest.mark.parametrize("pseudo_count", [0.0, 1.0])
def test_the_trend_is_the_slope_of_greatest_likelihood(pseudo_count):
    direction = np.array([4.0, 2.5, 0.5])
    likelihood = likelihoods(LOGITS)

    def minus_likelihood(slope):
        prior = np.exp(slope * direction)
        prior /= prior.sum()
        value = sum(np.log(row @ prior) for row in np.exp(LOGITS))
        return -(value + pseudo_count * np.log(prior).sum())

    best = minimize_scalar(minus_likelihood, bounds=(-5, 5), method="bounded").x
    end = climb(
        likelihood,
        np.ones((40, 1)),
        np.full((3, 1), 1 / 3),
        trend_step(direction, np.float64(pseudo_count)),
    )
    assert slope_of(end.priors[:, 0], direction) == pytest.approx(best, abs=1e-4)
    logs = np.log(end.priors[:, 0])
    assert float((logs[0] - logs[1]) / 1.5) == pytest.approx(float((logs[1] - logs[2]) / 2.0))


def test_a_class_that_is_ruled_out_everywhere_keeps_what_the_dirichlet_gives_it():
    logits = LOGITS.copy()
    logits[:, 2] = -np.inf
    estimate = estimate_prior(Scores(logits, carried=[1, 1, 1]), resamples=0)
    assert float(estimate.prior.probs[2]) == pytest.approx(1 / 43, rel=1e-6)


def test_without_the_dirichlet_no_class_is_at_zero_either():
    logits = np.array([[9.0, 0.0, -np.inf]] * 50)
    estimate = estimate_prior(Scores(logits, carried=[1, 1, 1]), pseudo_count=0)
    assert not estimate.prior.has_zeros
    assert float(estimate.prior.probs[2]) == pytest.approx(1e-9, rel=1e-3)
    assert np.isfinite(estimate.low).all()
    assert np.isfinite(estimate.high).all()


def test_logits_of_any_size_do_no_harm():
    far = Scores(LOGITS * 1e4 - 3e5, carried=[1, 1, 1])
    estimate = estimate_prior(far)
    decided = np.bincount(LOGITS.argmax(axis=1), minlength=3)
    np.testing.assert_allclose(estimate.prior.probs, (decided + 1) / 43, atol=1e-6)
