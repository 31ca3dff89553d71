"""Ranks of methods over seeds and sets: how steady an order is, whatever the size of the steps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean


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


def ranked(values: Mapping[str, float]) -> dict[str, float]:
    """The rank of each, 1 the largest; equal ones share the mean of theirs.

    >>> ranked({"CE": 0.4, "LA": 0.5, "BS": 0.5})
    {'CE': 3.0, 'LA': 1.5, 'BS': 1.5}
    """
    return {
        name: 0.5
        + sum(other > value for other in values.values())
        + 0.5 * sum(other == value for other in values.values())
        for name, value in values.items()
    }


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
