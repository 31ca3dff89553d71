"""Reliability bins, each sample put into its bin by hand."""

import numpy as np
import pytest
import torch

from longtail.metrics import ece, reliability

SOURCE = np.random.default_rng(0)
LOGITS = SOURCE.normal(size=(400, 7)) * 2
LABELS = SOURCE.integers(0, 7, size=400)
WEIGHTS = SOURCE.uniform(0, 2, size=400)


def naively(logits, labels, weights, bins):
    held = [[] for _ in range(bins)]
    for row, label, weight in zip(logits, labels, weights, strict=True):
        probs = np.exp(row) / np.exp(row).sum()
        confidence = probs.max()
        at = next(k for k in range(bins) if k / bins < confidence <= (k + 1) / bins)
        held[at].append((weight, confidence, float(probs.argmax() == label)))
    total = sum(weights)
    found = []
    for inside in held:
        mass = sum(weight for weight, _, _ in inside)
        if not inside:
            found.append((0.0, np.nan, np.nan))
            continue
        means = [sum(w[0] * w[k] for w in inside) / mass for k in (1, 2)]
        found.append((mass / total, *means))
    return np.array(found).T


@pytest.mark.parametrize("bins", [1, 5, 20])
@pytest.mark.parametrize("weighted", [False, True])
def test_bins_are_what_sorting_by_hand_gives(bins, weighted):
    weights = WEIGHTS if weighted else None
    found = reliability(LOGITS, LABELS, weights, bins)
    expected = naively(LOGITS, LABELS, WEIGHTS if weighted else np.ones(400), bins)
    np.testing.assert_allclose(np.stack(found), expected, atol=1e-12)


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_their_ece_is_that_of_the_metric(weights):
    found = reliability(LOGITS, LABELS, weights)
    assert found.ece == pytest.approx(ece(LOGITS, LABELS, weights), abs=1e-12)
    assert found.share.sum() == pytest.approx(1)


def test_torch_comes_back_as_torch_and_a_wrong_number_of_bins_is_an_error():
    found = reliability(torch.tensor(LOGITS), torch.tensor(LABELS))
    assert all(isinstance(part, torch.Tensor) for part in found)
    with pytest.raises(ValueError, match="bins must be 1 or more"):
        reliability(LOGITS, LABELS, bins=0)
