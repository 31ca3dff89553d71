"""EM: by hand with loops, exact where the population is known, steady in every corner."""

import numpy as np
import pytest
import torch

from longtail import Prior, Scores
from longtail.shift import estimate_prior
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


@pytest.mark.parametrize("pseudo_count", [0.5, 1.0, 4.0])
def test_the_estimate_without_validation_is_where_that_ends(pseudo_count):
    scores = Scores(LOGITS, carried=[1, 1, 1])
    estimate = estimate_prior(scores, pseudo_count=pseudo_count)
    assert estimate.converged
    expected = em_by_hand(LOGITS, 3000, pseudo_count)
    np.testing.assert_allclose(estimate.prior.probs, expected, atol=1e-6)


def population(world, times):
    """Exact scores of a world in which class y occurs times[y] as often, and its prior."""
    table = world.table * torch.tensor(times)
    exact = world.posterior(world.prior).log()
    rows = exact.repeat_interleave(table.sum(dim=1), dim=0)
    return Scores(rows, carried=world.prior), Prior.of(table.sum(dim=0))


@pytest.mark.parametrize("times", [(1, 1, 1, 1), (1, 2, 4, 20), (5, 1, 1, 2)])
def test_exact_posteriors_of_a_population_give_its_prior(times):
    scores, truth = population(FiniteWorld.long_tailed(), times)
    estimate = estimate_prior(scores, pseudo_count=0, intervals=False)
    np.testing.assert_allclose(estimate.prior.probs, truth.probs, atol=2e-4)


def test_in_random_worlds_too():
    for seed in range(5):
        scores, truth = population(FiniteWorld.drawn(seed, points=8, classes=3), (1, 3, 9))
        estimate = estimate_prior(scores, pseudo_count=0, intervals=False)
        np.testing.assert_allclose(estimate.prior.probs, truth.probs, atol=1e-3)


def test_a_class_that_is_ruled_out_everywhere_keeps_what_the_dirichlet_gives_it():
    logits = LOGITS.copy()
    logits[:, 2] = -np.inf
    estimate = estimate_prior(Scores(logits, carried=[1, 1, 1]), intervals=False)
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
