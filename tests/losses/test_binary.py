"""Losses on yes/no labels: their values by loops, and what weights and sampling make of odds."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from longtail import LabelOdds, losses, retarget
from longtail.testing import LabelWorld

ODDS = LabelOdds.from_counts([40, 12, 3], 100)


def batch(seed=0):
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(7, 3, generator=generator, dtype=torch.float64)
    return logits, (torch.rand(7, 3, generator=generator) < 0.5).long()


def adjusted(z, y, label):
    p = [0.4, 0.12, 0.03][label]
    s = z + math.log(p / (1 - p))  # carried is even, whose log odds are 0
    return math.log(1 + math.exp(-s)) if y else math.log(1 + math.exp(s))


def focal(z, y, label):
    p = 1 / (1 + math.exp(-z))
    right = p if y else 1 - p
    return (0.25 if y else 0.75) * 2 * (1 - right) ** 1.5 * -math.log(right)


def asymmetric(z, y, label):
    p = 1 / (1 + math.exp(-z))
    q = max(p - 0.05, 0)
    return (1 - p) ** 0.5 * -math.log(p) if y else q**4 * -math.log(1 - q)


def class_balanced(z, y, label):
    n = [40, 12, 3][label]
    effective = [1 / (1 - 0.9**k) for k in (n, 100 - n)]
    weight = 2 * effective[0 if y else 1] / sum(effective)
    p = 1 / (1 + math.exp(-z))
    return weight * -math.log(p if y else 1 - p)


BY_HAND = {
    "adjusted": (losses.BinaryLogitAdjusted(ODDS, reduction="none"), adjusted),
    "focal": (losses.BinaryFocal(ODDS, 1.5, 0.25, reduction="none"), focal),
    "asymmetric": (losses.Asymmetric(ODDS, 0.5, reduction="none"), asymmetric),
    "class-balanced": (losses.ClassBalancedBinary(ODDS, 0.9, reduction="none"), class_balanced),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_a_loss_is_what_its_formula_says_number_by_number(name):
    loss, by_hand = BY_HAND[name]
    logits, labels = batch()
    if name == "class-balanced":  # moved to what it carries: the identity, but for rounding
        assert loss.shift.abs().max() == 0
    expected = [
        [by_hand(z, y, k) for k, (z, y) in enumerate(zip(*row, strict=True))]
        for row in zip(logits.tolist(), labels.tolist(), strict=True)
    ]
    got = loss(logits, labels)
    torch.testing.assert_close(got, torch.tensor(expected, dtype=got.dtype), rtol=1e-10, atol=1e-12)


def test_tau_zero_is_the_binary_cross_entropy_of_torch_also_with_pos_weight():
    logits, labels = batch()
    weight = torch.tensor([2.0, 5.0, 0.3], dtype=torch.float64)
    expected = F.binary_cross_entropy_with_logits(logits, labels.double(), pos_weight=weight)
    loss = losses.BinaryLogitAdjusted(ODDS, tau=0, pos_weight=weight)
    torch.testing.assert_close(loss(logits, labels), expected)
    assert loss.carried == ODDS.reweighted([2.0, 5.0, 0.3])


def test_one_label_may_come_as_a_vector():
    logits, labels = batch()
    loss = losses.BinaryLogitAdjusted(ODDS.taken([1]), reduction="none")
    column = loss(logits[:, 1:2], labels[:, 1:2])
    torch.testing.assert_close(loss(logits[:, 1], labels[:, 1]), column.squeeze(1))


def test_the_binary_loss_is_the_softmax_loss_of_zero_and_z():
    logits, labels = batch()
    binary = losses.BinaryLogitAdjusted(ODDS, tau=0.7, reduction="none")(logits, labels)
    for label, p in enumerate(ODDS.probs):
        pair = torch.stack([torch.zeros(7, dtype=torch.float64), logits[:, label]], dim=1)
        softmax = losses.LogitAdjusted([1 - p, p], tau=0.7, reduction="none")
        torch.testing.assert_close(softmax(pair, labels[:, label]), binary[:, label])


def test_what_a_sampled_training_set_carries_is_what_sampling_makes_of_the_odds():
    world = LabelWorld.drawn(5, labels=1)
    table = world.table.clone()
    table[:, 1] *= 4  # every positive four times
    sampled = LabelWorld(table)
    assert sampled.odds.is_close(world.odds.sampled(positives=4.0))
    minimiser = sampled.minimise(losses.BinaryLogitAdjusted(world.odds, tau=0))
    back = retarget(minimiser, world.odds.sampled(positives=4.0), world.odds)
    torch.testing.assert_close(back.sigmoid(), world.posterior(world.odds))


def test_correlated_labels_that_change_together_are_not_reached_by_moving_each():
    world, target = LabelWorld.long_tailed(), LabelOdds.of([0.1, 0.6, 0.5])
    together = world.after(target)
    assert together.odds.is_close(target)
    assert (world.posterior(target) - together.posterior(target)).abs().max() > 0.05
    np.testing.assert_allclose(  # what stays is p(x|y_1, ..., y_L)
        together.table / together.table.sum(0),
        world.table.double() / world.table.sum(0),
        rtol=1e-9,
    )


def test_labels_seen_apart_are_reached_by_moving_each():
    world, target = LabelWorld.apart([0.3, 0.1, 0.02]), LabelOdds.of([0.1, 0.6, 0.5])
    reached, there = world.posterior(target), world.after(target).posterior(target)
    torch.testing.assert_close(reached, there, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: losses.BinaryLogitAdjusted(ODDS, 1.0, carried=[0.5] * 3), "by carried or by tau"),
        (lambda: losses.ClassBalancedBinary([0.1, 0.2]), "need counts"),
        (lambda: losses.BinaryLogitAdjusted([0.0, 0.2]), "above 0 and below 1"),
        (lambda: losses.BinaryLogitAdjusted(ODDS, carried=[0.5]), "train has 3 labels"),
        (lambda: losses.BinaryFocal(ODDS, alpha=1.0), "nothing would count"),
        (lambda: losses.BinaryLogitAdjusted(ODDS)(np.zeros((2, 3)), np.zeros((2, 3))), "tensors"),
    ],
)
def test_what_cannot_be_is_refused_with_a_word(make, words):
    with pytest.raises((ValueError, TypeError), match=words):
        make()
