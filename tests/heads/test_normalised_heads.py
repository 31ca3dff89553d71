"""Cosine and causal norm: by loops, and how the running mean follows."""

import math

import pytest
import torch
from torch.testing import assert_close

from longtail import heads


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def norm(a):
    return math.sqrt(dot(a, a))


def test_cosine_by_loops(features, layer):
    w = layer.weight.tolist()
    expected = [
        [7.0 * dot(w[y], x) / norm(w[y]) / norm(x) for y in range(5)] for x in features.tolist()
    ]
    logits = heads.Cosine.from_linear(layer, scale=7.0)(features)
    assert_close(logits, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-10)


def test_a_scale_that_is_learned_gets_a_gradient_and_a_fixed_one_is_exact_in_half(features):
    learned = heads.Cosine(6, 5, scale=3.0, learn_scale=True).double()
    learned(features)[:, 0].sum().backward()
    assert learned.scale.grad.abs() > 0
    assert heads.Cosine(6, 5, scale=0.1).half().scale.dtype == torch.float64


def causal_loops(head, features, effect):
    """Tang et al.'s formula with loops over samples, classes and parts."""
    w, c, size = head.weight.tolist(), head.mean_feature.tolist(), head.dim // head.num_heads
    rows = []
    for x in features.tolist():
        row = []
        for y in range(head.num_classes):
            total = 0.0
            for k in range(head.num_heads):
                at = slice(k * size, (k + 1) * size)
                direction = [v / norm(x[at]) for v in x[at]]
                mean = [v / norm(c[at]) for v in c[at]]
                cosine = dot(direction, mean)
                if effect:
                    pairs = zip(direction, mean, strict=True)
                    direction = [d - head.alpha * cosine * m for d, m in pairs]
                total += dot(direction, w[y][at]) / (norm(w[y][at]) + head.gamma)
            row.append(head.tau / head.num_heads * total)
        rows.append(row)
    return torch.tensor(rows, dtype=torch.float64)


@pytest.mark.parametrize("num_heads", [1, 2, 3])
def test_causal_norm_by_loops_in_training_and_at_test(features, layer, num_heads):
    head = heads.CausalNorm.from_linear(layer, num_heads)
    logits = head.train()(features)
    assert_close(logits, causal_loops(head, features, effect=False), rtol=0, atol=1e-10)
    expected = causal_loops(head, features, effect=True)
    assert_close(head.eval()(features), expected, rtol=0, atol=1e-10)
    assert not torch.allclose(logits, expected)


def test_the_papers_numbers_are_the_defaults():
    head = heads.CausalNorm(6, 5)
    assert (head.num_heads, head.tau, head.alpha, head.gamma) == (2, 16.0, 3.0, 1 / 32)


def test_the_running_mean_has_the_direction_of_the_released_rule(features):
    """Released: m ← μ·m + batch mean. Ours is (1−μ) of it, so its direction is the same."""
    head = heads.CausalNorm(6, 5, momentum=0.8).double()
    released = torch.zeros(6, dtype=torch.float64)
    for start in range(0, 40, 10):
        batch = features[start : start + 10]
        head(batch)
        released = 0.8 * released + batch.mean(0)
    assert_close(head.mean_feature, 0.2 * released)
    head.eval()(features)
    assert_close(head.mean_feature, 0.2 * released)


def test_an_empty_batch_leaves_the_running_mean(features):
    head = heads.CausalNorm(6, 5).double()
    head(features)
    before = head.mean_feature.clone()
    assert head(features[:0]).shape == (0, 5)
    assert torch.equal(head.mean_feature, before)


def test_before_any_training_nothing_is_subtracted(features, layer):
    head = heads.CausalNorm.from_linear(layer)
    assert_close(head.eval()(features), head.train()(features))


def test_the_logits_do_not_depend_on_the_length_of_the_features(features, layer):
    for head in (heads.Cosine.from_linear(layer), heads.CausalNorm.from_linear(layer).eval()):
        assert_close(head(features), head(1e3 * features))
