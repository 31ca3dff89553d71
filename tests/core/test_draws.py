"""Draws by a seed are those of torch."""

import numpy as np
import pytest
import torch

from longtail.core.draws import Draws

SEEDS = [0, 7, 2**31 + 5, 2**40 + 1, -3]


def torch_draws(seed):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("number", [0, 1, 2, 17, 1000])
def test_a_permutation_is_that_of_torch(seed, number):
    expected = torch.randperm(number, generator=torch_draws(seed)).numpy()
    assert np.array_equal(Draws(seed).permutation(number), expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_uniform_numbers_are_those_of_torch_one_after_the_other(seed):
    draws, generator = Draws(seed), torch_draws(seed)
    for number in (3, 50):
        wide = torch.rand(number, dtype=torch.float64, generator=generator)
        assert np.array_equal(draws.uniform(number), wide.numpy())
        narrow = torch.rand(number, generator=generator)
        assert np.array_equal(draws.uniform32(number), narrow.numpy())


@pytest.mark.parametrize("number", [16, 31, 1000])
def test_normal_numbers_are_those_of_torch_to_rounding(number):
    expected = torch.randn(number, generator=torch_draws(5)).numpy()
    draws = Draws(5)
    np.testing.assert_allclose(draws.normal32(number), expected, rtol=1e-5, atol=1e-6)
    assert draws.normal32(3).shape == (3,)
