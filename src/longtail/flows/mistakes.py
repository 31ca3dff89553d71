"""Which classes are taken for which, before and after."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from longtail.core.arrays import as_numpy
from longtail.flows.samples import BeforeAfter
from longtail.metrics.confusion import group_confusion, most_mistaken

_PAIRS = 10  # of classes that are mistaken for each other

Floats = npt.NDArray[np.float64]


class Pair(NamedTuple):
    """A class that is taken for another."""

    true: int  # the class
    taken: int  # what it is taken for
    samples: int  # how many samples it has here
    shares: tuple[float, ...]  # of them taken for the other, before, and after if that differs


@dataclass(frozen=True, eq=False)
class Mistakes:
    """The mistakes of the samples.

    Attributes:
        confusions: By side a row for each group of true classes: the share right, then the share
            wrong in each group. Classes count the same; NaN for a group without samples.
    """

    confusions: dict[str, Floats]
    pairs: tuple[Pair, ...]  # what the rarer half of the classes loses most to, the worst first


def mistakes_of(samples: BeforeAfter) -> Mistakes:
    """Count the mistakes of both sides."""
    labels, classes = samples.labels, samples.num_classes
    taken = {name: as_numpy(scores.predict()) for name, scores in samples.sides.items()}
    rare = np.zeros(classes, dtype=bool)
    rare[samples.order[classes // 2 :]] = True
    pairs = []
    for worst in most_mistaken(taken[samples.names[0]], labels, classes, classes=rare, most=_PAIRS):
        own = labels == worst.true
        shares = tuple(float((side[own] == worst.taken_for).mean()) for side in taken.values())
        pairs.append(Pair(worst.true, worst.taken_for, int(own.sum()), shares))
    confusions = {
        name: group_confusion(side, labels, classes, groups=samples.groups)
        for name, side in taken.items()
    }
    return Mistakes(confusions, tuple(pairs))
