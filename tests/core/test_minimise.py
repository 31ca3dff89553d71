"""L-BFGS in NumPy: to the tolerance."""

import numpy as np

from longtail.core.minimise import minimise


def _distance(x):
    apart = x - np.array([3.0, -1.0])
    return float((apart**4).sum()), 4 * apart**3


def test_it_finds_the_minimum_and_the_gradient_there():
    at, gradient = minimise(_distance, np.zeros(2), max_iter=200, tolerance=1e-9)
    assert gradient <= 1e-9
    np.testing.assert_allclose(at, [3, -1], atol=1e-2)


def test_too_few_iterations_leave_a_gradient_above_the_tolerance():
    assert minimise(_distance, np.zeros(2), max_iter=1, tolerance=1e-9)[1] > 1e-3
