"""Finite worlds: their posteriors are Bayes' rule, their minimisers exact."""

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from longtail import Prior
from longtail.testing import FiniteWorld


def test_the_posterior_is_bayes_rule_by_a_loop():
    world = FiniteWorld.long_tailed()
    target = [0.1, 0.2, 0.3, 0.4]
    n = world.table.tolist()
    totals = [sum(row[y] for row in n) for y in range(4)]
    for x, row in enumerate(n):
        joint = [target[y] * row[y] / totals[y] for y in range(4)]
        expected = torch.tensor([j / sum(joint) for j in joint], dtype=torch.float64)
        assert_close(world.posterior(Prior.of(target))[x], expected)


def test_under_its_own_prior_the_posterior_is_the_share_of_each_class():
    world = FiniteWorld.drawn(0)
    shares = world.table / world.table.sum(dim=1, keepdim=True)
    assert_close(world.posterior(world.prior), shares.double())


def test_the_samples_are_the_table():
    world = FiniteWorld.drawn(1)
    points, labels = world.samples()
    again = torch.zeros_like(world.table)
    again.index_put_((points, labels), torch.ones_like(points), accumulate=True)
    assert torch.equal(again, world.table)


def test_no_decision_beats_the_balanced_one():
    world = FiniteWorld(torch.tensor([[5, 1, 2], [1, 3, 2]]))
    best = world.balanced_error(world.balanced_decisions())
    every = [world.balanced_error(torch.tensor([i, j])) for i in range(3) for j in range(3)]
    assert best == pytest.approx(min(every))


def test_the_minimiser_of_cross_entropy_is_the_log_posterior_to_the_last_digits():
    world = FiniteWorld.long_tailed()
    probs = torch.softmax(world.minimise(F.cross_entropy), dim=1)
    assert_close(probs, world.posterior(world.prior), rtol=0, atol=1e-13)


def test_a_loss_without_a_minimum_is_reported():
    with pytest.raises(RuntimeError, match="no minimum was found"):
        FiniteWorld.long_tailed().minimise(lambda logits, _: (logits + 0 * logits**2).sum())


def test_a_drawn_world_is_the_same_for_the_same_seed():
    assert torch.equal(FiniteWorld.drawn(3).table, FiniteWorld.drawn(3).table)
    assert not torch.equal(FiniteWorld.drawn(3).table, FiniteWorld.drawn(4).table)


@pytest.mark.parametrize("table", [[[1.0, 2.0]], [[1, 0]], [1, 2]])
def test_a_table_that_is_no_population_is_refused(table):
    with pytest.raises(ValueError, match="whole numbers above zero"):
        FiniteWorld(torch.tensor(table))


def test_the_posterior_of_smoothed_labels_is_that_of_samples_with_a_class_at_random():
    world = FiniteWorld.long_tailed()
    # Of 40 copies of a sample 36 keep their class, and one more goes to each of four: ε = 0.1.
    noisy = FiniteWorld(36 * world.table + world.table.sum(dim=1, keepdim=True))
    for target in (Prior.uniform(4), world.prior, world.prior.smoothed(0.1)):
        got = world.posterior(target, label_smoothing=0.1)
        torch.testing.assert_close(got, noisy.posterior(target), rtol=1e-12, atol=0)
    assert noisy.prior.is_close(world.prior.smoothed(0.1), 1e-12)
