"""L-BFGS with a given first guess of the inverse Hessian."""

import math

import pytest
import torch
from torch.testing import assert_close

from longtail.engine.convex_descent import descend

SIZES = torch.logspace(-2, 2, 40, dtype=torch.float64)
TARGET = torch.linspace(-1, 2, 40, dtype=torch.float64)


class Quadratic:
    """½ Σ size · (x − target)², counting how often it is looked at."""

    def __init__(self):
        self.evaluations = 0

    def __call__(self, at):
        self.evaluations += 1
        away = at - TARGET
        return 0.5 * float(SIZES @ away.square()), SIZES * away


def exact(at):
    return lambda vector: vector / SIZES


def nothing(at):
    return torch.clone


def run(function, inverse, max_iter=200, tolerance=1e-10, **options):
    start = torch.zeros(40, dtype=torch.float64)
    return descend(function, start, inverse, max_iter=max_iter, tolerance=tolerance, **options)


def test_with_the_true_inverse_hessian_a_quadratic_is_solved_in_one_step_after_it_is_asked_for():
    steps = []
    found = run(Quadratic(), exact, tolerance=1e-9, progress=lambda *step: steps.append(step))
    assert_close(found.at, TARGET)
    assert len(steps) <= 8 + 3
    assert found.value < 1e-18


def test_a_guess_that_knows_nothing_comes_there_too_but_later():
    plain, helped = Quadratic(), Quadratic()
    assert_close(run(plain, nothing, max_iter=2000, tolerance=1e-7).at, TARGET, rtol=0, atol=1e-3)
    run(helped, exact, tolerance=1e-7)
    assert helped.evaluations < plain.evaluations / 3


@pytest.mark.parametrize("factor", [1e-4, 1.0, 1e4])
def test_steep_exponentials_and_a_badly_scaled_guess_do_not_stop_it(factor):
    # Σ exp(x) − 3x: least at log 3; a first step of one along the slope overflows for large ones.
    def evaluate(at):
        return float((1e3 * (at.exp() - 3 * at)).sum()), 1e3 * (at.exp() - 3)

    found = run(evaluate, lambda at: lambda vector: factor * vector)
    assert_close(found.at, torch.full_like(found.at, math.log(3)), rtol=1e-9, atol=0)


def test_it_ends_where_rounding_does_and_after_max_iter():
    def rounded(at):
        value, gradient = quadratic(at)
        return round(value, 2), gradient.float().double()

    quadratic = Quadratic()
    found = run(rounded, exact, tolerance=0.0, max_iter=60)
    assert_close(found.at, TARGET, rtol=1e-6, atol=1e-6)
    assert quadratic.evaluations < 60 * 21
    steps = []
    run(Quadratic(), nothing, max_iter=3, progress=lambda *step: steps.append(step))
    assert len(steps) == 3
    assert steps[-1][1] < steps[0][1]


def test_a_function_that_is_no_number_ends_it():
    start = torch.zeros(2, dtype=torch.float64)
    found = descend(
        lambda at: (math.nan, torch.ones_like(at)), start, nothing, max_iter=9, tolerance=0.1
    )
    assert torch.equal(found.at, start)
