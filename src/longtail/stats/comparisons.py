r"""Many comparisons at once: Holm's correction, and ranks of methods over seeds and sets.

Of m probabilities in rising order Holm compares the j-th with α/(m − j + 1), until the first that
is not below: it and all after it may be chance, and the chance that any of those before is wrongly
called real is α. The adjusted probabilities are what α would have had to be.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

import numpy as np

from longtail.core.arrays import Floats, Numbers


class HolmResult(NamedTuple):
    """A comparison after the correction."""

    p: float  # adjusted
    level: float  # what the probability was compared with
    real: bool  # whether it is below


def holm(probabilities: Sequence[float], alpha: float = 0.05) -> list[HolmResult]:
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


@dataclass(frozen=True)
class Ranks:
    """Average ranks, 1 the best, equal values sharing the mean of theirs."""

    mean: Mapping[str, float]  # of each method
    blocks: int  # over how many rankings
    over: str  # what they are rankings of, in words


def ranks(values: Numbers) -> Floats:
    """The rank of each value, 1 the smallest.

    >>> ranks(np.array([0.4, 0.5, 0.5])).tolist()
    [1.0, 2.5, 2.5]
    """
    order = np.sort(values)
    below = np.searchsorted(order, values, side="left")
    return np.asarray((below + np.searchsorted(order, values, side="right") + 1) / 2)


def rank_correlation(first: Numbers, second: Numbers) -> float:
    """Spearman's; NaN for fewer than two values, or where all are alike."""
    if len(first) < 2:
        return float("nan")
    a, b = (each - each.mean() for each in (ranks(first), ranks(second)))
    scale = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / scale if scale > 0 else float("nan")


def ranked(values: Mapping[str, float]) -> dict[str, float]:
    """The rank of each, 1 the largest."""
    return dict(zip(values, ranks(-np.array(list(values.values()))).tolist(), strict=True))


def average_ranks(blocks: Sequence[Mapping[str, float]], over: str) -> Ranks:
    """Ranks averaged over blocks, each a value for every method, more the better.

    >>> average_ranks([{"CE": 0.40, "LA": 0.5}, {"CE": 0.45, "LA": 0.44}], "seeds").mean
    {'CE': 1.5, 'LA': 1.5}
    """
    each = [ranked(block) for block in blocks]
    names = blocks[0] if blocks else ()
    return Ranks({name: fmean(block[name] for block in each) for name in names}, len(blocks), over)


def seed_blocks(methods: Mapping[str, Mapping[str, float]]) -> list[dict[str, float]]:
    """From each method's values by seed a block for each seed that all methods have, if any."""
    if not methods:
        return []
    shared = set.intersection(*map(set, methods.values()))
    return [{name: values[seed] for name, values in methods.items()} for seed in sorted(shared)]
