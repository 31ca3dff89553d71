"""Smooth minimisation in NumPy: L-BFGS of SciPy, to the precision of the numbers."""

from collections.abc import Callable

import numpy as np

from longtail.core.arrays import Floats as Floats


class UnsettledError(ValueError):
    """No minimum was found: of samples that have none in reach, by their number or their scale."""


def minimise(
    value_and_gradient: Callable[[Floats], tuple[float, Floats]],
    start: Floats,
    *,
    max_iter: int,
    tolerance: float,
) -> tuple[Floats, float]:
    """A minimum of the objective, and the largest entry of its gradient there.

    It stops when no entry of the gradient is larger than the tolerance, when no step along the
    direction lowers the value any more, or after `max_iter` iterations.
    """
    from scipy.optimize import minimize

    limits = {"maxiter": max_iter, "maxfun": 2 * max_iter, "gtol": tolerance, "ftol": 0.0}
    options = limits | {"maxcor": 20}
    end = minimize(value_and_gradient, start, jac=True, method="L-BFGS-B", options=options)
    return np.asarray(end.x), float(np.abs(end.jac).max())
