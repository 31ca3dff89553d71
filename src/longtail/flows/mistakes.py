"""Which classes are taken for which: group by group, and the worst pairs of classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from longtail.core.arrays import as_numpy
from longtail.flows.samples import BeforeAfter, Integers

_MOST_PAIRS = 10


class Pair(NamedTuple):
    """A class that is taken for another.

    Attributes:
        true: The class.
        taken: What it is taken for.
        samples: How many samples it has here.
        shares: The share of them that is taken for the other, before, and after if that differs.
    """

    true: int
    taken: int
    samples: int
    shares: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Mistakes:
    """The mistakes of the samples.

    Attributes:
        confusions: By side a row for each group of true classes: the share right, then the share
            wrong in each group. A sample counts one over those of its class, so that classes count
            the same; NaN in the row of a group without samples.
        pairs: What the rarer half of the classes loses most samples to before, the worst first.
    """

    confusions: dict[str, npt.NDArray[np.float64]]
    pairs: tuple[Pair, ...]


def find_mistakes(samples: BeforeAfter) -> Mistakes:
    """Count the mistakes of both sides."""
    taken = {name: as_numpy(scores.predict()) for name, scores in samples.sides.items()}
    return Mistakes(
        {name: _confusion(samples, side) for name, side in taken.items()},
        tuple(_pairs(samples, list(taken.values()))),
    )


def _confusion(samples: BeforeAfter, taken: Integers) -> npt.NDArray[np.float64]:
    weights = 1 / samples.label_counts[samples.labels]
    right, groups = taken == samples.labels, samples.groups.values()
    rows = []
    for mask in groups:
        own = mask[samples.labels]
        ends = [own & right, *(own & ~right & other[taken] for other in groups)]
        total = weights[own].sum() if own.any() else np.nan
        rows.append([weights[end].sum() / total for end in ends])
    return np.array(rows)


def _pairs(samples: BeforeAfter, taken: list[Integers]) -> list[Pair]:
    labels, classes = samples.labels, samples.num_classes
    rare = np.zeros(classes, dtype=bool)
    rare[samples.order[classes // 2 :]] = True
    wrong = (taken[0] != labels) & rare[labels]
    cells, times = np.unique(labels[wrong] * classes + taken[0][wrong], return_counts=True)
    # The most samples first; of equally many those that are the larger share of their class.
    share = times / samples.label_counts[cells // classes]
    worst = np.argsort(-(times + share * 0.5), kind="stable")[:_MOST_PAIRS]
    pairs = []
    for true, other in (divmod(cell, classes) for cell in cells[worst].tolist()):
        own = labels == true
        shares = tuple(float((side[own] == other).mean()) for side in taken)
        pairs.append(Pair(true, other, int(own.sum()), shares))
    return pairs
