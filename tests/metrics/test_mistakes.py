"""False positives, counted one by one."""

import numpy as np
import pytest
import torch

from longtail.metrics import false_positives, group_confusion, most_mistaken


def test_they_are_what_counting_gives():
    source = np.random.default_rng(0)
    predicted, labels = source.integers(0, 9, size=(2, 300))
    expected = [0] * 10
    for guess, truth in zip(predicted, labels, strict=True):
        expected[guess] += guess != truth
    found = false_positives(predicted, labels, 10)
    assert isinstance(found, np.ndarray)
    assert found.tolist() == expected
    assert sum(expected) == (predicted != labels).sum()
    assert false_positives(torch.tensor(predicted), labels, 10).tolist() == expected


def test_predictions_must_be_as_many_as_labels():
    with pytest.raises(ValueError, match="2 predictions but 1 labels"):
        false_positives([0, 1], [0], 2)


def test_confusion_of_groups_counts_every_class_the_same():
    predicted, labels = np.random.default_rng(1).integers(0, 4, size=(2, 200))
    groups = {"head": np.arange(4) < 2, "tail": np.arange(4) >= 2}
    found = group_confusion(predicted, labels, groups=groups)
    for row, classes in enumerate([(0, 1), (2, 3)]):
        own = [predicted[labels == k] for k in classes]
        right = np.mean([(each == k).mean() for k, each in zip(classes, own, strict=True)])
        assert found[row, 0] == pytest.approx(right)
        assert found[row].sum() == pytest.approx(1)


def test_the_most_frequent_mistakes_come_first():
    labels = np.repeat([0, 1, 2], [6, 4, 2])
    predicted = np.array([1, 1, 1, 0, 0, 0, 0, 0, 1, 1, 0, 0])
    found = most_mistaken(predicted, labels)
    assert [tuple(each) for each in found] == [(0, 1, 3), (2, 0, 2), (1, 0, 2)]
    rare = most_mistaken(predicted, labels, classes=np.array([False, True, True]), most=1)
    assert [tuple(each) for each in rare] == [(2, 0, 2)]
    assert most_mistaken(labels, labels) == []
