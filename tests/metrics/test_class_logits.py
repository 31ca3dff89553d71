"""Logits of positives and negatives, class by class with NumPy's own mean and deviation."""

import numpy as np
import torch

from longtail.metrics import class_logits


def test_means_and_deviations_are_those_of_the_samples_apart():
    source = np.random.default_rng(0)
    logits = source.normal(1e6, 1.0, size=(500, 6))  # a common part that squares would drown in
    labels = source.integers(0, 5, size=500)
    found = class_logits(logits, labels)
    for c in range(6):
        own, others = logits[labels == c, c], logits[labels != c, c]
        expected = [
            own.mean() if len(own) else np.nan,
            own.std() if len(own) else np.nan,
            others.mean(),
            others.std(),
        ]
        np.testing.assert_allclose([part[c] for part in found], expected, rtol=1e-8)


def test_a_class_ruled_out_is_at_minus_infinity_and_leaves_the_others_alone():
    logits = torch.tensor([[0.0, -torch.inf], [2.0, -torch.inf], [1.0, 3.0]])
    found = class_logits(logits, [0, 0, 0])
    assert found.positive_mean[0] == 1.0
    assert found.negative_mean[1] == -torch.inf


def test_one_class_has_no_negatives():
    found = class_logits(torch.tensor([[1.0], [3.0]]), [0, 0])
    assert found.positive_std.tolist() == [1.0]
    assert found.negative_mean.isnan().all()
