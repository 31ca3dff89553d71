"""How far the curve moves with its samples: against drawing whole rows, and the closed form."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from longtail import Prior
from longtail.posthoc import tau_curve
from longtail.posthoc.tau.curve import SingleDraws, Steps, curve_along, draw_curves
from longtail.posthoc.tau.paths import Shift
from longtail.posthoc.validation import Weighted
from longtail.stats import Replicates, alike

COUNTS = np.array([300, 60, 15, 5])
GOAL = Prior.uniform(4)
TARGET = np.array([0.1, 0.2, 0.3, 0.4])


def draw(samples=300, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.choice(4, samples, p=[0.4, 0.3, 0.2, 0.1])
    logits = rng.normal(size=(samples, 4)) + np.log(COUNTS / COUNTS.sum())
    logits[np.arange(samples), labels] += 1.5
    return logits, labels


def closed_form(curve, labels, tau, target):
    total = 0.0
    for y, recall in enumerate(curve.recalls(tau)):
        total += target[y] ** 2 * recall * (1 - recall) / np.sum(labels == y)
    return np.sqrt(total)


@pytest.mark.parametrize("target", [np.full(4, 0.25), TARGET])
def test_the_standard_error_is_the_closed_form_on_every_piece(target):
    logits, labels = draw()
    curve = tau_curve(logits, labels, COUNTS, target)
    error = curve.bootstrap(replicates=1500).standard_error
    assert len(error) == len(curve.accuracy)
    middles = (curve.taus[1:] + curve.taus[:-1]) / 2
    wanted = [closed_form(curve, labels, tau, target) for tau in middles]
    assert np.median(wanted) > 0.02
    np.testing.assert_allclose(error[1:-1], wanted, rtol=0.12, atol=1e-9)


def test_a_replicate_is_the_curve_of_the_rows_drawn():
    logits, labels = draw(80)
    curve = tau_curve(logits, labels, COUNTS)
    times = Replicates(labels, seed=3).draw()
    steps, weights = Steps.of(curve.intervals), curve.weights
    values = steps.values(weights * times)
    again = tau_curve(
        np.repeat(logits, times.astype(int), axis=0), np.repeat(labels, times.astype(int)), COUNTS
    )
    for k, tau in enumerate(curve.taus[:-1]):
        assert values[k + 1] == pytest.approx(again.at((tau + curve.taus[k + 1]) / 2))


def test_the_best_tau_of_a_replicate_does_not_tell_weights_from_repetitions_in_another_order():
    logits, labels = draw(80)
    times = 1 + np.arange(80) % 3
    again = np.random.default_rng(0).permutation(np.repeat(np.arange(80), times))
    curves = [
        curve_along(path, Weighted.under(GOAL, rows, known, within), GOAL)
        for path in [Shift(-Prior.of(COUNTS).log)]
        for rows, known, within in [
            (logits, labels, times),
            (logits[again], labels[again], None),
        ]
    ]
    np.testing.assert_allclose(*(curve.bootstrap(20).best_taus for curve in curves), rtol=1e-9)


def test_the_best_tau_of_a_replicate_is_that_of_the_rows_drawn():
    logits, labels = draw(80)
    curve = tau_curve(logits, labels, COUNTS)
    steps, weights = Steps.of(curve.intervals), curve.weights
    which = alike(labels, steps.opens, steps.closes)  # samples that no tau tells apart
    found = []
    for seed in range(5):
        drawn = np.random.default_rng(seed).integers(0, 4, which.max() + 1)
        chance = SimpleNamespace(poisson=lambda times, drawn=drawn: drawn)
        found.append(SingleDraws(steps, labels, weights, np.ones(80)).best(chance))
        times = (drawn / np.bincount(which))[which]
        at = np.flatnonzero(times)
        parts = (logits, labels, weights, weights * times, times)
        rows = Weighted(*(part[at] for part in parts))
        again = curve_along(Shift(-Prior.of(COUNTS).log), rows, GOAL)
        assert found[-1] == pytest.approx(again.best_tau, rel=1e-9)
    assert len(set(found)) > 2


def test_a_best_tau_that_a_single_sample_speaks_for_is_not_certain():
    # In units of log 9 all are right from 1.5 to 1.9, and all but the last one from 0.5 on.
    logits = np.log(9) * np.array([[1.9, 0.0]] * 50 + [[0.5, 0.0]] * 50 + [[1.5, 0.0]])
    curve = tau_curve(logits, np.repeat([0, 1], [50, 51]), [9, 1])
    assert curve.best_tau == pytest.approx(1.7)
    missing = np.exp(-1)  # as often it is not drawn, and 1 is as good
    spread = curve.bootstrap(1000).spread
    assert spread == pytest.approx(0.7 * np.sqrt(missing * (1 - missing)), rel=0.1)


def test_a_class_with_a_single_sample_is_not_taken_for_certain():
    labels = np.arange(40)
    steps = Steps(np.array([0.0, 2.0]), np.repeat([0, 1], 20), np.full(40, 3))
    error, _ = draw_curves(steps, labels, np.full(40, 1 / 40), np.ones(40), replicates=50, seed=0)
    assert error[0] == pytest.approx(np.sqrt(0.25 / 40))
    logits = np.random.default_rng(0).normal(size=(40, 40))
    curve = tau_curve(logits, labels, np.linspace(40, 10, 40))
    assert curve.bootstrap(50).spread > 0.1


def test_every_class_is_drawn_as_often_as_it_has_samples():
    labels = np.array([3, 0, 3, 3, 1, 0, 3])
    drawn = Replicates(labels, seed=0)
    counts = [np.bincount(labels, drawn.draw()).tolist() for _ in range(20)]
    assert counts == [[2.0, 1.0, 0.0, 4.0]] * 20
    assert len({tuple(drawn.draw()) for _ in range(20)}) > 5


def test_classes_keep_their_weight_where_samples_weigh_differently():
    labels = np.array([0, 0, 1, 1])
    steps = Steps(np.array([]), np.zeros(4, int), np.ones(4, int))  # all right at every tau
    weights = np.array([0.45, 0.05, 0.25, 0.25])
    error, best = draw_curves(steps, labels, weights, np.ones(4), replicates=30, seed=0)
    np.testing.assert_allclose(error, 0, atol=1e-12)
    assert (best == 1.0).all()


def test_the_same_seed_gives_the_same_draws_and_another_others():
    curve = tau_curve(*draw(), COUNTS)
    one, same, other = (curve.bootstrap(20, seed=s).best_taus for s in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()


def test_the_interval_of_the_best_tau_holds_it_and_shrinks_with_samples():
    widths = []
    for samples in (200, 20_000):
        curve = tau_curve(*draw(samples), COUNTS)
        low, high = curve.bootstrap().interval()
        assert low < curve.best_tau < high
        inner = curve.bootstrap().interval(0.5)
        assert low <= inner[0] <= inner[1] <= high
        widths.append(high - low)
    assert widths[1] < widths[0] / 2


def test_torch_gives_torch():
    logits, labels = draw()
    drawn = tau_curve(torch.tensor(logits), labels, COUNTS).bootstrap(3)
    assert isinstance(drawn.standard_error, torch.Tensor)
    assert isinstance(drawn.best_taus, torch.Tensor)
    assert len(drawn.best_taus) == 3
    with pytest.raises(ValueError, match="level is the share"):
        drawn.interval(95)
