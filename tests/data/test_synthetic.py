"""Synthetic problems: the distributions the papers describe, and the error in closed form."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from longtail.data import (
    TWO_GAUSSIANS_BAYES_ERROR,
    two_gaussians,
    two_gaussians_error,
    two_moons,
)

MAKERS = [two_gaussians, two_moons]


def tensors(samples):
    return tuple(map(torch.from_numpy, samples))


def distance_to_moon(features, labels):
    """From each point to the circle its class lies on."""
    centre = torch.tensor([[0.0, 0.0], [1.0, 0.5]])[labels]
    return (features - centre).norm(dim=1) - 1


@pytest.mark.parametrize("make", MAKERS)
def test_features_are_float32_and_labels_int64(make):
    features, labels = make(7, seed=0)
    assert (features.shape, features.dtype) == ((7, 2), np.float32)
    assert (labels.shape, labels.dtype) == ((7,), np.int64)


@pytest.mark.parametrize("make", MAKERS)
def test_a_seed_fixes_the_sample_and_leaves_the_global_generator_alone(make):
    np.random.seed(5)
    expected = np.random.rand(3)
    np.random.seed(5)
    first, again, other = make(50, seed=1), make(50, seed=1), make(50, seed=2)
    assert np.array_equal(np.random.rand(3), expected)
    assert np.array_equal(first[0], again[0])
    assert np.array_equal(first[1], again[1])
    assert not np.array_equal(first[0], other[0])


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("rare", [0.05, 0.3])
def test_class_one_has_the_asked_share(make, rare):
    _, labels = make(200_000, 0, rare)
    assert labels.mean() == pytest.approx(rare, abs=0.003)


@pytest.mark.parametrize("make", MAKERS)
def test_class_one_is_five_percent_unless_told(make):
    assert make(200_000, 0)[1].mean() == pytest.approx(0.05, abs=0.002)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("rare", [0, 1, 5, float("nan")])
def test_a_share_that_is_no_probability_is_refused(make, rare):
    with pytest.raises(ValueError, match=r"between 0 and 1, got .*0\.05"):
        make(10, 0, rare)


@pytest.mark.parametrize("make", MAKERS)
def test_no_samples_are_refused(make):
    with pytest.raises(ValueError, match=r"num_samples must .* got 0"):
        make(0, 0)


def test_the_gaussians_have_their_means_and_unit_covariance():
    features, labels = tensors(two_gaussians(200_000, seed=0, positive=0.5))
    for label, mean in [(0, -1.0), (1, 1.0)]:
        points = features[labels == label]
        assert_close(points.mean(dim=0), torch.full((2,), mean), atol=0.02, rtol=0)
        assert_close(points.T.cov(), torch.eye(2), atol=0.02, rtol=0)


def test_the_bayes_error_is_phi_of_minus_root_two():
    from scipy.stats import norm

    assert norm.cdf(-math.sqrt(2)) == pytest.approx(TWO_GAUSSIANS_BAYES_ERROR, rel=1e-14)
    assert two_gaussians_error([3.0, 3.0], 0.0).item() == pytest.approx(
        TWO_GAUSSIANS_BAYES_ERROR, rel=1e-14
    )


@pytest.mark.parametrize(
    ("weight", "bias"), [((1.0, 1.0), 0.0), ((2.0, 0.5), -1.0), ((-1.0, 0.2), 0.3), ((0, 3.0), 4.0)]
)
def test_the_error_in_closed_form_is_that_of_a_million_samples(weight, bias):
    features, labels = tensors(two_gaussians(1_000_000, seed=0, positive=0.5))
    wrong = (features @ torch.tensor(weight) + bias > 0) != (labels == 1)
    measured = sum(wrong[labels == label].double().mean().item() for label in (0, 1)) / 2
    # Five standard deviations of the measurement at the most.
    assert two_gaussians_error(weight, bias).item() == pytest.approx(measured, abs=0.0025)


@given(angle=st.floats(0, 2 * math.pi), bias=st.floats(-5, 5), length=st.floats(1e-3, 1e3))
def test_no_separator_beats_bayes_and_its_length_does_not_matter(angle, bias, length):
    weight = torch.tensor([math.cos(angle), math.sin(angle)], dtype=torch.float64)
    error = two_gaussians_error(weight, bias)
    assert error >= TWO_GAUSSIANS_BAYES_ERROR - 1e-15
    assert_close(two_gaussians_error(length * weight, length * bias), error)
    # The opposite separator is wrong where this one is right.
    assert_close(two_gaussians_error(-weight, -bias), 1 - error)


@pytest.mark.parametrize("bias", [-2.0, 0.0, 2.0])
def test_a_weight_of_zero_has_error_one_half(bias):
    assert two_gaussians_error([0.0, 0.0], bias).item() == pytest.approx(0.5, rel=1e-15)


def test_many_separators_are_measured_at_once_in_the_kind_that_came():
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(4, 3, 2, generator=generator)
    bias = torch.randn(4, 3, generator=generator)
    errors = two_gaussians_error(weight, bias)
    assert (errors.shape, errors.dtype) == ((4, 3), torch.float64)
    assert errors[2, 1] == two_gaussians_error(weight[2, 1], bias[2, 1].item())
    as_numpy = two_gaussians_error(weight.numpy(), bias.numpy())
    assert isinstance(as_numpy, np.ndarray)
    assert np.array_equal(as_numpy, errors.numpy())


def test_a_linear_layer_is_measured_as_it_is():
    layer = torch.nn.Linear(2, 1)
    assert two_gaussians_error(layer.weight, layer.bias).shape == (1,)


@pytest.mark.parametrize("weight", [[1.0, 1.0, 1.0], torch.ones(2, 3), torch.tensor(1.0)])
def test_a_weight_of_another_dimension_is_refused(weight):
    with pytest.raises(ValueError, match=r"weight must have shape \(\.\.\., 2\)"):
        two_gaussians_error(weight, 0.0)


def test_moons_without_noise_are_two_half_circles():
    features, labels = tensors(two_moons(2_000, seed=0, tail=0.5, noise=0.0))
    assert_close(distance_to_moon(features, labels), torch.zeros(2_000), atol=1e-6, rtol=0)
    height = features[:, 1]
    assert height[labels == 0].min() >= -1e-6
    assert height[labels == 1].max() <= 0.5 + 1e-6
    # They interleave: each covers its whole half circle, shifted by one radius.
    for label, (left, right) in enumerate([(-1, 1), (0, 2)]):
        across = features[labels == label, 0]
        assert (across.min().item(), across.max().item()) == pytest.approx((left, right), abs=0.01)


def test_moons_are_those_of_scikit_learn():
    from sklearn.datasets import make_moons

    reference, classes = make_moons(4_000, noise=None, shuffle=False)
    features, labels = tensors(two_moons(4_000, seed=0, tail=0.5, noise=0.0))
    for label in (0, 1):
        points = torch.tensor(reference[classes == label], dtype=torch.float32)
        nearest = torch.cdist(features[labels == label], points).min(dim=1).values
        assert nearest.max() < 0.002


def test_moons_are_filled_evenly():
    features, labels = tensors(two_moons(20_000, seed=0, tail=0.5, noise=0.0))
    angle = torch.atan2(features[labels == 0, 1], features[labels == 0, 0])
    shares = torch.histc(angle, bins=10, min=0, max=math.pi) / len(angle)
    assert_close(shares, torch.full((10,), 0.1), atol=0.015, rtol=0)


@pytest.mark.parametrize("noise", [0.05, 0.1])
def test_moons_have_the_asked_noise(noise):
    off = two_moons(50_000, 0, 0.5, noise)[0] - two_moons(50_000, 0, 0.5, 0.0)[0]
    np.testing.assert_allclose(off.std(axis=0), noise, rtol=0.02)


def test_negative_noise_is_refused():
    with pytest.raises(ValueError, match=r"noise must be .* got -0\.1"):
        two_moons(10, 0, noise=-0.1)
