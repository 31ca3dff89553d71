"""Scores that are no better than those of no model are told."""

from dataclasses import asdict

import numpy as np
import pytest
import torch

from longtail.metrics import Difference
from longtail.report.pages.first_screen import warning as sanity_in_words

LABELS = torch.tensor([0] * 300 + [1] * 60 + [2] * 30 + [3] * 10)


def compared(skill, labels=LABELS, after=None, seed=0):
    """A model of that skill, and what came of it: by default the same."""
    noise = torch.randn(len(labels), 4, generator=torch.Generator().manual_seed(seed))
    before = noise.clone()
    before[torch.arange(len(labels)), labels] += skill
    both = Difference(4)
    both.add(before, before if after is None else after(before), labels)
    return both.sanity


def test_a_model_that_knows_its_classes_is_sane():
    found = compared(skill=5.0)
    assert not (found.near_chance)
    assert not (found.below_largest_class)
    assert found.chance == 0.25
    assert found.largest_class == 0.75
    assert found.accuracy > 0.95


def test_a_model_that_knows_nothing_is_near_chance_and_below_its_largest_class():
    found = compared(skill=0.0)
    assert found.near_chance
    assert found.below_largest_class
    assert asdict(found)["near_chance"] is True


def test_columns_in_another_order_are_told():
    found = compared(skill=5.0, after=lambda logits: logits.roll(1, dims=1))
    assert found.near_chance
    assert not found.below_largest_class  # which is asked of the model, not of the result


def test_always_the_largest_class_is_near_chance_but_not_below_it():
    both = Difference(4)
    constant = torch.tensor([[2.0, 0.0, 0.0, 0.0]]).expand(len(LABELS), 4)
    both.add(constant, constant, LABELS)
    assert both.sanity.near_chance
    assert not both.sanity.below_largest_class


def test_samples_of_one_class_tell_nothing():
    found = compared(skill=0.0, labels=torch.zeros(50, dtype=torch.long))
    assert not (found.near_chance)
    assert not (found.below_largest_class)


@pytest.mark.parametrize(
    ("classes", "accuracy", "near"),
    [(2, 0.54, True), (2, 0.56, False), (100, 0.029, True), (100, 0.031, False)],
)
def test_near_is_within_five_points_or_three_times_chance(classes, accuracy, near):
    labels = torch.arange(1000) % classes
    right = torch.from_numpy(np.random.default_rng(0).permutation(1000) < 1000 * accuracy)
    both = Difference(classes)
    said = torch.where(right, labels, (labels + 1) % classes)
    logits = 2 * torch.nn.functional.one_hot(said, classes).double()
    both.add(logits, logits, labels)
    assert both.sanity.near_chance == near


def test_a_result_that_lost_accuracy_and_gained_nothing_is_told():
    labels = torch.arange(400) % 4
    good = 4 * torch.nn.functional.one_hot(labels, 4).double()
    bad = good.roll(1, dims=1)
    both = Difference(4)
    both.add(good, bad, labels)
    assert both.sanity.has_lost
    assert both.sanity.result_accuracy == 0
    assert sanity_in_words(both.sanity).startswith("Do not use this result")
    again = Difference(4)
    again.add(bad, good, labels)
    assert not again.sanity.has_lost
