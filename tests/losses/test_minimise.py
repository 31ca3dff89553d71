"""L-BFGS once for all: to the tolerance, under any mode of gradients."""

import pytest
import torch

from longtail.losses.minimise import for_autograd, minimise


@pytest.mark.parametrize("mode", [torch.enable_grad, torch.no_grad])
def test_it_moves_the_parameters_to_the_minimum_and_returns_the_gradient_there(mode):
    x = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    goal = torch.tensor([3.0, -1.0], dtype=torch.float64)
    with mode():
        gradient = minimise(lambda: (x - goal).pow(4).sum(), [x], max_iter=200, tolerance=1e-9)
    assert gradient <= 1e-9
    torch.testing.assert_close(x.detach(), goal, rtol=0, atol=1e-2)


def test_too_few_iterations_leave_a_gradient_above_the_tolerance():
    x = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    assert minimise(lambda: (x - 3).pow(4).sum(), [x], max_iter=1, tolerance=1e-9) > 1e-3


def test_tensors_of_inference_mode_are_copied_for_autograd_and_others_are_not():
    with torch.inference_mode():
        made = torch.ones(2)
        assert not for_autograd(made).is_inference()
    plain = torch.ones(2)
    assert for_autograd(plain) is plain
