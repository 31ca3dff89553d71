r"""What counts say about labels: how long their tail is, and how far two sets differ.

With counts n_y of C classes, n in all, and p_y = n_y / n:

    imbalance ratio      max n_y / min n_y                    over the classes that have samples
    effective classes    exp(-Σ p_y·log p_y)                  C if balanced, 1 if one class has all
    Gini                 Σ_y Σ_z |n_y - n_z| / (2·C·n)        0 if balanced, towards 1 if not

With the shares p of the training set and q of the test set:

    total variation      ½·Σ_y |p_y - q_y|                    what would have to change class
    divergence           Σ_y q_y·log(q_y / p_y)               in nats
    χ²                   Σ_y (n_y·√(m/n) - m_y·√(n/m))² / (n_y + m_y)      for counts n_y and m_y

where χ² has as many degrees of freedom as there are classes less one if both sets follow one prior.
A recall measured on m samples has a standard error of at most ½/√m, and the mean of K of them one
of at most √(Σ_k 1/(4·m_k)) / K.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from longtail.core import GroupEdges, Prior, shot_groups
from longtail.core.retarget import prior_offset
from longtail.stats import chi_square_score

Counts: TypeAlias = npt.NDArray[np.int64]
_SHOWN_MOVES = 5
_STEPS = 100  # of a curve: more look the same
_RARE = 2.33  # standard deviations that one set in a hundred exceeds by chance
_NOTABLE = 0.05


@dataclass(frozen=True)
class ClassCount:
    """A class and how many samples it has."""

    name: str
    count: int


@dataclass(frozen=True)
class Profile:
    """How long the tail of one set is."""

    num_classes: int  # all classes, those without samples included
    num_samples: int  # all samples
    largest: ClassCount  # the class with the most samples
    smallest: ClassCount  # the class with the fewest, of those that have any
    imbalance_ratio: float  # the one over the other
    gini: float  # how unequal the counts are
    effective_classes: float  # so many equally frequent classes would be as hard to guess
    head_share: float  # the share of samples that the largest tenth of the classes has
    single: tuple[str, ...]  # the classes with one sample
    absent: tuple[str, ...]  # the classes without samples


@dataclass(frozen=True)
class Group:
    """Classes with many, medium or few training samples, and what the test set has of them."""

    name: str  # "many", "medium" or "few"
    num_classes: int  # how many classes that are, those without samples included
    num_samples: int  # their training samples
    share: float  # of all training samples
    tested_classes: int | None = None  # how many of them have test samples; None without a test set
    tested_samples: int | None = None  # their test samples
    median: float | None = None  # test samples of the middle one of the tested classes
    class_error: float | None = None  # the largest standard error of a recall on these, in points
    mean_error: float | None = None  # the largest one of the mean recall of the group, in points


@dataclass(frozen=True)
class Move:
    """A class with its share of both sets."""

    name: str
    train: float
    test: float


@dataclass(frozen=True)
class Shift:
    """How far the prior of the test set is from that of the training set."""

    total_variation: float  # the share of samples that would have to change class
    by_chance: float  # about what it would be if both sets were drawn from one prior
    to_uniform: float  # the total variation between the test set and a balanced one
    surprise: float  # by how many standard deviations χ² is larger than it would be then
    divergence: float  # in nats; classes without training samples count half a sample there
    moves: tuple[Move, ...]  # the classes whose shares differ most
    not_in_test: tuple[str, ...]  # classes that have training samples only
    not_in_train: tuple[str, ...]  # classes that have test samples only

    @property
    def is_real(self) -> bool:
        """Whether the sets differ by more than chance, and by enough to matter.

        An accuracy differs between two priors by their total variation at the most.
        """
        return self.surprise > _RARE and self.total_variation > _NOTABLE


def profile_of(counts: Counts, names: tuple[str, ...]) -> Profile:
    """The profile of class counts.

    >>> profile = profile_of(np.array([900, 90, 10]), ("cat", "dog", "fox"))
    >>> profile.imbalance_ratio, profile.gini, profile.effective_classes, profile.head_share
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
        single=_names_where(counts == 1, names),
        absent=_names_where(counts == 0, names),
    )


def groups_of(train: Counts, test: Counts | None, edges: GroupEdges) -> tuple[Group, ...]:
    """Classes with many, medium and few training samples, with their test samples."""
    groups = []
    for name, inside in shot_groups(train, edges).items():
        own = int(train[inside].sum())
        group = Group(name, int(inside.sum()), own, float(own / train.sum()))
        if test is not None:
            some = test[inside & (test > 0)]
            group = replace(group, tested_classes=len(some), tested_samples=int(some.sum()))
            if len(some):
                median, error = float(np.median(some)), 50 * math.sqrt((1 / some).sum()) / len(some)
                alone = 50 / math.sqrt(median)
                group = replace(group, median=median, class_error=alone, mean_error=error)
        groups.append(group)
    return tuple(groups)


def shift_of(train: Counts, test: Counts, names: tuple[str, ...]) -> Shift:
    """How far the counts of the test set are from those of the training set."""
    p, q = train / train.sum(), test / test.sum()
    both = (train + test) / (train.sum() + test.sum())
    # A share varies by p(1-p)/n, and a normal number is off by √(2/π) of its spread on average.
    spread = np.sqrt(both * (1 - both) * (1 / train.sum() + 1 / test.sum()))
    ratios = prior_offset(Prior.of(train, zeros="smooth"), Prior.of(test, zeros="keep"))
    some, scale = both > 0, math.sqrt(test.sum() / train.sum())
    apart = (train * scale - test / scale)[some] ** 2 / (train + test)[some]
    chi2, free = float(apart.sum()), int(some.sum()) - 1
    order = np.argsort(-np.abs(p - q), kind="stable")[:_SHOWN_MOVES]
    return Shift(
        total_variation=float(np.abs(p - q).sum() / 2),
        by_chance=float(spread.sum() * math.sqrt(2 / math.pi) / 2),
        to_uniform=float(np.abs(q - 1 / len(q)).sum() / 2),
        surprise=chi_square_score(chi2, free) if free else 0.0,
        divergence=float((q[q > 0] * ratios[q > 0]).sum()),
        moves=tuple(Move(names[at], float(p[at]), float(q[at])) for at in order if p[at] != q[at]),
        not_in_test=_names_where((train > 0) & (test == 0), names),
        not_in_train=_names_where((train == 0) & (test > 0), names),
    )


def _names_where(mask: npt.NDArray[np.bool_], names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(names[at] for at in np.flatnonzero(mask))


class ShareCurve(NamedTuple):
    """How much of all samples so many classes hold."""

    classes: list[float]  # how many, %
    samples: list[float]  # what they hold, %


def share_curve(counts: Sequence[int], order_by: Sequence[int]) -> ShareCurve:
    """What the classes hold that have most samples by `order_by`, which they are taken in.

    >>> share_curve([6, 1, 3], [9, 5, 7])
    ShareCurve(classes=[0.0, 33.3, 66.7, 100.0], samples=[0.0, 60.0, 90.0, 100.0])
    """
    order, size = np.argsort(-np.asarray(order_by), kind="stable"), len(counts)
    at = np.round(size * np.linspace(0, 1, min(size, _STEPS) + 1)).astype(np.int64)
    held = np.append(0, np.asarray(counts)[order].cumsum())
    return ShareCurve((100 * at / size).tolist(), (100 * held[at] / held[-1]).tolist())
