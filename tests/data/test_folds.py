"""Stratified folds."""

import numpy as np
import pytest
import torch

from longtail.data import stratified_folds

LABELS = torch.tensor([0] * 50 + [1] * 7 + [2] * 3)


def test_every_fold_has_its_share_of_every_class():
    folds = stratified_folds(LABELS, 3, seed=1)
    for label, count in ((0, 50), (1, 7), (2, 3)):
        sizes = folds[label == LABELS].bincount(minlength=3)
        assert sizes.min() >= count // 3
        assert sizes.max() <= -(-count // 3)


def test_folds_differ_by_one_sample_at_the_most():
    sizes = stratified_folds(LABELS, 7).bincount(minlength=7)
    assert sizes.max() - sizes.min() <= 1


def test_the_seed_decides():
    assert torch.equal(stratified_folds(LABELS, 3, seed=1), stratified_folds(LABELS, 3, seed=1))
    assert not torch.equal(stratified_folds(LABELS, 3, seed=1), stratified_folds(LABELS, 3, seed=2))


def test_numpy_labels_give_numpy_folds():
    folds = stratified_folds(LABELS.numpy(), 3)
    assert isinstance(folds, np.ndarray)
    np.testing.assert_array_equal(folds, stratified_folds(LABELS, 3))


def test_a_class_of_one_sample_is_missing_from_the_training_part_of_its_fold():
    labels = torch.tensor([0, 0, 0, 0, 1])
    fold = stratified_folds(labels, 2)[4]
    assert 1 not in labels[stratified_folds(labels, 2) != fold]


def test_more_folds_than_samples_are_refused_without_an_empty_range():
    with pytest.raises(ValueError, match=r"5 folds.*got 2"):
        stratified_folds([0, 1], num_folds=5)
    with pytest.raises(ValueError, match=r"61 folds.*got 60"):
        stratified_folds(LABELS, num_folds=61)
    for few in (0, 1):
        with pytest.raises(ValueError, match=rf"num_folds must .* got {few}"):
            stratified_folds(LABELS, num_folds=few)
