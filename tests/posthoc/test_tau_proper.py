"""Derivatives of the proper scores by τ, against autograd through the moved logits."""

import numpy as np
import pytest
import torch

from longtail.posthoc.tau.paths import Scale, Shift
from longtail.posthoc.tau.proper import BRIER, NLL, lowest, places_of_change, scores_at
from longtail.posthoc.tau.weighted import Weighted

OFFSET = torch.tensor([-1.5, 0.2, 0.9, 2.0], dtype=torch.float64)


def samples(rows=12, ruled_out=True):
    generator = torch.Generator().manual_seed(0)
    logits = 2 * torch.randn(rows, 4, generator=generator, dtype=torch.float64)
    labels = torch.arange(rows) % 4
    if ruled_out:
        logits[0, 2] = -torch.inf
    return Weighted(
        logits, labels, torch.ones(rows).double(), torch.full((rows,), 1 / rows).double()
    )


def differentiated(path, proper, tau):
    """Value, slope and bend of every sample, by autograd."""
    held = samples()
    at = torch.tensor(tau, dtype=torch.float64, requires_grad=True)
    if isinstance(path, Shift):
        moved = held.logits + at * OFFSET
    else:
        moved = held.logits * torch.exp(-at * OFFSET)
    columns = []
    for row, label in zip(moved, held.labels, strict=True):
        value = proper.values(row[None], label[None])[0]
        (slope,) = torch.autograd.grad(value, at, create_graph=True)
        (bend,) = torch.autograd.grad(slope, at, retain_graph=True)
        columns.append([float(value), float(slope), float(bend)])
    return np.array(columns).T


@pytest.mark.parametrize("tau", [-0.7, 0.0, 1.3])
@pytest.mark.parametrize("proper", [NLL, BRIER], ids=["nll", "brier"])
@pytest.mark.parametrize("path", [Shift(OFFSET), Scale(OFFSET)], ids=["shift", "scale"])
def test_slope_and_bend_are_the_derivatives(path, proper, tau):
    found = scores_at(tau, samples(), path, proper)
    wanted = differentiated(path, proper, tau)
    finite = np.isfinite(wanted).all(axis=0)  # autograd gives up on -inf times a factor
    assert finite.sum() >= 11
    np.testing.assert_allclose(torch.stack(found).numpy()[:, finite], wanted[:, finite], atol=1e-10)
    assert torch.stack(found).isfinite().all()


def test_the_log_loss_is_convex_along_a_shift():
    taus = np.linspace(-3, 3, 61)
    values = [float(scores_at(t, samples(), Shift(OFFSET), NLL).value.mean()) for t in taus]
    assert (np.diff(values, 2) > 0).all()


def test_of_several_valleys_the_deepest_is_found():
    """Two samples pull towards a small τ, one towards a large one, which between them is a hill."""
    offset = torch.tensor([0.0, 8.0], dtype=torch.float64)
    logits = torch.tensor([[4.0, 0.0], [4.0, 0.0], [40.0, 0.0]], dtype=torch.float64)
    labels, path = torch.tensor([1, 1, 0]), Shift(offset)
    weights = torch.tensor([0.3, 0.3, 0.4], dtype=torch.float64)
    held = Weighted(logits, labels, weights, weights)
    grid = np.linspace(-1, 8, 1801)
    values = [held.mean(scores_at(tau, held, path, BRIER).value) for tau in grid]
    valleys = (np.diff(np.sign(np.diff(values))) > 0).sum()
    starts = places_of_change(path.intervals(logits, labels), 15)
    tau = lowest(held, path, BRIER, starts)
    assert valleys >= 1
    assert held.mean(scores_at(tau, held, path, BRIER).value) <= min(values) + 1e-12


def test_the_search_looks_where_predictions_change_whatever_the_scale_of_the_logits():
    held, path = samples(rows=200, ruled_out=False), Shift(OFFSET)
    places = places_of_change(path.intervals(held.logits, held.labels), 9)
    wider = places_of_change(path.intervals(50 * held.logits, held.labels), 9)
    assert len(places) == 11
    assert 0.0 in places
    assert 1.0 in places
    np.testing.assert_allclose(
        sorted(set(wider) - {0.0, 1.0}), 50 * np.array(sorted(set(places) - {0.0, 1.0}))
    )
    none = path.intervals(
        torch.zeros(1, 4).double() - torch.tensor([0, 0, 0, torch.inf]), held.labels[:1]
    )
    assert places_of_change(none, 9)[0] <= 0.0
