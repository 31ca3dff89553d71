"""EM checked by validation samples: by hand, and what it is for."""

import numpy as np
import pytest
import torch

from longtail import Prior, Scores
from longtail.core.draws import Draws
from longtail.posthoc.validation import check_validation
from longtail.shift import estimate_prior
from longtail.shift.shrinkage import shrunken_em

COUNTS = np.array([60, 30, 15, 7, 4])


def em_by_hand(likelihood, times, pseudo_counts, m_step):
    prior = np.full(likelihood.shape[1], 1 / likelihood.shape[1])
    for _ in range(150):
        counts = np.array(pseudo_counts, dtype=float)
        for row, number in zip(likelihood, times, strict=True):
            if number:
                counts += number * prior * row / (prior @ row)
        prior = m_step(counts)
    return prior


def on_the_trend(log_counts):
    """The prior ∝ n^slope with the counts' mean of log n, by bisection."""

    def m_step(counts):
        wanted = counts @ log_counts / counts.sum()
        low, high = -20.0, 20.0
        for _ in range(80):
            slope = (low + high) / 2
            prior = np.exp(slope * log_counts) / np.exp(slope * log_counts).sum()
            low, high = (slope, high) if prior @ log_counts < wanted else (low, slope)
        return prior

    return m_step


def both_by_hand(likelihood, times, log_counts, pseudo_count):
    size = len(log_counts)
    few = np.full(size, pseudo_count / size)
    trend = em_by_hand(likelihood, times, few, on_the_trend(log_counts))
    centre = pseudo_count * size * trend
    free = em_by_hand(likelihood, times, centre, lambda counts: counts / counts.sum())
    apart = np.log(free) - np.log(trend)
    return trend, apart - apart.mean()


def test_it_is_the_trend_and_as_much_more_as_exceeds_the_noise(gaussian_scores):
    counts = COUNTS[:3]
    log_counts = np.log(counts / counts.sum())
    validation = gaussian_scores(counts, 40, seed=1)
    scores = gaussian_scores([1, 5, 1], 30, seed=2)
    found = shrunken_em(
        scores.logits,
        check_validation(validation, "this test"),
        log_counts,
        1.0,
        0,
        Draws(3),
    )

    trend, apart = both_by_hand(np.exp(scores.logits), np.ones(30), log_counts, 1.0)
    numbers = np.bincount(validation.labels, minlength=3)
    chances = torch.tensor(trend[validation.labels] / numbers[validation.labels])
    generator = torch.Generator().manual_seed(3)
    picked = torch.multinomial(chances.expand(20, -1), 30, replacement=True, generator=generator)
    noise = 0.0
    for draw in picked.numpy():
        times = np.bincount(draw, minlength=40)
        noise += (
            both_by_hand(np.exp(validation.logits), times, log_counts, 1.0)[1] ** 2
        ).mean() / 20
    trust = max(0.0, 1 - noise / (apart**2).mean())
    expected = trend * np.exp(trust * apart)
    assert 0.1 < trust < 0.95
    assert found.trust == pytest.approx(trust, abs=1e-3)
    np.testing.assert_allclose(found.prior.probs, expected / expected.sum(), atol=1e-3)
    assert found.slope == pytest.approx(np.log(trend[0] / trend[2]) / np.log(counts[0] / counts[2]))


def wrong_about_the_tail(num_classes, seed):
    """Biases that are larger the rarer the class."""
    spread = np.linspace(0.05, 1.0, num_classes)
    return spread * np.random.default_rng(seed).normal(size=num_classes)


def error(prior, truth):
    return np.abs(prior.probs - np.asarray(truth) / np.sum(truth)).sum()


TAILED = np.round(400 * 50.0 ** (-np.arange(20) / 19)).astype(int)


@pytest.mark.parametrize("power", [-1.0, 0.0, 1.0])
def test_a_trend_is_found_by_a_model_that_is_wrong_about_single_classes(gaussian_scores, power):
    wrong, truth = wrong_about_the_tail(20, 0), TAILED**power
    # Too few validation samples of the tail to calibrate it.
    validation = gaussian_scores(TAILED, 300, seed=1, bias=wrong, counts=TAILED)
    scores = gaussian_scores(truth, 2000, seed=2, bias=wrong)
    shrunk = estimate_prior(scores, validation=validation, resamples=0)
    plain = estimate_prior(scores, validation=validation, shrink=False, resamples=0)
    assert error(shrunk.prior, truth) < 0.5 * error(plain.prior, truth)
    assert shrunk.slope == pytest.approx(power, abs=0.25)


def test_a_prior_far_off_any_trend_is_followed_class_by_class(gaussian_scores):
    truth = np.random.default_rng(3).dirichlet(np.full(20, 0.7)) + 0.002
    validation = gaussian_scores(TAILED, 5000, seed=1, counts=TAILED)
    scores = gaussian_scores(truth, 5000, seed=2)
    shrunk = estimate_prior(scores, validation=validation, resamples=0)
    plain = estimate_prior(scores, validation=validation, shrink=False, resamples=0)
    assert shrunk.trust > 0.8
    assert error(shrunk.prior, truth) < 1.3 * error(plain.prior, truth)
    assert error(shrunk.prior, truth) < 0.4 * error(Prior.uniform(20), truth)


def test_95_percent_intervals_hold_priors_off_the_trend_about_as_often():
    inside = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        counts = np.round(200 * 30 ** (-np.arange(20) / 19)).astype(int)
        means = rng.normal(size=(20, 10)) * 1.1
        learned = means + rng.normal(size=(20, 10)) / np.sqrt(counts)[:, None]
        target = rng.permutation(counts**0.7)
        target /= target.sum()

        def scores(labels, split, means=means, learned=learned, counts=counts, rng=rng):
            features = means[labels] + rng.normal(size=(len(labels), 10))
            logits = features @ learned.T - 0.5 * (learned**2).sum(axis=1) + np.log(counts)
            return Scores(1.3 * logits, labels, counts, counts, split=split)

        drawn = rng.choice(20, 280, p=counts / counts.sum())
        labelled = scores(np.append(np.arange(20), drawn), "validation")
        unlabelled = scores(rng.choice(20, 800, p=target), "test")
        found = estimate_prior(unlabelled, validation=labelled)
        inside.append((found.low <= target) & (target <= found.high))
    assert 0.94 <= np.mean(inside) < 1


def test_the_trend_runs_along_the_training_counts_that_are_nearest(gaussian_scores):
    unnamed = gaussian_scores(COUNTS, 300, seed=1)
    named = gaussian_scores(COUNTS, 300, seed=1, counts=COUNTS)
    turned = gaussian_scores(COUNTS, 300, seed=2, counts=COUNTS[::-1])
    bare = gaussian_scores(COUNTS, 300, seed=2)
    counted = np.bincount(bare.labels, minlength=5)
    told = gaussian_scores(COUNTS, 300, seed=2, counts=counted)

    def estimate(scores, validation):
        return estimate_prior(scores, validation=validation, resamples=0, calibrate=False)

    assert estimate(named, turned).slope == pytest.approx(1, abs=0.3)
    assert estimate(unnamed, turned).slope == pytest.approx(-1, abs=0.3)
    assert estimate(unnamed, bare).prior == estimate(unnamed, told).prior


def test_equal_training_counts_leave_a_uniform_trend(gaussian_scores):
    validation = gaussian_scores(np.ones(5), 2000, seed=1, counts=[9] * 5)
    estimate = estimate_prior(gaussian_scores(COUNTS, 2000, seed=2), validation=validation)
    assert estimate.slope == 0
    np.testing.assert_allclose(estimate.prior.probs, COUNTS / COUNTS.sum(), atol=0.06)


def test_a_class_without_validation_samples_can_still_be_estimated(gaussian_scores):
    validation = gaussian_scores([60, 30, 15, 7, 0], 2000, seed=1, counts=COUNTS)
    estimate = estimate_prior(gaussian_scores([1, 1, 1, 1, 4], 2000, 2), validation=validation)
    np.testing.assert_allclose(estimate.prior.probs, [1 / 8] * 4 + [1 / 2], atol=0.1)
    assert np.isfinite(estimate.low).all()
    assert np.isfinite(estimate.high).all()


@pytest.mark.parametrize("present", [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0]])
def test_one_or_two_of_many_classes_are_too_few_to_check_by(gaussian_scores, present):
    validation = gaussian_scores(present, 50, seed=1, counts=COUNTS)
    with pytest.raises(ValueError, match=r"of 3 classes or more .* got [12]"):
        estimate_prior(gaussian_scores(COUNTS, 500, 2), validation=validation)


@pytest.mark.parametrize("counts", [[9, 1], [1, 1]])
def test_two_classes_need_no_trend_of_their_own(gaussian_scores, counts):
    validation = gaussian_scores(counts, 500, seed=1, counts=counts)
    estimate = estimate_prior(gaussian_scores([3, 7], 2000, seed=2), validation=validation)
    np.testing.assert_allclose(estimate.prior.probs, [0.3, 0.7], atol=0.04)
