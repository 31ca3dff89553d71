"""Heads that are linear in the features, by loops over their formulas."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from longtail import Prior, heads, posthoc
from longtail.core import Scores

COUNTS = [20, 12, 8, 3, 1]


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def looped(features, f):
    """f(x, y) for every sample and class, as a tensor."""
    return torch.tensor(
        [[f(x, y) for y in range(5)] for x in features.tolist()], dtype=torch.float64
    )


def same(logits, expected):
    assert_close(logits, expected, rtol=0, atol=1e-10)


def test_linear_is_torch_s(features, layer):
    same(heads.Linear.from_linear(layer)(features), layer(features))
    torch.manual_seed(0)
    fresh = heads.Linear(6, 5)
    torch.manual_seed(0)
    assert torch.equal(fresh.weight, nn.Linear(6, 5).weight)


@pytest.mark.parametrize("tau", [0.0, 0.5, 1.0, 2.0])
def test_tau_norm_divides_by_a_power_of_the_norm_and_drops_the_bias(features, layer, tau):
    w = layer.weight.tolist()
    head = heads.TauNorm.from_linear(layer, tau)
    same(head(features), looped(features, lambda x, y: dot(w[y], x) / dot(w[y], w[y]) ** (tau / 2)))


def test_tau_norm_by_prior_divides_by_a_power_of_the_frequency(features, layer):
    w = layer.weight.tolist()
    head = heads.TauNorm.from_linear(layer, 0.5, COUNTS)
    same(head(features), looped(features, lambda x, y: dot(w[y], x) / (COUNTS[y] / 44) ** 0.5))


def test_tau_norm_is_weight_normalisation_of_logits_without_bias(features, layer):
    logits = features @ layer.weight.detach().T
    adjusted = posthoc.WeightNormalization.by_norm(layer.weight, 0.7)(Scores(logits))
    same(heads.TauNorm.from_linear(layer, 0.7)(features), adjusted.logits)


def test_tau_can_be_set_and_is_saved(features, layer):
    head, other = heads.TauNorm.from_linear(layer, 0.0), heads.TauNorm(6, 5).double()
    head.tau = 1.3
    other.load_state_dict(head.state_dict())
    assert other.tau == 1.3
    same(other(features), heads.TauNorm.from_linear(layer, 1.3)(features))


def test_a_row_of_zeros_stays_a_row_of_zeros(features, layer):
    with torch.no_grad():
        layer.weight[2] = 0.0
    for kind in (heads.TauNorm, heads.WeightVectorNorm, heads.Cosine, heads.CausalNorm):
        logits = kind.from_linear(layer)(features)
        assert logits.isfinite().all()
        assert (logits[:, 2] == 0).all()


@pytest.mark.parametrize("bias", [True, False])
def test_learnable_scale_scales_frozen_rows_and_biases(features, bias):
    layer = nn.Linear(6, 5, bias=bias).double()
    head = heads.LearnableScale.from_linear(layer)
    same(head(features), layer(features))
    with torch.no_grad():
        head.scale.copy_(torch.tensor([0.5, 1.0, 2.0, 3.0, -1.0]))
    w, s = layer.weight.tolist(), head.scale.tolist()
    b = layer.bias.tolist() if bias else [0.0] * 5
    same(head(features), looped(features, lambda x, y: s[y] * (dot(w[y], x) + b[y])))
    head(features).sum().backward()
    assert layer.weight.grad is None


def test_offsets_of_class_means(features, labels, layer, moments):
    w = layer.weight.tolist()
    mean = [features[labels == y].mean(0).tolist() for y in range(5)]
    expected = looped(features, lambda x, y: dot(w[y], x) - 0.5 * dot(mean[y], w[y]))
    empirical = heads.EmpiricalOffset.from_linear(layer, moments())
    same(empirical(features), expected)
    estimated = heads.EstimatedOffset.from_linear(layer)
    estimated.set_moments(moments())
    same(estimated(features), expected)
    same(
        estimated.offset,
        torch.tensor([0.5 * dot(mean[y], w[y]) for y in range(5)], dtype=torch.float64),
    )


def test_without_the_offset_the_ablation_is_linear_and_claims_nothing(features, layer, moments):
    head = heads.EstimatedOffset.from_linear(layer, use_offset=False)
    head.set_moments(moments())
    same(head(features), features @ layer.weight.T)
    assert head.carried is None


def test_the_boundary_of_the_empirical_offset_is_equally_far_from_both_means(moments):
    """EO equation 4, distances as the paper writes them."""
    given = moments(scatter="pooled")
    means = given.means.numpy()
    layer = nn.Linear(6, 5).double()
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(means @ np.linalg.inv(given.scatter.numpy())))
    head = heads.EmpiricalOffset.from_linear(layer, given)
    w, offset = head.weight.detach().numpy(), head.offset.detach().numpy()

    def distance(j, k):
        above = abs(means[j] @ (w[j] - w[k]) - offset[j] + offset[k])
        return above / np.linalg.norm(w[j] - w[k])

    for j in range(5):
        for k in range(j):
            assert distance(j, k) == pytest.approx(distance(k, j), rel=1e-9)
    with_bias = head.to_linear()
    with torch.no_grad():
        # The term that EO leaves out moves it.
        with_bias.bias += torch.as_tensor(Prior.of(COUNTS).log)
        gaps = with_bias(given.means).diag()[:, None] - with_bias(given.means)
    assert not np.allclose(gaps.numpy(), gaps.numpy().T)


def test_weight_vector_norm_in_training_and_at_test(features, layer):
    w = layer.weight.tolist()
    head = heads.WeightVectorNorm.from_linear(layer, COUNTS, gamma=0.5)
    expected = looped(features, lambda x, y: dot(w[y], x) / dot(w[y], w[y]) ** 0.5)
    same(head.train()(features), expected)
    shares = torch.tensor([(n / 20) ** 0.5 for n in COUNTS], dtype=torch.float64)
    same(head.eval()(features), expected / shares)
    same(head.train().to_linear()(features), expected / shares)


def test_the_gradient_of_weight_vector_norm_has_no_part_along_the_weights(features, layer):
    head = heads.WeightVectorNorm.from_linear(layer)
    head(features).square().sum().backward()
    along = (head.weight.grad * head.weight).sum(1)
    assert_close(along, torch.zeros_like(along), rtol=0, atol=1e-9)
    assert head.weight.grad.abs().max() > 1


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: heads.TauNorm(6, 5, tau=float("nan")), r"tau.*got nan"),
        (lambda: heads.TauNorm(6, 5, train=[1, 2]), r"5 classes.*train prior"),
        (lambda: heads.TauNorm(6, 5, train=[1, 2, 3, 4, 0]), "zeros='smooth'"),
        (lambda: heads.WeightVectorNorm(6, 5, [1, 2]), r"5 classes.*train"),
        (lambda: heads.WeightVectorNorm(6, 5, gamma=float("inf")), "gamma must be a finite"),
        (lambda: heads.Cosine(6, 5, scale=float("nan")), r"scale.*finite"),
        (lambda: heads.CausalNorm(6, 5, num_heads=4), "must divide the dimension 6, got 4"),
        (lambda: heads.CausalNorm(6, 5, momentum=1.0), r"momentum.*below 1"),
        (lambda: heads.CausalNorm(6, 5, gamma=-1.0), r"gamma.*0 or more"),
    ],
)
def test_wrong_options_give_one_clear_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()
