"""The prior a posteriori: by hand, near a trend, off it, and what intervals hold."""

import math

import numpy as np
import pytest

from longtail import Prior, Scores
from longtail.shift import em, estimate_prior
from longtail.shift.posterior import posteriors, trend_along

COUNTS = np.array([60, 30, 15, 7, 3])
LOGITS = np.random.default_rng(0).normal([0.8, 0.0], 1.5, size=(60, 2))


def evidence_by_hand(logits, trend, strength, eta):
    """Of two classes, summed up over log t_0 − log t_1, and the mean of t_0."""
    u = np.linspace(-12, 12, 20_001)
    logs = np.stack([-np.logaddexp(0, -u), -np.logaddexp(0, u)])
    height = eta * np.log(np.exp(logits) @ np.exp(logs)).sum(axis=0)
    height += strength * (trend @ logs) + math.lgamma(strength)
    height -= sum(math.lgamma(strength * share) for share in trend)
    density = np.exp(height - height.max())
    return math.log(density.sum()) + height.max(), density @ np.exp(logs[0]) / density.sum()


@pytest.mark.parametrize("eta", [1.0, 0.5])
@pytest.mark.parametrize("trend", [(0.5, 0.5), (0.2, 0.8)])
def test_of_two_classes_it_is_what_integration_gives(eta, trend):
    rows = np.tile(LOGITS, (5, 1))
    ((found,),) = posteriors(em.likelihoods(rows), np.ones((300, 1)), np.array([trend]).T, (eta,))
    ratios = 100 * 300 / 10 ** (np.arange(12) / 2)
    by_hand = [evidence_by_hand(rows, np.array(trend), eta * ratio, eta) for ratio in ratios]
    chances = np.exp([log for log, _ in by_hand] - np.max([log for log, _ in by_hand]))
    chances /= np.sqrt(ratios)
    chances /= chances.sum()
    wanted = chances @ [mean for _, mean in by_hand]
    assert math.exp(found.log_prior[0]) == pytest.approx(wanted, abs=0.01)
    assert math.log(found.strength) == pytest.approx(chances @ np.log(ratios), abs=0.3)
    assert found.converged


def test_next_to_nothing_leaves_the_trend_and_all_of_one_class_leave_it():
    trend = np.array([[0.7], [0.3]])
    ((few,),) = posteriors(em.likelihoods(LOGITS), np.full((60, 1), 1e-4), trend, (1.0,))
    np.testing.assert_allclose(np.exp(few.log_prior), trend[:, 0], atol=0.02)
    sure = em.likelihoods(np.tile([0.0, -30.0], (2000, 1)))
    ((all_of_one,),) = posteriors(sure, np.ones((2000, 1)), trend, (1.0,))
    assert all_of_one.strength < 10
    assert np.exp(all_of_one.log_prior[0]) > 0.999


def test_columns_are_problems_of_their_own_and_a_weight_is_a_repetition():
    likelihood, trends = em.likelihoods(LOGITS), np.array([[0.4, 0.5], [0.6, 0.5]])
    times = np.random.default_rng(1).integers(0, 3, size=(60, 2)).astype(float)
    both = posteriors(likelihood, times, trends, (1.0, 0.5))
    for column, found in enumerate(both):
        rows = np.repeat(likelihood, times[:, column].astype(int), axis=0)
        own = trends[:, column : column + 1]
        alone = posteriors(rows, np.ones((len(rows), 1)), own, (1.0, 0.5))[0]
        for one, other in zip(found, alone, strict=True):
            np.testing.assert_allclose(one.log_prior, other.log_prior, atol=1e-4)
            np.testing.assert_allclose(one.variances, other.variances, rtol=1e-3)


def test_beyond_a_thousand_classes_the_diagonal_stands_for_the_curvature(monkeypatch):
    rng = np.random.default_rng(3)
    truth = rng.dirichlet(np.full(30, 1.0))
    labels = rng.choice(30, 2000, p=truth)
    likelihood = em.likelihoods(4 * np.eye(30)[labels] + rng.normal(size=(2000, 30)))
    once, uniform = np.ones((2000, 1)), np.full((30, 1), 1 / 30)
    ((exact,),) = posteriors(likelihood, once, uniform, (1.0,))
    monkeypatch.setattr("longtail.shift.posterior._MOST_FOR_MATRICES", 10)
    ((near,),) = posteriors(likelihood, once, uniform, (1.0,))
    np.testing.assert_allclose(np.exp(near.log_prior), np.exp(exact.log_prior), atol=0.005)
    np.testing.assert_allclose(near.variances, exact.variances, rtol=0.5)


def test_the_trend_is_the_likeliest_slope_and_as_sure_as_its_likelihood_is_bent():
    log_counts = np.log([9.0, 2.0])
    found = trend_along(em.likelihoods(LOGITS), np.ones(60), log_counts)

    def height(value):
        shares = np.exp(value * log_counts)
        return np.log(np.exp(LOGITS) @ (shares / shares.sum())).sum() - value**2 / 2

    slopes = np.linspace(-3, 3, 1201)
    heights = np.array([height(slope) for slope in slopes])
    assert found.slope == pytest.approx(slopes[heights.argmax()], abs=0.01)
    np.testing.assert_allclose(found.probs, Prior.from_log(found.slope * log_counts).probs)
    density = np.exp(heights - heights.max())
    density /= density.sum()
    variance = density @ slopes**2 - (density @ slopes) ** 2
    away = log_counts - found.probs @ log_counts
    np.testing.assert_allclose(found.variances, variance * away**2, rtol=0.2)


def test_a_single_sample_says_little_and_the_interval_knows(gaussian_scores):
    validation = gaussian_scores(TAILED, 2000, seed=1, counts=TAILED)
    for seed in range(5):
        one = gaussian_scores(np.ones(20), 1, seed=seed)
        found = estimate_prior(one, validation=validation)
        assert abs(found.slope) < 2
        assert (found.high > 0.01).all()


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
    shrunk = estimate_prior(scores, validation=validation)
    plain = estimate_prior(scores, validation=validation, shrink=False)
    assert error(shrunk.prior, truth) < 0.5 * error(plain.prior, truth)
    assert shrunk.slope == pytest.approx(power, abs=0.25)


@pytest.mark.parametrize(("validated", "worse"), [(np.ones(20), 1.2), (TAILED, 1.6)])
def test_a_prior_far_off_any_trend_is_followed_class_by_class(gaussian_scores, validated, worse):
    """The nearer to plain EM, which is right here, the more validation samples vouch for it."""
    truth = np.random.default_rng(3).dirichlet(np.full(20, 0.7)) + 0.002
    validation = gaussian_scores(validated, 5000, seed=1, counts=TAILED)
    scores = gaussian_scores(truth, 5000, seed=2)
    shrunk = estimate_prior(scores, validation=validation)
    plain = estimate_prior(scores, validation=validation, shrink=False)
    assert shrunk.strength < 200
    assert error(shrunk.prior, truth) < worse * error(plain.prior, truth)
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
        return estimate_prior(scores, validation=validation, calibrate=False)

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
