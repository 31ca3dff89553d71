r"""Holm's correction: many comparisons, and a chance of α that any of them is wrongly called real.

Of m probabilities in rising order the j-th is compared with α/(m − j + 1), until the first that is
not below: it and all after it may be chance. The adjusted ones are what α would have had to be.
"""

from collections.abc import Sequence
from typing import NamedTuple

ALPHA = 0.05


class HolmResult(NamedTuple):
    """A comparison after the correction.

    Attributes:
        p: The adjusted probability.
        level: What the probability was compared with.
        real: Whether it is below.
    """

    p: float
    level: float
    real: bool


def holm(probabilities: Sequence[float], alpha: float = ALPHA) -> list[HolmResult]:
    """Every comparison after the correction, in the order given.

    >>> [(round(each.p, 3), each.real) for each in holm([0.04, 0.001, 0.03])]
    [(0.06, False), (0.003, True), (0.06, False)]
    """
    order = sorted(range(len(probabilities)), key=probabilities.__getitem__)
    results: dict[int, HolmResult] = {}
    highest, level, real = 0.0, alpha, True
    for rank, index in enumerate(order):
        left = len(order) - rank
        highest = max(highest, min(1.0, left * probabilities[index]))
        if real:
            level = alpha / left
            real = probabilities[index] <= level
        results[index] = HolmResult(highest, level, real)
    return [results[index] for index in range(len(order))]
