r"""How long the tail of one set of labels is.

With counts n_y of C classes, n in all, and p_y = n_y / n:

    imbalance ratio      max n_y / min n_y                    over the classes that have samples
    effective classes    exp(-Σ p_y·log p_y)                  C if balanced, 1 if one class has all
    Gini                 Σ_y Σ_z |n_y - n_z| / (2·C·n)        0 if balanced, towards 1 if not
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class ClassCount:
    """A class and how many samples it has."""

    name: str
    count: int


@dataclass(frozen=True)
class Profile:
    """How long the tail is.

    Attributes:
        num_classes: All classes, those without samples included.
        num_samples: All samples.
        largest: The class with the most samples.
        smallest: The class with the fewest, of those that have any.
        imbalance_ratio: The one over the other.
        gini: How unequal the counts are.
        effective_classes: So many equally frequent classes would be as hard to guess.
        head_share: The share of samples that the largest tenth of the classes has.
        single: The classes with one sample.
        absent: The classes without samples.
    """

    num_classes: int
    num_samples: int
    largest: ClassCount
    smallest: ClassCount
    imbalance_ratio: float
    gini: float
    effective_classes: float
    head_share: float
    single: tuple[str, ...]
    absent: tuple[str, ...]


def profile_of(counts: npt.NDArray[np.int64], names: tuple[str, ...]) -> Profile:
    """The profile of class counts.

    >>> found = profile_of(np.array([900, 90, 10]), ("cat", "dog", "fox"))
    >>> found.imbalance_ratio, found.gini, found.effective_classes, found.head_share
    (90.0, 0.593, 1.430, 0.9)
    """
    total, size = int(counts.sum()), len(counts)
    if not total:
        raise ValueError("the class counts are all zero; an audit needs at least one sample")
    first, last = int(counts.argmax()), int(np.where(counts > 0, counts, total + 1).argmin())
    ordered, shares = np.sort(counts), counts[counts > 0] / total
    return Profile(
        num_classes=size,
        num_samples=total,
        largest=ClassCount(names[first], int(counts[first])),
        smallest=ClassCount(names[last], int(counts[last])),
        imbalance_ratio=float(counts[first] / counts[last]),
        # The double sum over all pairs, by one sort.
        gini=float((2 * np.arange(1, size + 1) - size - 1) @ ordered / (size * total)),
        effective_classes=float(np.exp(-(shares * np.log(shares)).sum())),
        head_share=float(ordered[-math.ceil(size / 10) :].sum() / total),
        single=names_where(counts == 1, names),
        absent=names_where(counts == 0, names),
    )


def names_where(mask: npt.NDArray[np.bool_], names: tuple[str, ...]) -> tuple[str, ...]:
    """The names of the classes that the mask holds."""
    return tuple(names[at] for at in np.flatnonzero(mask))
