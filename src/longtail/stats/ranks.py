"""Ranks, equal values sharing the mean of theirs: of methods over seeds and sets, of classes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Ranks:
    """Average ranks, 1 the best.

    Attributes:
        mean: Of each method.
        blocks: Over how many rankings.
        over: What they are rankings of, in words.
    """

    mean: Mapping[str, float]
    blocks: int
    over: str


def ranks(values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """The rank of each value, 1 the smallest.

    >>> ranks(np.array([0.4, 0.5, 0.5])).tolist()
    [1.0, 2.5, 2.5]
    """
    order = np.sort(values)
    below = np.searchsorted(order, values, side="left")
    return np.asarray((below + np.searchsorted(order, values, side="right") + 1) / 2)


def rank_correlation(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> float:
    """Spearman's; NaN for fewer than two values, or where all are alike.

    >>> rank_correlation(np.array([0.1, 0.4, 0.2]), np.array([90, 5, 30]))
    -1.0
    """
    if len(first) < 2:
        return float("nan")
    a, b = (each - each.mean() for each in (ranks(first), ranks(second)))
    scale = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / scale if scale > 0 else float("nan")


def ranked(values: Mapping[str, float]) -> dict[str, float]:
    """The rank of each, 1 the largest.

    >>> ranked({"CE": 0.4, "LA": 0.5, "BS": 0.5})
    {'CE': 3.0, 'LA': 1.5, 'BS': 1.5}
    """
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
    """A block for each seed that all methods have; none if they have none in common.

    Args:
        methods: Of each method the value of each seed.
    """
    if not methods:
        return []
    shared = set.intersection(*(set(values) for values in methods.values()))
    return [{name: values[seed] for name, values in methods.items()} for seed in sorted(shared)]
