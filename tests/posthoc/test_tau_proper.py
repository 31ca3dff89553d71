"""Derivatives of the proper scores by τ, against autograd through the moved logits."""

import numpy as np
import pytest
import torch

from longtail.posthoc.tau.criteria import (
    BRIER,
    NLL,
    descend,
    lowest,
    places_of_change,
    scores_at,
)
from longtail.posthoc.tau.intervals import Intervals
from longtail.posthoc.tau.paths import Scale, Shift
from longtail.posthoc.validation import Weighted

OFFSET = np.array([-1.5, 0.2, 0.9, 2.0])


def weighted(logits, labels):
    equal = np.full(len(labels), 1 / len(labels))
    return Weighted(logits, labels, equal, equal, np.ones(len(labels)))


def samples(rows=12):
    logits = 2 * np.random.default_rng(0).normal(size=(rows, 4))
    return weighted(logits, np.arange(rows) % 4)


def nll(row, label):
    return torch.logsumexp(row, dim=0) - row[label]


def brier(row, label):
    return (torch.softmax(row, dim=0) - torch.eye(len(row))[label]).square().sum()


PATHS = {
    "shift": (Shift(OFFSET), lambda row, tau: row + tau * torch.tensor(OFFSET)),
    "scale": (Scale(OFFSET), lambda row, tau: row * torch.exp(-tau * torch.tensor(OFFSET))),
}
SCORES = {"nll": (NLL, nll), "brier": (BRIER, brier)}


@pytest.mark.parametrize("tau", [-0.7, 0.0, 1.3])
@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("path", PATHS)
def test_slope_and_bend_are_the_derivatives(path, score, tau):
    (moving, move), (proper, single) = PATHS[path], SCORES[score]
    held = samples()
    found = torch.tensor(np.stack(scores_at(tau, held, moving, proper), axis=1))
    for row, label, numbers in zip(torch.tensor(held.logits), held.labels, found, strict=True):
        at = torch.tensor(tau, dtype=torch.float64, requires_grad=True)
        value = single(move(row, at), label)
        (slope,) = torch.autograd.grad(value, at, create_graph=True)
        (bend,) = torch.autograd.grad(slope, at)
        wanted = torch.stack([value, slope, bend]).detach()
        torch.testing.assert_close(numbers, wanted, atol=1e-11, rtol=1e-11)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("family", [Shift, Scale])
def test_a_class_that_is_ruled_out_is_as_if_it_were_not_there(family, score):
    logits = samples().logits
    logits[:, 3] = -np.inf
    labels, proper = np.arange(12) % 3, SCORES[score][0]
    with_it = scores_at(0.6, weighted(logits, labels), family(OFFSET), proper)
    without = scores_at(0.6, weighted(logits[:, :3], labels), family(OFFSET[:3]), proper)
    np.testing.assert_allclose(with_it, without, rtol=1e-7)


def test_the_log_loss_is_convex_along_a_shift():
    taus = np.linspace(-3, 3, 61)
    values = [scores_at(t, samples(), Shift(OFFSET), NLL).value.mean() for t in taus]
    assert (np.diff(values, 2) > 0).all()


def test_of_several_valleys_the_deepest_is_found():
    # In units of the offset: right above 1, below 3, above 5 and below 7, so twice all but one.
    logits = np.array([[8.0 * t, 0.0] for t in (1, 3, 5, 7)])
    labels, path = np.array([1, 0, 1, 0]), Shift(np.array([0.0, 8.0]))
    for first, last in ((0.3, 0.2), (0.2, 0.3)):
        weights = np.array([0.25, first, last, 0.25])
        held = Weighted(logits, labels, weights, weights, np.ones(4))
        grid = np.linspace(-1, 9, 1001)
        values = np.array([held.mean(scores_at(tau, held, path, BRIER).value) for tau in grid])
        assert (np.diff(np.sign(np.diff(values))) > 0).sum() >= 2
        tau = lowest(held, path, BRIER, places_of_change(path.intervals(logits, labels), 15))
        assert held.mean(scores_at(tau, held, path, BRIER).value) <= min(values) + 1e-12
        assert abs(tau - grid[np.argmin(values)]) < 0.02


def test_the_search_looks_where_predictions_change_whatever_the_scale_of_the_logits():
    held, path = samples(rows=200), Shift(OFFSET)
    places = places_of_change(path.intervals(held.logits, held.labels), 9)
    wider = places_of_change(path.intervals(50 * held.logits, held.labels), 9)
    assert len(places) == 11
    assert 0.0 in places
    assert 1.0 in places
    np.testing.assert_allclose(
        sorted(set(wider) - {0.0, 1.0}), 50 * np.array(sorted(set(places) - {0.0, 1.0}))
    )
    never = Intervals(np.array([np.inf]), np.array([-np.inf]))
    assert places_of_change(never, 9) == [0.0, 1.0]


def point(function, first, second):
    return lambda tau: (float(function(tau)), float(first(tau)), float(second(tau)))


def root(tau):
    return np.sqrt(1 + tau**2)


DESCENTS = {
    # Newton's step from 5 leads to -125, and on from there.
    "overshoots": (point(root, lambda t: t / root(t), lambda t: root(t) ** -3), 5.0, 0.0),
    # Newton's step leads out of the bounds, to the next valley but one.
    "leaves": (point(np.cos, lambda t: -np.sin(t), lambda t: -np.cos(t)), 1.8, np.pi),
    # There is no Newton's step where it bends down.
    "bends down": (point(np.cos, lambda t: -np.sin(t), lambda t: -np.cos(t)), 0.3, np.pi),
    "is there": (point(np.square, lambda t: 2 * t, lambda t: 2.0), 0.0, 0.0),
}


@pytest.mark.parametrize("name", DESCENTS)
def test_a_descent_is_safe_where_newtons_method_is_not(name):
    at, start, wanted = DESCENTS[name]
    low, high = (-np.inf, np.inf) if name == "overshoots" else (-0.1, 4.5)
    assert descend(at, start, low, high) == pytest.approx(wanted, abs=1e-6)


def test_a_descent_that_never_ends_stops_where_nothing_is_gained():
    at = point(lambda t: np.exp(-t), lambda t: -np.exp(-t), lambda t: np.exp(-t))
    assert 20 < descend(at, 1.0, -np.inf, np.inf) < 40
