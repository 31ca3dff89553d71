"""False positives, counted one by one."""

import numpy as np
import pytest
import torch

from longtail.metrics import false_positives


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
