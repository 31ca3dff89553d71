"""Before and after on the same samples: the gain, and an interval that knows they are the same."""

import numpy as np
import pytest
import torch

from longtail import Prior
from longtail.metrics import Comparison, Tally

LABELS = torch.arange(400) % 4
COUNTS = torch.bincount(LABELS)


def logits(seed, lift):
    rows = torch.randn(400, 4, generator=torch.Generator().manual_seed(seed))
    rows[torch.arange(400), LABELS] += lift
    return rows


def compared(before, after, blocks=3, **options):
    both = Comparison(COUNTS, **options)
    parts = zip(before.chunk(blocks), after.chunk(blocks), LABELS.chunk(blocks), strict=True)
    for part in parts:
        both.add(*part)
    return both


def test_both_sides_are_what_a_tally_of_each_gives():
    before, after, target = logits(0, 0.5), logits(1, 1.0), Prior.of([7, 1, 1, 1])
    alone = Tally(COUNTS, target)
    alone.add(after, LABELS)
    shown = compared(before, after, target=target).metrics()
    for name, measured in alone.metrics().items():
        np.testing.assert_allclose(shown[name][1].value, measured.value, err_msg=name)
    assert shown["accuracy_under_target"][0].value < shown["accuracy_under_target"][1].value


def test_the_gain_is_the_difference_of_the_two():
    was, now = logits(0, 0.5), logits(1, 1.0)
    both = compared(was, now, target=Prior.of([7, 1, 1, 1]))
    shown, gains = both.metrics(), both.gains()
    plain = [float((part.argmax(1) == LABELS).double().mean()) for part in (was, now)]
    assert [side.value for side in shown["accuracy"]] == pytest.approx(plain)
    assert {"accuracy", "accuracy_under_target", "balanced_accuracy"} <= gains.keys()
    for name, gain in gains.items():
        alike = [side.value for side in shown[name]]
        np.testing.assert_allclose(gain.value, alike[1] - alike[0], atol=1e-12)
        assert gain.low < gain.value < gain.high


def test_the_interval_of_the_gain_is_that_of_paired_differences_within_classes():
    before, after = logits(0, 0.5), logits(1, 1.0)
    change = (after.argmax(1) == LABELS).double() - (before.argmax(1) == LABELS).double()
    classes = [change[c == LABELS].numpy() for c in range(4)]
    # One sample more of each class, of the usual variance or that of one turned right, one wrong.
    few = (float(change.abs().sum()) + 2) / (len(change) + 2)
    usual = max(np.mean([values.var(ddof=1) for values in classes]), few)
    variance = sum((values.var() + usual / 100) / 100 for values in classes) / 16
    gain = compared(before, after).gains()["balanced_accuracy"]
    np.testing.assert_allclose(gain.high - gain.low, 2 * 1.959964 * variance**0.5, rtol=1e-6)


def test_no_change_is_no_gain_without_any_doubt():
    before = logits(0, 0.5)
    gain = compared(before, before + 1).gains()["accuracy"]
    assert (gain.value, gain.low, gain.high) == (0, 0, 0)
