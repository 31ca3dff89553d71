"""Scores and names that reports are tried on."""

import torch

import longtail as lt
from longtail.report import Judged

NAMES = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(2)>",
    "🦊🌵 fox and cactus",
    "שלום العربية right to left",
    "x" * 300,
    "many words " * 27,
    "\"quotes\" & 'more' {{ 7 * 7 }}",
)


def judged(names: tuple[str, ...] = ()) -> Judged:
    """Scores of a model that learned the tail of its labels, and the same moved to uniform."""
    classes, samples = 20, 1500
    random = torch.Generator().manual_seed(7)
    counts = lt.data.exponential_counts(400, classes, 100)
    prior = lt.Prior.of(counts)
    labels = torch.randint(classes, (samples,), generator=random)
    seen = torch.randn(samples, classes, generator=random, dtype=torch.float64)
    seen[torch.arange(samples), labels] += 1.8
    logits = 1.8 * seen  # the true posterior, so the model is calibrated
    called = [*names, *(f"class {k}" for k in range(len(names), classes))]
    before = lt.Scores(
        logits + prior.log, labels, carried=prior, counts=counts, classes=called, split="test"
    )
    uniform = lt.Prior.uniform(classes)
    return Judged(before, before.under(uniform), uniform)
