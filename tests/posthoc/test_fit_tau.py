"""P4: τ chosen by every criterion, against scipy and grids, and what is known of the choice."""

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from longtail import Prior, Scores, UnknownPriorError
from longtail.metrics import ece, evaluate
from longtail.posthoc import LogitAdjustment, WeightNormalization, tau_curve, weight_norm_curve
from longtail.stats import NORMAL
from longtail.testing import FiniteWorld, check_adjuster

COUNTS = np.array([400, 100, 40, 10])
PI = COUNTS / COUNTS.sum()
CRITERIA = ("accuracy_under_target", "nll", "brier", "ece")


def draw(seed=0, samples=300, frequencies=(0.4, 0.3, 0.2, 0.1), dtype=np.float64):
    """Held-out scores of an overconfident model, with labels of their own frequencies."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(4, samples, p=frequencies)
    logits = rng.normal(size=(samples, 4)) + np.log(PI)
    logits[np.arange(samples), labels] += 1.5
    return Scores((1.7 * logits).astype(dtype), labels, COUNTS, COUNTS, split="validation")


def weights_by_hand(labels, target):
    target = np.array(target) / np.sum(target)
    weights = np.array([target[y] / np.sum(labels == y) for y in labels])
    return weights / weights.sum()


def nll_by_hand(moved, labels):
    return -log_softmax(moved, axis=1)[np.arange(len(labels)), labels]


def brier_by_hand(moved, labels):
    return ((softmax(moved, axis=1) - np.eye(moved.shape[1])[labels]) ** 2).sum(axis=1)


def error_by_hand(classes, weights):
    """Of a mean over classes, to each of which one sample of the usual variance is added."""
    usual = np.mean([values.var(ddof=1) for values in classes])
    variances = [(len(v) * v.var() + usual) / len(v) for v in classes]
    return np.sqrt(
        sum(w**2 * s / len(v) for w, s, v in zip(weights, variances, classes, strict=True))
    )


def held_by_hand(optimum, error, length, spread=0.5):
    """Where tau comes to lie, and how much of the way from 1 to the optimum that is."""
    trust = 1 / (1 + (error / spread) ** 2 + (0.05 / (0.5 * length)) ** 2)
    return 1 + trust * (optimum - 1), trust


BY_HAND = {"nll": nll_by_hand, "brier": brier_by_hand}
TARGETS = [[1, 1, 1, 1], [1, 2, 3, 4]]
NU = np.array([2.0, 1.4, 1.1, 0.7])


def shifted(scores, target):
    offset = np.log(np.array(target) / np.sum(target)) - np.log(PI)
    return lambda tau: scores.logits + tau * offset


def scaled(scores, target):
    return lambda tau: scores.logits / NU**tau


FAMILIES = {
    "logit adjustment": (
        shifted,
        lambda scores, criterion, target: LogitAdjustment.fit(scores, COUNTS, target, criterion),
    ),
    "weight normalisation": (
        scaled,
        lambda scores, criterion, target: WeightNormalization.fit(scores, NU, target, criterion),
    ),
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("criterion", BY_HAND)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_proper_score_is_as_low_as_scipy_finds_it(family, criterion, target, dtype):
    scores = draw(dtype=dtype)
    moved, fit = FAMILIES[family]
    move, weights = moved(scores, target), weights_by_hand(scores.labels, target)
    fitted = fit(scores, criterion, target)

    def mean(tau):
        return weights @ BY_HAND[criterion](move(tau).astype(np.float64), scores.labels)

    grid = np.linspace(-4, 6, 201)
    start = grid[np.argmin([mean(tau) for tau in grid])]
    best = minimize_scalar(mean, bounds=(start - 0.1, start + 0.1), options={"xatol": 1e-10})
    assert fitted.choice.optimum == pytest.approx(best.x, abs=1e-4)
    assert mean(fitted.choice.optimum) <= best.fun + 1e-9
    assert fitted.choice.value == pytest.approx(mean(fitted.tau), rel=1e-6)
    assert (fitted.choice.criterion, fitted.choice.tau) == (criterion, fitted.tau)


@pytest.mark.parametrize("criterion", BY_HAND)
def test_the_errors_of_a_proper_score_and_of_its_tau_follow_from_single_samples(criterion):
    scores = draw()
    choice = LogitAdjustment.fit(scores, COUNTS, criterion=criterion).choice
    weights = weights_by_hand(scores.labels, [1] * 4)
    step = 1e-4

    def values_at(tau):
        return BY_HAND[criterion](shifted(scores, [1] * 4)(tau), scores.labels)

    at = [values_at(choice.optimum + k * step) for k in (-1, 0, 1)]
    slopes = (at[2] - at[0]) / (2 * step)
    bend = weights @ (at[2] - 2 * at[1] + at[0]) / step**2
    errors = []
    for values in (values_at(choice.tau), slopes):
        classes = [values[scores.labels == y] for y in range(4)]
        errors.append(error_by_hand(classes, [0.25] * 4))
    assert choice.standard_error == pytest.approx(errors[0], rel=1e-6)
    offset, worth = -np.log(PI), 16 / np.sum(1 / np.bincount(scores.labels))
    error = max(errors[1] / bend, (worth * bend) ** -0.5, 2 / (np.sqrt(worth) * np.ptp(offset)))
    assert (choice.low, choice.high) == pytest.approx(
        (choice.optimum - 1.96 * error, choice.optimum + 1.96 * error), rel=1e-4
    )
    assert (choice.tau, choice.trust) == pytest.approx(
        held_by_hand(choice.optimum, error, offset.std()), rel=1e-4
    )


def error_of_best(curve):
    """How far the best tau moves with the samples, and how wide a piece it is taken from."""
    return np.sqrt(curve.bootstrap().spread ** 2 + np.ptp(curve.best_interval) ** 2 / 12)


@pytest.mark.parametrize("target", TARGETS)
def test_accuracy_under_the_target_is_the_maximum_of_the_exact_curve(target):
    scores = draw()
    curve = tau_curve(scores.logits, scores.labels, COUNTS, target)
    choice = LogitAdjustment.fit(scores, COUNTS, target).choice
    assert (choice.criterion, choice.optimum) == ("accuracy_under_target", curve.best_tau)
    assert choice.value == pytest.approx(curve.at(choice.tau))
    error = error_of_best(curve)
    low, high = curve.bootstrap().interval()
    assert choice.low == pytest.approx(min(low, curve.best_tau - NORMAL * error))
    assert choice.high == pytest.approx(max(high, curve.best_tau + NORMAL * error))
    offset = np.log(target) - np.log(PI)
    assert (choice.tau, choice.trust) == pytest.approx(
        held_by_hand(curve.best_tau, error, offset.std())
    )
    weights = np.array(target) / np.sum(target)
    right = curve.intervals.contain(choice.tau).astype(float)
    wanted = error_by_hand([right[scores.labels == y] for y in range(4)], weights)
    assert choice.standard_error == pytest.approx(wanted)


@pytest.mark.parametrize("family", FAMILIES)
def test_calibration_error_is_the_lowest_of_all_that_were_looked_at(family):
    scores = draw(samples=2000)
    moved, fit = FAMILIES[family]
    move, weights = moved(scores, [1] * 4), weights_by_hand(scores.labels, [1] * 4)
    fitted = fit(scores, "ece", None)

    def best_of(taus):
        return min(taus, key=lambda tau: ece(move(tau), scores.labels, weights))

    coarse = best_of(np.arange(41) / 20)
    fine = coarse + np.arange(-9, 10) / 200
    assert fitted.choice.optimum == pytest.approx(best_of(fine[(fine >= 0) & (fine <= 2)]))
    assert fitted.choice.value == pytest.approx(ece(move(fitted.tau), scores.labels, weights))
    assert 0.002 < fitted.choice.standard_error < 0.05
    assert fitted.choice.low is fitted.choice.high is None


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_value_is_what_the_metrics_say_of_the_adjusted_scores(criterion, dtype):
    scores = draw(dtype=dtype)
    fitted = LogitAdjustment.fit(scores, COUNTS, [1, 2, 3, 4], criterion)
    metrics = evaluate(fitted(scores), target=[1, 2, 3, 4])
    assert fitted.choice.value == pytest.approx(metrics[criterion], rel=1e-5)


def test_a_fitted_tau_carries_the_target_and_a_given_one_what_lies_on_the_way():
    scores, target = draw(), Prior.of([1, 2, 3, 4])
    fitted = LogitAdjustment.fit(scores, COUNTS, target)
    given = LogitAdjustment(COUNTS, fitted.tau, target)
    assert fitted(scores).carried == target
    way = PI ** (1 - given.tau) * target.probs**given.tau
    np.testing.assert_allclose(given(scores).carried.probs, way / way.sum())
    np.testing.assert_array_equal(fitted(scores).logits, given(scores).logits)
    assert given.choice is None


def world_scores(world, repeats=1):
    """Every sample of the world, its logits the exact posterior; classes may be repeated."""
    points, classes = torch.tensor(np.indices(world.table.shape).reshape(2, -1))
    times = (world.table * torch.as_tensor(repeats)).flatten()
    rows = world.posterior(world.prior).log()[points.repeat_interleave(times)]
    return Scores(rows, labels=classes.repeat_interleave(times), carried=world.prior)


@pytest.mark.parametrize("criterion", ["nll", "brier"])
@pytest.mark.parametrize("target", [None, [1, 2, 3, 4]])
@pytest.mark.parametrize("repeats", [1, [1, 2, 5, 30]])
def test_where_the_model_is_exact_a_proper_score_finds_one_whatever_the_held_out_prior(
    criterion, target, repeats
):
    world = FiniteWorld.long_tailed()
    scores = world_scores(world, repeats)
    fitted = LogitAdjustment.fit(scores, world.prior, target, criterion)
    assert fitted.tau == pytest.approx(1.0, abs=1e-6)


def test_a_fitted_adjustment_keeps_the_contract_of_adjusters():
    scores = world_scores(FiniteWorld.long_tailed())
    check_adjuster(lambda prior: LogitAdjustment.fit(scores, prior, criterion="nll"))
    check_adjuster(lambda prior: WeightNormalization.fit(scores, prior.probs, criterion="brier"))


def test_the_interval_of_a_proper_score_covers_the_true_tau_at_least_as_often_as_it_says():
    world = FiniteWorld.long_tailed()
    everything = world_scores(world)
    choices, generator = [], torch.Generator().manual_seed(0)
    for _ in range(150):
        # As many of each class as there are, drawn with replacement from the population.
        drawn = torch.cat(
            [
                at[torch.randint(len(at), (4 * len(at),), generator=generator)]
                for at in ((everything.labels == y).nonzero().flatten() for y in range(4))
            ]
        )
        sample = replace(
            everything, logits=everything.logits[drawn], labels=everything.labels[drawn]
        )
        choices.append(LogitAdjustment.fit(sample, world.prior, criterion="nll").choice)
    assert sum(choice.low < 1 < choice.high for choice in choices) >= 0.95 * 150
    widths = [(choice.high - choice.low) / (2 * 1.96) for choice in choices]
    assert 1 < np.mean(widths) / np.std([choice.optimum for choice in choices]) < 3


@pytest.mark.parametrize("criterion", CRITERIA)
def test_weights_within_classes_are_repetitions(criterion):
    scores = draw(samples=60)
    times = 1 + np.random.default_rng(5).integers(0, 3, 60)
    weighted = LogitAdjustment.fit(scores, COUNTS, criterion=criterion, weights=times).choice
    repeated = replace(
        scores,
        logits=np.repeat(scores.logits, times, axis=0),
        labels=np.repeat(scores.labels, times),
    )
    plain = LogitAdjustment.fit(repeated, COUNTS, criterion=criterion).choice
    assert weighted.optimum == pytest.approx(plain.optimum, abs=1e-7)
    assert weighted.tau == pytest.approx(plain.tau, abs=1e-7)
    assert weighted.value == pytest.approx(plain.value, abs=1e-7)


def test_the_samples_behind_the_whole_and_the_tail_are_counted_as_kish_does():
    scores = draw()
    choice = LogitAdjustment.fit(scores, COUNTS).choice
    counts = np.bincount(scores.labels)
    assert choice.effective_samples == pytest.approx(16 / np.sum(1 / counts))
    assert choice.effective_tail == pytest.approx(4 / np.sum(1 / counts[2:]))
    heads = scores.labels < 2
    head = replace(scores, logits=scores.logits[heads], labels=scores.labels[heads])
    assert LogitAdjustment.fit(head, COUNTS).choice.effective_tail == 0.0


def test_weight_normalisation_knows_its_tail_from_counts_or_the_carried_prior():
    scores = draw()
    by_counts = WeightNormalization.fit(replace(scores, carried=None), NU).choice
    by_prior = WeightNormalization.fit(replace(scores, counts=None), NU).choice
    unknown = WeightNormalization.fit(replace(scores, counts=None, carried=None), NU).choice
    assert by_counts.effective_tail == by_prior.effective_tail > 1
    assert unknown.effective_tail is None


def test_what_the_scores_carry_is_the_prior_that_is_not_given():
    named, unnamed = LogitAdjustment.fit(draw(), COUNTS), LogitAdjustment.fit(draw())
    assert unnamed.choice == named.choice
    assert unnamed.prior == named.prior == Prior.of(COUNTS)


def test_a_fitted_adjustment_is_a_frozen_value():
    fitted = LogitAdjustment.fit(draw())
    with pytest.raises(FrozenInstanceError):
        fitted.tau = 2.0
    with pytest.raises(FrozenInstanceError):
        fitted.choice.tau = 2.0


@pytest.mark.parametrize("criterion", CRITERIA)
def test_if_no_tau_is_better_than_another_it_stays_one(criterion):
    scores = replace(draw(), carried=Prior.uniform(4))
    fitted = LogitAdjustment.fit(scores, [1, 1, 1, 1], criterion=criterion)
    assert fitted.tau == 1.0


@pytest.mark.parametrize("label", [0, 3])
@pytest.mark.parametrize("criterion", ["accuracy_under_target", "nll", "brier"])
def test_a_minimum_at_infinity_gives_a_finite_tau_where_nothing_more_is_gained(label, criterion):
    scores = Scores(np.zeros((2, 4)), labels=[label] * 2, carried=COUNTS)
    fitted = LogitAdjustment.fit(scores, COUNTS, criterion=criterion)
    optimum = fitted.choice.optimum
    assert abs(optimum) < 100
    assert (optimum > 0) == (label == 3)
    reached = evaluate(LogitAdjustment(COUNTS, optimum)(scores))
    if criterion != "accuracy_under_target":
        assert reached[criterion] < 1e-9
        assert fitted.tau == pytest.approx(1, abs=1e-9)  # where it ends two samples do not tell
        return
    assert reached["accuracy"] == 1
    length = np.log(PI).std()
    if label == 3:  # both samples are right, and know no more than two can
        least = 2 / (np.sqrt(2) * np.ptp(np.log(PI)))
        assert optimum == fitted.tau == 1
        assert fitted.choice.trust == pytest.approx(held_by_hand(1, least, length)[1])
    else:  # in some replicates neither is drawn, and 1 is as good
        drawn = 2 * np.sqrt(np.exp(-2) * (1 - np.exp(-2)))
        assert optimum == pytest.approx(-1)
        assert fitted.tau == pytest.approx(held_by_hand(-1, drawn, length)[0], abs=0.1)


def separated(seed, separation=6.0, scale=1.0):
    """20 samples of each of five classes far apart, by a model for which tau = 1 is exact."""
    rng, prior = np.random.default_rng(seed), Prior.of(100.0 ** -np.linspace(0, 1, 5))
    means = separation / np.sqrt(5) * rng.normal(size=(5, 5))
    labels = np.repeat(np.arange(5), 20)
    features = means[labels] + rng.normal(size=(100, 5))
    logits = features @ means.T - 0.5 * np.square(means).sum(axis=1) + prior.log
    return Scores(scale * logits, labels, carried=prior)


def test_tau_is_one_where_nothing_speaks_against_it():
    held = []
    for seed in range(20):
        scores = separated(seed)
        low, high = tau_curve(scores.logits, scores.labels, scores.carried).best_interval
        choice = LogitAdjustment.fit(scores, scores.carried).choice
        held.append(low <= 1 < high)
        assert (choice.tau == choice.optimum == 1) == held[-1]
        assert abs(choice.tau - 1) < 1
    assert 10 <= sum(held) < 20


def test_scores_that_no_tau_changes_do_not_determine_it():
    scores = separated(0, scale=100)
    choice = LogitAdjustment.fit(scores, scores.carried).choice
    assert (choice.tau, choice.is_determined) == (1, False)
    assert choice.low < -100
    assert choice.high > 100
    always = Scores(np.array([[5.0, 1.0], [4.0, 1.0]]), [0, 0], carried=[1, 1])
    for nu in ([1.0, 1.0], [1.0, 1.0 + 1e-6]):
        fitted = WeightNormalization.fit(always, nu)
        assert fitted.tau == 1


def test_a_wide_best_piece_away_from_one_holds_tau_back():
    # In units of log 9 the first class is right below 4 and the second from 2 on.
    logits = np.log(9) * np.array([[4.0, 0.0], [2.0, 0.0]]).repeat(50, axis=0)
    scores = Scores(logits, np.repeat([0, 1], 50), carried=[9, 1])
    choice = LogitAdjustment.fit(scores, [9, 1]).choice
    assert choice.optimum == pytest.approx(3)
    tau, trust = held_by_hand(3, 2 / np.sqrt(12), np.log(9) / 2)
    assert (choice.tau, choice.trust) == pytest.approx((tau, trust))
    assert (choice.low, choice.high) == pytest.approx(
        (3 - NORMAL * 2 / np.sqrt(12), 3 + NORMAL * 2 / np.sqrt(12))
    )


def test_the_tau_of_weight_normalisation_is_let_go_as_far_as_a_deviation_of_two():
    scores = draw(samples=60)
    choice = WeightNormalization.fit(scores, NU).choice
    curve = weight_norm_curve(scores.logits, scores.labels, NU)
    length = (np.log(NU) * scores.logits).std(axis=1).mean()
    error = error_of_best(curve)
    assert error > 0.3
    assert (choice.tau, choice.trust) == pytest.approx(
        held_by_hand(curve.best_tau, error, length, spread=2)
    )


def near_worlds():
    """Samples of a model that carries the counts, to move to counts a little off them."""
    for seed in range(5):
        scores = draw(seed, samples=200)
        yield scores, COUNTS * np.random.default_rng(seed).uniform(0.97, 1.03, 4)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_tau_stays_near_one_where_target_and_carried_prior_are_near_each_other(criterion):
    optima = []
    for scores, target in near_worlds():
        fitted = LogitAdjustment.fit(scores, COUNTS, target, criterion)
        assert fitted.tau == pytest.approx(1, abs=0.2)
        assert not fitted.choice.is_determined
        optima.append(fitted.choice.optimum)
    assert np.ptp(optima) > (1 if criterion == "ece" else 5)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_the_tau_of_equal_scales_stays_near_one_too(criterion):
    nu = [1.0, 1.01, 0.99, 1.005]
    choices = [
        WeightNormalization.fit(scores, nu, criterion=criterion).choice
        for scores, _ in near_worlds()
    ]
    assert np.ptp([choice.optimum for choice in choices]) > (1 if criterion == "ece" else 5)
    assert all(choice.tau == pytest.approx(1, abs=0.7) for choice in choices)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_many_samples_and_a_long_move_leave_tau_at_its_optimum(criterion):
    choice = LogitAdjustment.fit(draw(samples=20_000), COUNTS, criterion=criterion).choice
    assert choice.is_determined
    assert choice.tau == pytest.approx(choice.optimum, abs=0.02)
    assert choice.tau > 1.2  # the model is overconfident


def test_a_class_for_each_sample_does_not_make_tau_certain():
    rng = np.random.default_rng(0)
    labels, counts = np.arange(30), np.linspace(40, 20, 30)
    logits = rng.normal(size=(30, 30)) + np.log(counts) + 2 * np.eye(30)
    near = counts * rng.uniform(0.95, 1.05, 30)
    fitted = LogitAdjustment.fit(Scores(logits, labels, carried=counts), counts, near)
    assert fitted.tau == pytest.approx(1, abs=0.3)


def test_classes_that_the_target_rules_out_do_not_count():
    scores = draw()
    target = Prior.of([1, 0, 1, 1], zeros="keep")
    kept = np.array([0, 2, 3])
    inside = np.isin(scores.labels, kept)
    smaller = Scores(
        scores.logits[inside][:, kept],
        np.searchsorted(kept, scores.labels[inside]),
        carried=COUNTS[kept],
    )
    for criterion in CRITERIA:
        one = LogitAdjustment.fit(scores, COUNTS, target, criterion)
        other = LogitAdjustment.fit(smaller, COUNTS[kept], criterion=criterion)
        assert one.tau == pytest.approx(other.tau, rel=1e-6)
        assert one.choice.value == pytest.approx(other.choice.value, rel=1e-9)
        assert one(scores).carried == target


def test_normalised_scores_still_carry_no_known_prior():
    fitted = WeightNormalization.fit(draw(), NU)
    assert fitted(draw()).carried is None


def test_torch_and_numpy_choose_the_same():
    scores = draw()
    tensors = Scores(torch.tensor(scores.logits), torch.tensor(scores.labels), carried=COUNTS)
    for criterion in CRITERIA:
        fits = [LogitAdjustment.fit(s, COUNTS, criterion=criterion) for s in (scores, tensors)]
        assert fits[0].choice == fits[1].choice
        assert isinstance(fits[1](tensors).logits, torch.Tensor)


RULED_OUT = Scores(np.array([[0.0, 0, 0, -np.inf]]), [3], carried=COUNTS)


@pytest.mark.parametrize(
    ("fit", "error", "sentence"),
    [
        (lambda: LogitAdjustment.fit(replace(draw(), split="test"), COUNTS), ValueError, "test"),
        (
            lambda: WeightNormalization.fit(replace(draw(), split="test"), NU),
            ValueError,
            r"not be fitted.*split='test'",
        ),
        (lambda: LogitAdjustment.fit(replace(draw(), labels=None), COUNTS), ValueError, "no label"),
        (
            lambda: LogitAdjustment.fit(replace(draw(), carried=None), COUNTS),
            UnknownPriorError,
            "measure_carried",
        ),
        (lambda: LogitAdjustment.fit(Scores([[0.0]], [0])), UnknownPriorError, "measure_carried"),
        (
            lambda: LogitAdjustment.fit(LogitAdjustment(COUNTS)(draw()), COUNTS),
            ValueError,
            "count the prior twice",
        ),
        (
            lambda: LogitAdjustment.fit(LogitAdjustment.fit(draw())(draw()), COUNTS),
            ValueError,
            "count the prior twice",
        ),
        (
            lambda: LogitAdjustment.fit(draw(), COUNTS, criterion="accuracy"),
            ValueError,
            '"ece", got .accuracy.',
        ),
        (
            lambda: LogitAdjustment.fit(RULED_OUT, COUNTS, criterion="nll"),
            ValueError,
            "true class 3",
        ),
        (
            lambda: LogitAdjustment.fit(draw(), COUNTS, weights=[1.0, 2.0]),
            ValueError,
            "each of 300 samples",
        ),
        (
            lambda: LogitAdjustment.fit(draw(), COUNTS, weights=np.full(300, -1.0)),
            ValueError,
            "none negative",
        ),
        (
            lambda: LogitAdjustment.fit(draw(), COUNTS, weights=np.zeros(300)),
            ValueError,
            "all zero",
        ),
        (lambda: LogitAdjustment(COUNTS, target=[1, 1]), ValueError, "target prior has 2"),
        (lambda: WeightNormalization.fit(draw(), [1.0]), ValueError, "nu has 1 classes"),
        (
            lambda: WeightNormalization.fit(draw(), NU, target=[1, 1]),
            ValueError,
            "target prior has 2",
        ),
    ],
)
def test_what_cannot_be_fitted_is_refused_with_one_clear_sentence(fit, error, sentence):
    with pytest.raises(error, match=sentence):
        fit()


@pytest.mark.parametrize("criterion", ["accuracy_under_target", "nll"])
def test_tau_of_logits_that_a_temperature_made_small_is_small_too(criterion):
    """One of a hundredth would be lost if it were held near 1 by a hundredth of the way."""
    scores = draw(samples=2000)
    small = replace(scores, logits=scores.logits / 200)
    choice = LogitAdjustment.fit(small, COUNTS, criterion=criterion).choice
    optimum = evaluate(LogitAdjustment(COUNTS, choice.optimum)(small))["balanced_accuracy"]
    used = evaluate(LogitAdjustment(COUNTS, choice.tau)(small))["balanced_accuracy"]
    assert used > optimum - (0.01 if criterion == "accuracy_under_target" else 0.03)
    assert choice.low <= choice.tau <= choice.high
