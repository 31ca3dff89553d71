"""Distances by one matrix product: by loops, far from zero, and what happens at zero."""

import math

import pytest
import torch
from torch.testing import assert_close

from longtail.heads.distances import distances, root, squared_distances, unit

GENERATOR = torch.Generator().manual_seed(0)
ROWS = torch.randn(3, 4, 7, generator=GENERATOR, dtype=torch.float64)
CENTERS = torch.randn(5, 7, generator=GENERATOR, dtype=torch.float64)


def test_distances_by_loops_for_rows_with_any_axes():
    ours, squares = distances(ROWS, CENTERS), squared_distances(ROWS, CENTERS)
    assert ours.shape == (3, 4, 5)
    for i in range(3):
        for j in range(4):
            for y in range(5):
                pairs = zip(ROWS[i, j].tolist(), CENTERS[y].tolist(), strict=True)
                square = sum((a - b) ** 2 for a, b in pairs)
                assert squares[i, j, y].item() == pytest.approx(square, abs=1e-12)
                assert ours[i, j, y].item() == pytest.approx(math.sqrt(square), abs=1e-12)


@pytest.mark.parametrize("offset", [0.0, 100.0, 1000.0])
def test_a_common_offset_costs_no_digits_in_float32(offset):
    rows, centers = (ROWS + offset).float(), (CENTERS + offset).float()
    exact = (rows.double().unsqueeze(-2) - centers.double()).norm(dim=-1)
    assert_close(distances(rows, centers).double(), exact, rtol=0, atol=1e-4)


@pytest.mark.parametrize("dim", [1, 64, 2048])
def test_a_row_that_is_a_centre_lies_at_zero_in_float32(dim):
    centers = 3 + torch.randn(50, dim, generator=torch.Generator().manual_seed(1))
    assert (distances(centers, centers).diag() == 0).all()


@pytest.mark.parametrize("function", [lambda x: root(x.square()), unit], ids=["root", "unit"])
def test_at_zero_values_and_gradients_of_both_orders_are_zero(function):
    rows = torch.zeros(2, 3, dtype=torch.float64, requires_grad=True)
    value = function(rows)
    (gradient,) = torch.autograd.grad(value.sum(), rows, create_graph=True)
    (second,) = torch.autograd.grad(gradient.sum(), rows)
    for each in (value, gradient, second):
        assert (each == 0).all()


@pytest.mark.parametrize("function", [root, unit, lambda x: distances(x, CENTERS[:, :3])])
def test_what_is_not_a_number_stays_so(function):
    rows = torch.tensor([[math.nan, 1.0, 2.0]], dtype=torch.float64)
    assert function(rows)[0, 0].isnan()
