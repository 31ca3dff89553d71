"""Small labelled scores whose tail is worse than its head."""

import pytest
import torch

import longtail as lt


def _scores(num_classes=12, per_class=20, seed=0, classes=None, strength=2.0):
    """Logits that carry exponential counts, the same number of samples a class."""
    source = torch.Generator().manual_seed(seed)
    counts = torch.tensor(lt.data.exponential_counts(500, num_classes, 100))
    counts = counts[torch.randperm(num_classes, generator=source)]
    labels = torch.arange(num_classes).repeat(per_class)
    logits = torch.randn(len(labels), num_classes, generator=source)
    logits[torch.arange(len(labels)), labels] += strength
    logits += torch.as_tensor(lt.Prior.of(counts).log)
    return lt.Scores(logits, labels, carried=counts, counts=counts, classes=classes)


@pytest.fixture
def make_scores():
    return _scores


@pytest.fixture
def scores():
    return _scores()
