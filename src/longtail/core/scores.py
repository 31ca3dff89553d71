"""Scores: what a model said about a set of samples, with the prior its logits carry."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, cast

import torch
from torch import Tensor

from longtail.core import scores_file
from longtail.core.arrays import Array, ArrayLike, as_kind_of, as_tensor, wide_dtype
from longtail.core.labels import check_counts, check_labels
from longtail.core.prior import Prior, PriorLike, check_same_classes
from longtail.core.probabilities import check_not_probs, log_probs
from longtail.core.retarget import check_logits, retarget

Split: TypeAlias = Literal["train", "validation", "test"]
Rows: TypeAlias = Array | Sequence[Sequence[float]]


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Scores:
    """Logits of N samples and C classes, and what is known about them.

    Probabilities, rows that are non-negative and sum to one, are refused: `from_probs` takes them.
    Arrays come back as the kind the logits came in: NumPy or torch.

    Attributes:
        logits: Shape (N, C). No NaN and no +inf; -inf means that the class is ruled out.
        labels: The true classes, if known.
        carried: The prior the logits carry, or None if that is not known: then `under` refuses.
        counts: Training samples of each class, for many, medium and few.
        classes: The names of the classes.
        split: "train", "validation" or "test": what the samples may be used for.

    >>> scores = Scores([[2.0, 1.0], [0.5, 0.0]], labels=[1, 0], carried=[90, 10])
    >>> scores.predict().tolist()
    [0, 0]
    >>> scores.under(Prior.uniform(2)).predict().tolist()
    [1, 1]
    """

    logits: Array
    labels: Array | None
    carried: Prior | None
    counts: Array | None
    classes: tuple[str, ...] | None
    split: Split | None
    # That it was looked at once. `replace` hands it on: parts of logits may sum to one by accident.
    _are_logits: bool = True

    def __init__(
        self,
        logits: Rows,
        labels: ArrayLike | None = None,
        carried: PriorLike | None = None,
        counts: ArrayLike | None = None,
        classes: Sequence[str] | None = None,
        split: Split | None = None,
        *,
        _are_logits: bool = False,
    ) -> None:
        rows = as_tensor(cast(ArrayLike, logits)).detach()
        _check_rows(rows, "logits")
        if not _are_logits:
            check_not_probs(rows)
        num_classes = rows.shape[1]
        known = None if counts is None else check_counts(counts, num_classes)
        prior = None if carried is None else Prior.of(carried)
        if prior is not None:
            check_same_classes(num_classes, prior, "the logits have", "the carried prior")
        if split not in (None, "train", "validation", "test"):
            raise ValueError(f'split must be "train", "validation" or "test", got {split!r}')
        vars(self).update(
            logits=as_kind_of(rows, logits),
            labels=None if labels is None else as_kind_of(_labels_of(rows, labels), logits),
            carried=prior,
            counts=None if known is None else as_kind_of(known, logits),
            classes=None if classes is None else _check_names(classes, num_classes),
            split=split,
        )

    @classmethod
    def from_probs(
        cls,
        probs: Rows,
        labels: ArrayLike | None = None,
        carried: PriorLike | None = None,
        counts: ArrayLike | None = None,
        classes: Sequence[str] | None = None,
        split: Split | None = None,
    ) -> Scores:
        """From probabilities, whose rows must sum to one, or to 100 in percent.

        A probability of exactly zero is taken for a very small one, with a warning.
        """
        rows = as_tensor(cast(ArrayLike, probs)).detach()
        _check_rows(rows, "probs")
        logs = log_probs(rows, "probs", "pass them to Scores(logits)", stacklevel=3)
        kept = as_kind_of(logs, probs)
        return cls(kept, labels, carried, counts, classes, split, _are_logits=True)

    @property
    def num_classes(self) -> int:
        """How many classes there are."""
        return int(self.logits.shape[1])

    def under(self, target: PriorLike) -> Scores:
        """The same scores moved to a target prior, which they then carry.

        Raises UnknownPriorError if it is not known what they carry now.
        """
        goal = Prior.of(target)
        moved = retarget(self.logits, self.carried, goal)
        if goal.has_zeros:
            _check_class_left(as_tensor(moved))
        return replace(self, logits=moved, carried=goal)

    def probs(self) -> Array:
        """The class probabilities under the carried prior."""
        rows = as_tensor(self.logits)
        return as_kind_of(torch.softmax(rows.to(wide_dtype(rows.dtype)), dim=1), self.logits)

    def predict(self) -> Array:
        """The most likely class of each sample; of equally likely ones the lowest index."""
        return as_kind_of(as_tensor(self.logits).argmax(dim=1), self.logits)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one safetensors file with everything; it replaces an existing one whole."""
        scores_file.write(
            path,
            arrays={"logits": self.logits, "labels": self.labels, "counts": self.counts},
            carried=self.carried,
            classes=self.classes,
            split=self.split,
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Scores:
        """Read what `save` wrote."""
        stored = scores_file.read(path)
        return cls(
            stored.arrays["logits"],
            labels=stored.arrays.get("labels"),
            carried=stored.carried,
            counts=stored.arrays.get("counts"),
            classes=stored.classes,
            split=stored.split,
            _are_logits=True,
        )

    def __len__(self) -> int:
        return int(self.logits.shape[0])

    def __repr__(self) -> str:
        known = [f"carried={self.carried!r}"]
        known += [n for n in ("labels", "counts", "classes") if getattr(self, n) is not None]
        known += [f"split={self.split!r}"] if self.split else []
        return f"Scores({len(self)} samples, {self.num_classes} classes, {', '.join(known)})"


def _check_rows(rows: Tensor, name: str) -> None:
    if rows.dim() != 2 or not rows.shape[1]:
        raise ValueError(
            f"{name} must have shape (samples, classes), got {tuple(rows.shape)}; "
            "a single sample is one row"
        )
    check_logits(rows, rows.shape[1])
    wrong = rows.isnan() | rows.isposinf()
    # A row of nothing but -inf leaves no class to predict.
    wrong |= rows.isneginf().all(dim=1, keepdim=True)
    if wrong.any():
        row, column = wrong.nonzero()[0].tolist()
        raise ValueError(
            f"{name} must be numbers below +inf with one finite value in every row, "
            f"got {rows[row, column]} in row {row}, class {column}; "
            "the model that made them has diverged, or a file was read with the wrong type"
        )


def _check_class_left(rows: Tensor) -> None:
    empty = rows.isneginf().all(dim=1)
    if empty.any():
        raise ValueError(
            f"row {int(empty.nonzero()[0])} has no class left: its logits rule out every class "
            "that the target prior does not; leave such rows out, or use a target without zeros"
        )


def _labels_of(rows: Tensor, labels: ArrayLike) -> Tensor:
    checked = check_labels(labels, rows.shape[1])
    if len(checked) != len(rows):
        raise ValueError(f"got {len(rows)} rows of logits but {len(checked)} labels")
    return checked.to(rows.device)


def _check_names(classes: Sequence[str], num_classes: int) -> tuple[str, ...]:
    names = tuple(classes)
    if isinstance(classes, str) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"classes must be a sequence of names, got {names!r:.80}")
    if len(names) != num_classes or len(set(names)) != len(names):
        raise ValueError(
            f"classes must name each of {num_classes} classes once, "
            f"got {len(names)} names, {len(set(names))} of them different"
        )
    return tuple(map(str, names))  # NumPy's strings are str, but no file format knows them
