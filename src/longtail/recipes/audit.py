r"""The audit: how long the tail of some labels is, and what a held-out set can say about it.

With the shares p of the training set and q of the held-out one:

    total variation    ½·Σ_y |p_y - q_y|              the share that would have to change class
    divergence         Σ_y q_y·log(q_y / p_y)         in nats
    χ²                 Σ_y (n_y·√(m/n) - m_y·√(n/m))² / (n_y + m_y)         for counts n_y and m_y

where χ² has as many degrees of freedom as there are classes less one if both sets follow one prior;
its cube root is then nearly normal (Wilson and Hilferty 1931).
A recall measured on m samples has a standard error of at most ½/√m, and the mean of K of them one
of at most √(Σ_k 1/(4·m_k)) / K.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
import numpy.typing as npt

from longtail.core import Prior, shot_groups
from longtail.core.retarget import prior_offset
from longtail.core.tensors import as_tensor, count_tensor
from longtail.recipes.label_profile import Profile, names_where, profile_of
from longtail.stats import chi_square_score

# Up to this ratio logits start 0.4 nats apart at the most: little that a method could win back.
_BALANCED = 1.5
_SHOWN_MOVES = 5
_RARE = 2.33  # standard deviations that one set in a hundred exceeds by chance
_NOTABLE = 0.05


@dataclass(frozen=True)
class Group:
    """Classes with many, medium or few training samples, and what is held out of them.

    Attributes:
        name: "many" (over 100 training samples), "medium" or "few" (under 20).
        num_classes: How many classes that are, those without samples included.
        num_samples: Their training samples.
        tested_classes: How many of them have held-out samples; None without a held-out set.
        tested_samples: Their held-out samples.
        median: Held-out samples of the middle one of the tested classes.
        class_error: The largest standard error of a recall on that many, in points.
        mean_error: The largest standard error of the mean recall of the group, in points.
    """

    name: str
    num_classes: int
    num_samples: int
    tested_classes: int | None = None
    tested_samples: int | None = None
    median: float | None = None
    class_error: float | None = None
    mean_error: float | None = None


@dataclass(frozen=True)
class Move:
    """A class with its share of both sets."""

    name: str
    train: float
    test: float


@dataclass(frozen=True)
class Shift:
    """How far the prior of the held-out set is from that of the training set.

    Attributes:
        total_variation: The share of samples that would have to change class.
        by_chance: About what it would be if both sets were drawn from one prior.
        to_uniform: The total variation between the held-out set and a balanced one.
        surprise: By how many standard deviations χ² is larger than it would be then.
        divergence: In nats; classes without training samples count half a sample there.
        moves: The classes whose shares differ most.
        not_in_test: Classes that have training samples only.
        not_in_train: Classes that have held-out samples only.
    """

    total_variation: float
    by_chance: float
    to_uniform: float
    surprise: float
    divergence: float
    moves: tuple[Move, ...]
    not_in_test: tuple[str, ...]
    not_in_train: tuple[str, ...]

    @property
    def is_real(self) -> bool:
        """Whether the sets differ by more than chance, and by enough to matter.

        An accuracy differs between two priors by their total variation at the most.
        """
        return self.surprise > _RARE and self.total_variation > _NOTABLE


@dataclass(frozen=True)
class Audit:
    """What the labels say before anything is trained."""

    train: Profile
    groups: tuple[Group, ...]
    test: Profile | None
    shift: Shift | None

    @property
    def bias(self) -> float:
        """By how many nats the logits of the smallest class start behind those of the largest."""
        return math.log(self.train.imbalance_ratio)

    @property
    def has_tail(self) -> bool:
        """Whether there is imbalance enough to correct."""
        return self.train.imbalance_ratio > _BALANCED

    @property
    def tests_balanced(self) -> bool:
        """Whether the held-out set has all classes, and about equally often."""
        test = self.test
        return test is not None and test.imbalance_ratio <= _BALANCED and not test.absent

    def as_json(self) -> dict[str, object]:
        """Everything as plain values."""
        return asdict(self) | {"bias": self.bias}


def audit_counts(
    train: Sequence[int], test: Sequence[int] | None = None, classes: Sequence[str] | None = None
) -> Audit:
    """Audit class counts, with those of a held-out set if there is one.

    Args:
        train: Training samples of each class.
        test: Held-out samples of each class.
        classes: The names of the classes; by default their indices.

    >>> found = audit_counts([900, 90, 10], test=[50, 50, 50], classes=["cat", "dog", "fox"])
    >>> found.bias, found.shift.total_variation, found.shift.divergence
    (4.50, 0.567, 1.274)
    >>> [(group.name, group.num_classes, group.class_error) for group in found.groups]
    [('many', 1, 7.07), ('medium', 1, 7.07), ('few', 1, 7.07)]
    """
    seen = count_tensor(train).numpy()
    names = tuple(map(str, range(len(seen)) if classes is None else classes))
    if len(names) != len(seen):
        raise ValueError(f"classes must name each of {len(seen)} classes, got {len(names)} names")
    if test is None:
        return Audit(profile_of(seen, names), _groups(seen), None, None)
    held_out = count_tensor(test, len(seen)).numpy()
    return Audit(
        train=profile_of(seen, names),
        groups=tuple(
            _tested(group, held_out[np.asarray(mask)])
            for group, mask in zip(_groups(seen), shot_groups(seen).values(), strict=True)
        ),
        test=profile_of(held_out, names),
        shift=_shift(seen, held_out, names),
    )


def _groups(train: npt.NDArray[np.int64]) -> tuple[Group, ...]:
    masks = {name: np.asarray(mask) for name, mask in shot_groups(train).items()}
    return tuple(
        Group(name, int(mask.sum()), int(train[mask].sum())) for name, mask in masks.items()
    )


def _tested(group: Group, test: npt.NDArray[np.int64]) -> Group:
    some = test[test > 0]
    group = replace(group, tested_classes=len(some), tested_samples=int(some.sum()))
    if not len(some):
        return group
    median = float(np.median(some))
    return replace(
        group,
        median=median,
        class_error=50 / math.sqrt(median),
        mean_error=50 * math.sqrt((1 / some).sum()) / len(some),
    )


def _shift(
    train: npt.NDArray[np.int64], test: npt.NDArray[np.int64], names: tuple[str, ...]
) -> Shift:
    p, q = train / train.sum(), test / test.sum()
    both = (train + test) / (train.sum() + test.sum())
    # A share varies by p(1-p)/n, and a normal number is off by √(2/π) of its spread on average.
    spread = np.sqrt(both * (1 - both) * (1 / train.sum() + 1 / test.sum()))
    ratios = as_tensor(
        prior_offset(Prior.of(train, zeros="smooth"), Prior.of(test, zeros="keep"))
    ).numpy()
    order = np.argsort(-np.abs(p - q), kind="stable")[:_SHOWN_MOVES]
    return Shift(
        total_variation=float(np.abs(p - q).sum() / 2),
        by_chance=float(spread.sum() * math.sqrt(2 / math.pi) / 2),
        to_uniform=float(np.abs(q - 1 / len(q)).sum() / 2),
        surprise=_surprise(train, test),
        divergence=float((q[q > 0] * ratios[q > 0]).sum()),
        moves=tuple(Move(names[at], float(p[at]), float(q[at])) for at in order if p[at] != q[at]),
        not_in_test=names_where((train > 0) & (test == 0), names),
        not_in_train=names_where((train == 0) & (test > 0), names),
    )


def _surprise(train: npt.NDArray[np.int64], test: npt.NDArray[np.int64]) -> float:
    some = (train + test) > 0
    free = int(some.sum()) - 1
    if not free:
        return 0.0
    n, m = train[some], test[some]
    scale = math.sqrt(m.sum() / n.sum())
    chi2 = float(((n * scale - m / scale) ** 2 / (n + m)).sum())
    return chi_square_score(chi2, free)
