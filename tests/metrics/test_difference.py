"""Before and after on the same samples: the gain, and an interval that knows they are the same."""

import numpy as np
import pytest
import torch
from scipy import stats

from longtail import Prior
from longtail.metrics import Accumulator, Difference, paired_gain

LABELS = torch.arange(400) % 4
COUNTS = torch.bincount(LABELS)


def logits(seed, lift):
    rows = torch.randn(400, 4, generator=torch.Generator().manual_seed(seed))
    rows[torch.arange(400), LABELS] += lift
    return rows


def compared(before, after, blocks=3, **options):
    both = Difference(4, label_counts=COUNTS, **options)
    parts = zip(before.chunk(blocks), after.chunk(blocks), LABELS.chunk(blocks), strict=True)
    for part in parts:
        both.add(*part)
    return both


def test_both_sides_are_what_the_sums_of_each_give():
    before, after, target = logits(0, 0.5), logits(1, 1.0), Prior.of([7, 1, 1, 1])
    alone = Accumulator(4, target, label_counts=COUNTS)
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
        rose = alike[0] - alike[1] if name in ("nll", "brier") else alike[1] - alike[0]
        np.testing.assert_allclose(gain.value, rose, atol=1e-12)
        assert gain.low < gain.value < gain.high


def test_the_interval_of_the_gain_is_that_of_paired_differences_within_classes():
    before, after = logits(0, 0.5), logits(1, 1.0)
    change = (after.argmax(1) == LABELS).double() - (before.argmax(1) == LABELS).double()
    classes = [change[c == LABELS].numpy() for c in range(4)]
    # One sample more of each class, of the usual variance or the share that changed, and of all
    # samples one more that turned right and one that turned wrong.
    usual = max(np.mean([values.var(ddof=1) for values in classes]), float(change.abs().mean()))
    variance = sum((values.var() + usual / 100) / 100 for values in classes) / 16 + 2 / 400**2
    freedom = 2 * variance / (1 / 400) ** 2  # twice the changes, where all samples count alike
    gain = compared(before, after).gains()["balanced_accuracy"]
    reach = stats.t.ppf(0.975, freedom) * variance**0.5
    np.testing.assert_allclose(gain.high - gain.low, 2 * reach, rtol=1e-6)


@pytest.mark.parametrize("after", [lambda rows: rows + 1, lambda rows: 0.3 * rows - 2])
def test_no_change_is_no_gain_without_any_doubt_where_nothing_could_change(after):
    before = logits(0, 0.5)
    both = compared(before, after(before))
    assert not both.can_differ
    gain = both.gains()["accuracy"]
    assert (gain.value, gain.low, gain.high) == (0, 0, 0)


def test_scores_that_rule_a_class_out_are_compared_too():
    before = logits(0, 0.5)
    before[0, (LABELS[0] + 1) % 4] = -torch.inf
    assert not compared(before, before.double()).can_differ
    moved = compared(before, before + torch.tensor([0, 0, 0, 1e-4]))
    assert moved.can_differ
    assert moved.gains()["accuracy"].high > 0


def test_a_temperature_of_each_part_changes_no_decision_either():
    before = logits(0, 0.5)
    factors = torch.tensor([0.5, 0.6]).repeat_interleave(200).unsqueeze(1)
    assert not compared(before, factors * before, blocks=1).can_differ


def test_no_change_seen_is_not_no_change_to_come():
    before = logits(0, 0.5)
    both = compared(before, before + torch.tensor([0, 0, 0, 1e-4]))
    assert not both.changed.any()
    gains = both.gains()
    for name in ("accuracy", "balanced_accuracy"):
        gain = gains[name]
        reach = stats.t.ppf(0.975, 4) * 2**0.5 / 400
        assert (gain.value, gain.low, gain.high) == pytest.approx((0, -reach, reach))


def test_of_two_classes_an_offset_is_not_taken_for_a_temperature():
    margins = torch.linspace(-3, 3, 40)
    before = torch.stack([margins, -margins], dim=1)
    labels = (margins < 0).long()
    for after, can_differ in ((before + torch.tensor([0.01, 0.0]), True), (2 * before, False)):
        both = Difference(2)
        both.add(before, after, labels)
        assert not both.changed.any()
        assert both.can_differ is can_differ


@pytest.mark.parametrize(("samples", "loss"), [(38, 0.01), (38, 0.03), (38, 0.05), (400, 0.003)])
def test_a_small_change_that_may_show_in_no_sample_is_inside(samples, loss):
    random = torch.Generator().manual_seed(0)
    labels, target = torch.arange(samples) % 2, Prior.uniform(2)
    was = torch.ones(samples, dtype=torch.bool)
    held = 0
    for _ in range(300):
        now = torch.rand(samples, generator=random) >= loss
        gain = paired_gain(was, now, labels, target=target)
        held += gain.low <= -loss <= gain.high
    assert held >= 0.92 * 300


def test_one_model_beside_itself_gains_nothing_without_any_doubt():
    was, labels = torch.tensor([True, False, True]), torch.tensor([0, 0, 1])
    gain = paired_gain(was, was, labels, target=Prior.uniform(2))
    assert (gain.value, gain.low, gain.high) == (0, 0, 0)
    assert paired_gain(was, was.clone(), labels, target=Prior.uniform(2)).high > 0


def test_a_target_without_samples_has_no_gain():
    was = torch.tensor([True, False])
    gain = paired_gain(was, ~was, torch.tensor([0, 0]), target=Prior.of([0, 1], zeros="keep"))
    assert (gain.value, gain.low, gain.high) == (None, None, None)


def test_the_gain_of_a_group_is_as_sure_as_its_own_samples_make_it():
    """What changes in other classes says nothing about it."""
    labels = torch.arange(4).repeat_interleave(50)
    before = 2 * torch.nn.functional.one_hot(labels, 4).double()
    gains = []
    for changed in (0, 45):
        after = before.clone()
        after[:changed] = after[:changed].roll(1, dims=1)  # of the first class, which is many-shot
        after[160] = after[160].roll(1)
        both = Difference(4, counts=[500, 50, 50, 5])
        both.add(before, after, labels)
        gains.append(both.gains()["few"])
    assert gains[0] == gains[1]


@pytest.mark.parametrize(
    ("counts", "up", "down"),
    [
        ([100, 50, 20, 6, 3], [0.02, 0.05, 0.1, 0.2, 0.3], [0.08, 0.05, 0.03, 0.01, 0]),
        ([50, 20, 5, 3], [0.01, 0.05, 0.2, 0.3], [0.08, 0.05, 0.02, 0]),
    ],
)
def test_the_gain_of_a_few_rare_samples_is_inside_as_often_as_is_said(counts, up, down):
    """The tail rises and the head falls, as they do when scores are moved."""
    random = np.random.default_rng(0)
    classes, truth, held, trials = len(counts), np.mean(np.subtract(up, down)), 0, 500
    labels = torch.arange(classes).repeat_interleave(torch.tensor(counts))
    rises, falls = np.array(up)[labels], np.array(down)[labels]
    for _ in range(trials):
        drawn = random.random(len(labels))
        before = torch.from_numpy((drawn >= rises) & (drawn < rises + falls))
        after = torch.from_numpy(drawn < rises)
        gain = paired_gain(before, after, labels, target=Prior.uniform(classes))
        held += gain.low <= truth <= gain.high
    assert 0.92 * trials <= held < trials


@pytest.mark.parametrize("name", ["nll", "brier"])
def test_the_change_of_a_score_has_the_interval_of_paired_differences(name):
    before, after = logits(0, 0.5), logits(0, 0.5) * 1.3
    found = compared(before, after)
    each = []
    for part in (before, after):
        claimed = torch.softmax(part, dim=1)
        own = claimed[torch.arange(len(LABELS)), LABELS]
        whole = (claimed - torch.nn.functional.one_hot(LABELS, 4)).square().sum(dim=1)
        each.append(-own.log() if name == "nll" else whole)
    fall = (each[0] - each[1]).numpy()
    gain = found.gains()[name]
    was, now = (side.value for side in found.metrics()[name])
    assert gain.value == pytest.approx(was - now, abs=1e-12)
    classes = [fall[c == LABELS] for c in range(4)]
    usual = np.mean([values.var(ddof=1) for values in classes])
    variance = sum((values.var() + usual / 100) / 100 for values in classes) / 16
    assert gain.high - gain.low == pytest.approx(2 * 1.959964 * variance**0.5)
    apart = sum(side.high - side.low for side in found.metrics()[name]) / 2
    assert gain.high - gain.low < apart / 2  # which two separate intervals do not see


def test_a_score_that_is_infinite_has_no_change():
    before, after = logits(0, 0.5).double(), logits(0, 0.5).double()
    after[0, LABELS[0]] = -torch.inf
    assert compared(before, after).gains()["nll"].value is None


def test_parts_merge_to_what_one_pass_gives():
    before, after = logits(0, 0.5), logits(1, 1.0)
    whole, halves = compared(before, after), []
    for at in (slice(0, 150), slice(150, 400)):
        halves.append(Difference(4))
        halves[-1].add(before[at], after[at], LABELS[at])
    merged = halves[0] + halves[1]
    for name, gain in whole.gains().items():
        again = merged.gains()[name]
        assert (again.value, again.low) == (pytest.approx(gain.value), pytest.approx(gain.low))
    assert merged.can_differ
