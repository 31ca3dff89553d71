"""Labelled scores of the same samples before and after, which every judgement looks at.

And their mistakes: which classes are taken for which.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import Any, Literal, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from longtail.core import GroupEdges, Prior, Scores, shot_groups
from longtail.core.arrays import ArrayLike, as_numpy
from longtail.data import long_tailed_subset
from longtail.group_edges import DEFAULT_EDGES
from longtail.metrics.confusion import group_confusion, most_mistaken

# What scores are called before and after they were moved to the target, wherever both are shown.
AS_TRAINED, UNDER_TARGET = "as trained", "under the target"
_PAIRS = 10  # of classes that are mistaken for each other
_FITTED_ON = 2**19  # numbers that a fit for the page looks at: a second or two

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


def are_names(labels: ArrayLike) -> bool:
    """Whether labels are names of classes, not their numbers."""
    return isinstance(next(iter(cast("Iterable[object]", labels)), None), str)


def places_by_id(
    ids: npt.NDArray[Any] | None, others: npt.NDArray[Any] | None
) -> Integers | slice | None:
    """Where samples are among others, None if those are other ones; in order without ids.

    >>> places_by_id(np.array(["a", "b"]), np.array(["b", "a"])).tolist()
    [1, 0]
    """
    if ids is None or others is None:
        return slice(None)
    if "U" in (ids.dtype.kind, others.dtype.kind):  # in text, numbers are text too
        ids, others = ids.astype(str), others.astype(str)
    if np.array_equal(ids, others):
        return slice(None)
    order, others_order = (np.argsort(each, kind="stable") for each in (ids, others))
    if not np.array_equal(ids[order], others[others_order]):
        return None
    places = np.empty(len(ids), dtype=np.int64)
    places[order] = others_order
    return places


class Standing(Enum):
    """Where logits stand, seen from the target."""

    UNDECLARED = "it is not declared what they carry"
    AT_TARGET = "they carry the target"
    ELSEWHERE = "they carry another prior"

    @classmethod
    def of(cls, carried: Prior | None, target: Prior) -> Standing:
        """Of logits that carry this."""
        if carried is None:
            return cls.UNDECLARED
        return cls.AT_TARGET if carried.is_close(target) else cls.ELSEWHERE


@dataclass(frozen=True, eq=False)
class BeforeAfter:
    """The same samples scored before and after.

    Attributes:
        validation: Of the model that `before` is of, if there are any: what the prior of the
            samples is estimated with.
        tau: How far `after` was moved from what `before` carries towards the goal, beside being
            calibrated: 0 for not at all. None where it is no such move, but another model.
        is_cross_fitted: Whether parts of the samples were each moved by a τ of their own, near
            `tau`, that the other parts chose.
    """

    before: Scores  # with labels
    after: Scores  # of the same samples, put in order by their ids; the same if nothing was done
    goal: Prior  # what scores are moved to, and but for an estimated one are measured under
    validation: Scores | None = None
    names: tuple[str, str] = ("before", "after")  # what before and after are called
    tau: float | None = None
    is_cross_fitted: bool = False
    edges: GroupEdges = DEFAULT_EDGES  # of many, medium and few

    def __post_init__(self) -> None:
        before, after = self.before, self.after
        if before.labels is None:
            raise ValueError(
                "a report compares scores with labels, but these have none; "
                "give them: Scores(logits, labels=labels, ...)"
            )
        if not len(before):
            raise ValueError("a report needs at least one sample, got none")
        places = places_by_id(before.ids, after.ids)
        if places is None:
            raise ValueError(
                "before and after must be of the same samples, but have other ids; give the scores "
                "of the same ones, or leave out ids that number the rows"
            )
        if not isinstance(places, slice):
            after = after.take(places)
        if after.labels is None and len(after) == len(before):
            after = replace(after, labels=before.labels)
        same = np.array_equal(self.labels, as_numpy(after.labels))
        if not same or before.num_classes != after.num_classes:
            raise ValueError(
                f"before and after must be of the same samples in the same order; got "
                f"{len(before)} and {len(after)} rows, or other labels"
            )
        if before.classes and after.classes and before.classes != after.classes:
            raise ValueError(
                f"before and after must have the same classes in the same order, got "
                f"{before.classes!r:.80} and {after.classes!r:.80}"
            )
        object.__setattr__(self, "after", after)

    @property
    def num_classes(self) -> int:
        """How many classes there are."""
        return self.before.num_classes

    @property
    def is_changed(self) -> bool:
        """Whether there is an after to compare with."""
        return self.after is not self.before

    @property
    def sides(self) -> dict[str, Scores]:
        """Before, and after where there is one, under their names."""
        both = {self.names[0]: self.before}
        return both | {self.names[1]: self.after} if self.is_changed else both

    @cached_property
    def labels(self) -> Integers:
        """The true classes."""
        return as_numpy(self.before.labels)

    @cached_property
    def label_counts(self) -> Integers:
        """How many of the samples are of each class."""
        return np.bincount(self.labels, minlength=self.num_classes)

    @cached_property
    def counts(self) -> Integers | None:
        """Training samples of each class, if known."""
        counts = self.before.counts if self.before.counts is not None else self.after.counts
        return None if counts is None else as_numpy(counts)

    @property
    def frequencies(self) -> Integers:
        """Training samples of each class, or where they are not known, samples here."""
        return self.label_counts if self.counts is None else self.counts

    @cached_property
    def label_shares(self) -> npt.NDArray[np.float64]:
        """The share of the samples that each class has."""
        return self.label_counts / len(self.labels)

    @property
    def is_move(self) -> bool:
        """Whether the result is the scores before, moved towards the target."""
        return self.tau is not None and self.is_changed

    @property
    def moved_by_tau(self) -> Scores:
        """The scores that τ moves; those of another model are moved themselves."""
        return self.after if self.tau is None else self.before

    @property
    def tau_standing(self) -> Standing:
        """Where the logits that τ moves stand."""
        return Standing.of(self.moved_by_tau.carried, self.goal)

    @cached_property
    def source(self) -> Prior | None:
        """What the logits carried before, or else the training prior; None if neither is known."""
        return self.source_of(self.before) or self.before.carried

    def source_of(self, scores: Scores) -> Prior | None:
        """What the logits carry if that is not the goal, or else the training prior."""
        if scores.carried is not None and not scores.carried.is_close(self.goal):
            return scores.carried
        return None if self.counts is None else Prior.of(self.counts, zeros="smooth")

    @property
    def ordered_by(self) -> Literal["counts", "source", "labels"]:
        """What decides which class is more frequent than another."""
        if self.counts is not None:
            return "counts"
        return "labels" if self.source is None else "source"

    @cached_property
    def order(self) -> Integers:
        """The classes from the most to the least frequent in training, or else in the samples."""
        if self.ordered_by == "source":
            assert self.source is not None
            return np.argsort(-self.source.probs, kind="stable")
        return np.argsort(-self.frequencies, kind="stable")

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes."""
        named = self.before.classes or self.after.classes
        return named or tuple(f"class {k}" for k in range(self.num_classes))

    @cached_property
    def shot_groups(self) -> dict[str, Mask]:
        """Which classes are many-, medium- and few-shot; empty if the counts are not known."""
        if self.counts is None:
            return {}
        return {name: as_numpy(mask) for name, mask in shot_groups(self.counts, self.edges).items()}

    @cached_property
    def groups(self) -> dict[str, Mask]:
        """Those of them that have classes; thirds of the classes where counts are not known."""
        shots = {name: mask for name, mask in self.shot_groups.items() if mask.any()}
        if shots:
            return {f"{name}-shot": mask for name, mask in shots.items()}
        thirds = np.empty_like(self.order)
        thirds[self.order] = np.arange(self.num_classes) * 3 // self.num_classes
        named = {name: thirds == number for number, name in enumerate(("head", "middle", "tail"))}
        return {name: mask for name, mask in named.items() if mask.any()}

    @cached_property
    def some(self) -> Integers:
        """Which samples a fit for the page looks at: all, or the same share of each class."""
        return some_of_each_class(self.labels, self.num_classes)


def some_of_each_class(labels: Integers, num_classes: int) -> Integers:
    """Positions of all samples, or of the same share of each class, but two of each at least."""
    most = max(_FITTED_ON // num_classes, 2 * num_classes)
    if len(labels) <= most:
        return np.arange(len(labels))
    counts = np.bincount(labels, minlength=num_classes)
    share = np.ceil(most / len(labels) * counts).astype(np.int64)
    return np.sort(as_numpy(long_tailed_subset(labels, np.minimum(np.maximum(share, 2), counts))))


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
