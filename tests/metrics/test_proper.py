"""NLL and Brier: means over samples, from logits."""

import math
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.core.blocks import blocks
from longtail.metrics import brier, classwise_ece, ece, margins, nll, reliability, sums, terms

INF = float("inf")


def softmax(row):
    shares = [math.exp(value - max(row)) for value in row]
    return [share / sum(shares) for share in shares]


def naive_nll(logits, labels):
    terms = [-math.log(softmax(row)[y]) for row, y in zip(logits, labels, strict=True)]
    return sum(terms) / len(terms)


def naive_brier(logits, labels):
    total = 0.0
    for row, label in zip(logits, labels, strict=True):
        for one_class, prob in enumerate(softmax(row)):
            total += (prob - (one_class == label)) ** 2
    return total / len(labels)


METRICS = {nll: naive_nll, brier: naive_brier}
each_metric = pytest.mark.parametrize("metric", METRICS)


@each_metric
@pytest.mark.parametrize("seed", range(3))
def test_a_loop_gives_the_same(metric, seed, draw):
    logits, labels = draw(seed)
    expected = METRICS[metric](logits.tolist(), labels.tolist())
    assert metric(logits, labels) == pytest.approx(expected, rel=1e-12)


@each_metric
def test_one_sample_is_its_own_mean(metric):
    assert metric([[1.0, 0.0, 2.0]], [1]) == pytest.approx(
        METRICS[metric]([[1.0, 0.0, 2.0]], [1]), rel=1e-12
    )


def test_known_values():
    even, sure = [[0.0, 0.0]], [[800.0, 0.0]]
    assert nll(even, [0]) == pytest.approx(math.log(2))
    assert brier(even, [0]) == 0.5
    assert (nll(sure, [0]), brier(sure, [0])) == (0.0, 0.0)
    # log(softmax) would say inf.
    assert (nll(sure, [1]), brier(sure, [1])) == (800.0, 2.0)


def test_a_ruled_out_class_costs_nothing_unless_it_is_true():
    logits = [[0.0, 0.0, -INF]]
    assert nll(logits, [0]) == pytest.approx(math.log(2))
    assert nll(logits, [2]) == INF
    assert brier(logits, [0]) == 0.5
    assert brier(logits, [2]) == 1.5


def test_a_sample_of_weight_zero_does_not_count_even_if_its_term_is_infinite():
    assert nll([[0.0, 0.0], [0.0, -INF]], [0, 1], weights=[1, 0]) == pytest.approx(math.log(2))


@each_metric
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1000), scale=st.floats(0.1, 10))
def test_weights_are_repetition_up_to_any_scale(metric, seed, scale, draw):
    logits, labels = draw(seed, num_samples=12)
    times = torch.randint(0, 4, (12,), generator=torch.Generator().manual_seed(seed))
    times[0] = 1
    repeated = metric(logits.repeat_interleave(times, 0), labels.repeat_interleave(times))
    assert metric(logits, labels, times.double() * scale) == pytest.approx(repeated, rel=1e-10)
    assert metric(logits, labels, torch.full((12,), scale)) == pytest.approx(metric(logits, labels))


@each_metric
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1000), names=st.permutations(range(5)))
def test_order_of_samples_names_of_classes_and_row_constants_do_not_matter(
    metric, seed, names, draw
):
    logits, labels = draw(seed, num_samples=20)
    generator = torch.Generator().manual_seed(seed)
    order, names = torch.randperm(20, generator=generator), torch.tensor(names)
    changed = torch.empty_like(logits)
    changed[:, names] = logits + 100 * torch.rand(20, 1, generator=generator)
    assert metric(changed[order], names[labels][order]) == pytest.approx(
        metric(logits, labels), rel=1e-9
    )


@each_metric
def test_blocks_of_rows_add_up(metric, draw, monkeypatch):
    logits, labels = draw()
    weights = torch.arange(1.0, 401.0)
    whole = metric(logits, labels, weights)
    monkeypatch.setattr(sums, "blocks", partial(blocks, numbers=13 * 5))
    monkeypatch.setattr(terms, "_PART", 6 * 5)
    monkeypatch.setattr(terms, "IN_CACHE", 3 * 5)
    assert metric(logits, labels, weights) == pytest.approx(whole, rel=1e-12)


@each_metric
def test_numpy_lists_and_low_precision_are_taken(metric, draw):
    logits, labels = draw()
    exact = metric(logits, labels)
    assert metric(logits.numpy(), labels.numpy(), np.ones(400)) == pytest.approx(exact)
    assert metric(logits.tolist(), labels.tolist()) == pytest.approx(exact)
    assert metric(logits.half(), labels) == metric(logits.half().double(), labels)
    assert type(metric(logits.requires_grad_(), labels)) is float


@each_metric
def test_what_cannot_be_a_metric_is_refused(metric):
    with pytest.raises(ValueError, match="got none"):
        metric(np.zeros((0, 3)), np.zeros(0, int))
    with pytest.raises(ValueError, match="shape"):
        metric([0.0, 1.0], [0])
    with pytest.raises(ValueError, match="2 rows of logits but 1 labels"):
        metric(np.zeros((2, 3)), [0])
    with pytest.raises(ValueError, match="labels must lie in 0 to 2"):
        metric(np.zeros((1, 3)), [3])
    with pytest.raises(ValueError, match="nan in row 0, class 1"):
        metric([[0.0, float("nan")]], [0])
    with pytest.raises(ValueError, match="no labels"):
        metric([[0.0, 2.0]], None)


@each_metric
@pytest.mark.parametrize("weights", [[-1.0, 2.0], [0.0, 0.0], [float("nan"), 1.0], [INF, 1.0]])
def test_weights_must_be_finite_and_not_negative(metric, weights):
    with pytest.raises(ValueError, match="weights must be finite"):
        metric(np.zeros((2, 3)), [0, 1], weights)


@each_metric
def test_weights_are_one_a_sample(metric):
    with pytest.raises(ValueError, match=r"for each of 2 samples.*weights\[labels\]"):
        metric(np.zeros((2, 3)), [0, 1], [1.0, 1.0, 1.0])


@pytest.mark.parametrize("metric", [nll, brier, ece, classwise_ece, margins, reliability])
def test_probabilities_are_refused_where_logits_are_taken(metric):
    probs = [[0.7, 0.2, 0.1], [0.1, 0.4, 0.5], [0.2, 0.2, 0.6]]
    with pytest.raises(ValueError, match="these logits are probabilities"):
        metric(probs, [0, 1, 2])
