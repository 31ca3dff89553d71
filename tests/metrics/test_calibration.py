"""Calibration errors, against loops over bins as the papers write them."""

from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.core.blocks import blocks
from longtail.metrics import classwise_ece, ece, sums, terms


def in_bin(values, number, bins):
    """Which values lie in bin (number/bins, (number + 1)/bins]; the first one has 0 too."""
    lowest = -1.0 if number == 0 else number / bins
    return (values > lowest) & (values <= (number + 1) / bins)


def naive_ece(logits, labels, bins=20):
    confidence, top = logits.softmax(dim=1).max(dim=1)
    error = 0.0
    for number in range(bins):
        inside = in_bin(confidence, number, bins)
        if inside.any():
            accuracy = (top == labels)[inside].double().mean()
            error += inside.double().mean() * (accuracy - confidence[inside].mean()).abs()
    return float(error)


def naive_usual(logits, labels, bins=20):
    error = 0.0
    for one_class, probs in enumerate(logits.softmax(dim=1).T):
        for number in range(bins):
            inside = in_bin(probs, number, bins)
            if inside.any():
                frequency = (labels == one_class)[inside].double().mean()
                error += inside.double().mean() * (frequency - probs[inside].mean()).abs()
    return float(error) / logits.shape[1]


def naive_paper(logits, labels, bins=20):
    confidence, top = logits.softmax(dim=1).max(dim=1)
    error = 0.0
    for one_class in range(logits.shape[1]):
        for number in range(bins):
            inside = in_bin(confidence, number, bins) & (labels == one_class)
            if inside.any():
                accuracy = (top == labels)[inside].double().mean()
                error += inside.double().mean() * (accuracy - confidence[inside].mean()).abs()
    return float(error) / logits.shape[1]


NAIVE = {
    "ece": (ece, naive_ece),
    "usual": (classwise_ece, naive_usual),
    "paper": (partial(classwise_ece, form="paper"), naive_paper),
}
METRICS = [metric for metric, _ in NAIVE.values()]
each_metric = pytest.mark.parametrize("metric", METRICS, ids=NAIVE)


@pytest.mark.parametrize(("metric", "naive"), NAIVE.values(), ids=NAIVE)
@pytest.mark.parametrize("bins", [1, 7, 20])
@pytest.mark.parametrize("num_samples", [1, 30, 400])
def test_loops_over_classes_and_bins_give_the_same(metric, naive, bins, num_samples, draw):
    logits, labels = draw(seed=bins, num_samples=num_samples)
    expected = naive(logits, labels, bins)
    assert metric(logits, labels, bins=bins) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("metric", "naive"), NAIVE.values(), ids=NAIVE)
def test_a_ruled_out_and_absent_class_is_only_one_more_class(metric, naive, draw):
    logits, labels = draw()
    logits[:, 4] = -float("inf")
    labels = labels.clamp(max=3)
    assert metric(logits, labels) == pytest.approx(naive(logits, labels), rel=1e-9)
    share = 1.0 if metric is ece else 4 / 5
    assert metric(logits, labels) == pytest.approx(share * metric(logits[:, :4], labels), rel=1e-9)


def test_known_values():
    quarter = [[0.0, 0.0, 0.0, 0.0]] * 4
    assert ece(quarter, [0, 1, 2, 3]) == pytest.approx(0.0)
    assert classwise_ece(quarter, [0, 1, 2, 3]) == pytest.approx(0.0)
    # True class 0 is right with confidence 1/4, the other three are wrong with 1/4.
    assert classwise_ece(quarter, [0, 1, 2, 3], form="paper") == pytest.approx(
        (0.75 + 3 * 0.25) / 4 / 4
    )


def test_sure_and_right_is_zero_sure_and_wrong_is_one():
    sure = [[900.0, 0.0], [0.0, 900.0], [900.0, 0.0]]
    assert [metric(sure, [0, 1, 0]) for metric in METRICS] == pytest.approx([0.0, 0.0, 0.0])
    assert [metric(sure, [1, 0, 1]) for metric in METRICS] == pytest.approx([1.0, 1.0, 0.5])


def test_a_bin_holds_its_upper_edge_and_not_its_lower_one():
    inf = float("inf")
    half, less, more = [0.0, 0.0, -inf], [0.1, 0.0, 0.0], [0.1, 0.0, -inf]
    conf_less = float(torch.tensor(less, dtype=torch.float64).softmax(dim=0)[0])
    conf_more = float(torch.tensor(more, dtype=torch.float64).softmax(dim=0)[0])
    # Right at exactly 0.5 and wrong below it: one bin, so the gaps cancel in part.
    assert ece([half, less], [0, 1], bins=2) == pytest.approx(abs(0.5 - conf_less) / 2, rel=1e-6)
    # Right at exactly 0.5 and wrong above it: two bins, so they add up.
    assert ece([half, more], [0, 1], bins=2) == pytest.approx((0.5 + conf_more) / 2, rel=1e-6)


@pytest.mark.parametrize(("metric", "naive"), NAIVE.values(), ids=NAIVE)
def test_every_form_has_bins_of_the_same_kind(metric, naive):
    inf = float("inf")
    half, less = [0.0, 0.0, -inf], [0.0, 0.1, 0.0]
    logits = torch.tensor([half, less, less], dtype=torch.float64)
    labels = torch.tensor([0, 0, 1])
    assert logits.softmax(dim=1)[0].tolist() == [0.5, 0.5, 0.0]
    assert metric(logits, labels, bins=2) == pytest.approx(naive(logits, labels, 2), rel=1e-9)


def test_of_equally_likely_classes_the_first_is_predicted():
    assert ece([[0.0, 0.0]], [0]) == pytest.approx(0.5)
    assert ece([[0.0, 0.0]], [1]) == pytest.approx(0.5)
    assert ece([[0.0, 0.0]] * 2, [0, 0]) == pytest.approx(0.5)
    assert ece([[0.0, 0.0]] * 2, [0, 1]) == pytest.approx(0.0)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1000), scale=st.floats(0.1, 10))
def test_weights_are_repetition_up_to_any_scale(seed, scale, draw):
    logits, labels = draw(seed, num_samples=15)
    times = torch.randint(0, 4, (15,), generator=torch.Generator().manual_seed(seed))
    times[0] = 1
    many_logits, many_labels = logits.repeat_interleave(times, 0), labels.repeat_interleave(times)
    for metric in METRICS:
        weighted = metric(logits, labels, times.double() * scale)
        assert weighted == pytest.approx(metric(many_logits, many_labels), rel=1e-9, abs=1e-12)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1000), names=st.permutations(range(5)))
def test_order_of_samples_and_names_of_classes_do_not_matter(seed, names, draw):
    logits, labels = draw(seed, num_samples=30)
    order = torch.randperm(30, generator=torch.Generator().manual_seed(seed))
    names = torch.tensor(names)
    changed = torch.empty_like(logits)
    changed[:, names] = logits
    for metric in METRICS:
        same = metric(changed[order], names[labels][order])
        assert same == pytest.approx(metric(logits, labels), rel=1e-9, abs=1e-12)


def test_true_probabilities_are_nearly_calibrated_and_sharpened_ones_are_not(draw):
    logits, _ = draw(num_samples=40_000)
    generator = torch.Generator().manual_seed(1)
    labels = torch.multinomial(logits.softmax(dim=1), 1, generator=generator).flatten()
    for metric in (ece, classwise_ece):
        assert metric(logits, labels) < 0.012
        assert metric(3 * logits, labels) > 0.05


@each_metric
def test_blocks_of_rows_add_up(metric, draw, monkeypatch):
    logits, labels = draw()
    weights = torch.arange(1.0, 401.0)
    whole = metric(logits, labels, weights)
    monkeypatch.setattr(sums, "blocks", partial(blocks, numbers=13 * 5))
    monkeypatch.setattr(terms, "_PART", 6 * 5)
    monkeypatch.setattr(terms, "IN_CACHE", 3 * 5)
    assert metric(logits, labels, weights) == pytest.approx(whole, rel=1e-9)


@each_metric
def test_numpy_and_torch_agree(metric, draw):
    logits, labels = draw()
    result = metric(logits.numpy(), labels.numpy())
    assert type(result) is float
    assert result == metric(logits, labels)


@each_metric
def test_bins_and_samples_are_needed(metric):
    with pytest.raises(ValueError, match=r"bins.*got 0"):
        metric([[0.0, 1.0]], [0], bins=0)
    with pytest.raises(ValueError, match="got none"):
        metric(torch.zeros(0, 3), torch.zeros(0, dtype=torch.long))


def test_an_unknown_form_is_refused():
    with pytest.raises(ValueError, match="form must be"):
        classwise_ece([[0.0, 1.0]], [0], form="kull")
