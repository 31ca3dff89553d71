"""Stratified folds."""

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


@pytest.mark.parametrize("num_folds", [0, 1, 61])
def test_a_number_of_folds_that_cannot_be_is_refused(num_folds):
    with pytest.raises(ValueError, match="2 to 60 samples"):
        stratified_folds(LABELS, num_folds)
