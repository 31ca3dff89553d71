"""Scores: what a model said about a set of samples, with the prior its logits carry."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, Self, TypeAlias, cast, overload

import numpy as np
import numpy.typing as npt

from longtail.core import elementwise, scores_file
from longtail.core.arrays import (
    ArrayLike,
    ArrayT,
    RowsLike,
    Table,
    as_array,
    as_numpy,
    is_torch,
    to_kind,
)
from longtail.core.prior import Prior, PriorLike, check_same_classes
from longtail.core.probabilities import check_not_probs, log_probs
from longtail.core.retarget import retarget
from longtail.core.score_checks import (
    check_class_left,
    check_ids,
    check_names,
    check_rows,
    counts_of,
    labels_of,
)

Rows: TypeAlias = RowsLike
Ids: TypeAlias = Sequence[object] | npt.NDArray[Any]
Split: TypeAlias = Literal["train", "validation", "test"]


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Scores(Generic[ArrayT]):
    """Logits of N samples and C classes, and what is known about them.

    Probabilities, rows that are non-negative and sum to one, are refused: `from_probs` takes them.
    Arrays come back as the kind the logits came in: NumPy, torch or JAX. Lists and DataFrames
    become NumPy arrays; the columns of a DataFrame name the classes.

    Attributes:
        logits: Shape (N, C). No NaN and no +inf; -inf means that the class is ruled out.
        labels: The true classes, if known.
        carried: The prior the logits carry, or None if that is not known: then `under` refuses.
        counts: Training samples of each class, for many, medium and few.
        classes: The names of the classes.
        split: "train", "validation" or "test": what the samples may be used for.
        ids: What tells the samples apart, one value each.

    >>> scores = Scores([[2.0, 1.0], [0.5, 0.0]], labels=[1, 0], carried=[90, 10])
    >>> scores.predict().tolist()
    [0, 0]
    >>> scores.under(Prior.uniform(2)).predict().tolist()
    [1, 1]
    """

    logits: ArrayT
    labels: ArrayT | None
    carried: Prior | None
    counts: ArrayT | None
    classes: tuple[str, ...] | None
    split: Split | None
    ids: npt.NDArray[Any] | None
    # That it was looked at once. `replace` hands it on: parts of logits may sum to one by accident.
    _are_logits: bool = True

    @overload
    def __init__(
        self: Scores[npt.NDArray[Any]],
        logits: Table | Sequence[Sequence[float]],
        labels: ArrayLike | None = None,
        carried: PriorLike | None = None,
        counts: PriorLike | None = None,
        classes: Sequence[str] | None = None,
        split: Split | None = None,
        ids: Ids | None = None,
        *,
        _are_logits: bool = False,
    ) -> None: ...

    @overload
    def __init__(
        self,
        logits: ArrayT,
        labels: ArrayLike | None = None,
        carried: PriorLike | None = None,
        counts: PriorLike | None = None,
        classes: Sequence[str] | None = None,
        split: Split | None = None,
        ids: Ids | None = None,
        *,
        _are_logits: bool = False,
    ) -> None: ...

    def __init__(
        self,
        logits: RowsLike,
        labels: ArrayLike | None = None,
        carried: PriorLike | None = None,
        counts: PriorLike | None = None,
        classes: Sequence[str] | None = None,
        split: Split | None = None,
        ids: Ids | None = None,
        *,
        _are_logits: bool = False,
    ) -> None:
        rows, classes = _rows_and_classes(logits, classes)
        check_rows(rows, "logits")
        if not _are_logits:
            check_not_probs(rows)
        vars(self).update(_known(rows, labels, carried, counts, classes, split, ids))

    @classmethod
    def from_probs(
        cls,
        probs: RowsLike,
        labels: ArrayLike | None = None,
        carried: PriorLike | None = None,
        counts: PriorLike | None = None,
        classes: Sequence[str] | None = None,
        split: Split | None = None,
        ids: Ids | None = None,
    ) -> Self:
        """From probabilities, whose rows must sum to one, or to 100 in percent.

        A probability of exactly zero is taken for a very small one, with a warning.
        """
        rows, classes = _rows_and_classes(probs, classes)
        check_rows(rows, "probs")
        logs = to_kind(log_probs(rows, "probs", "pass them to Scores(logits)", stacklevel=3), rows)
        return cls._made(_known(logs, labels, carried, counts, classes, split, ids))

    @property
    def num_classes(self) -> int:
        """How many classes there are."""
        return int(self.logits.shape[1])

    def under(self, target: PriorLike) -> Self:
        """Moved to a target prior; UnknownPriorError if it is not known what they carry now."""
        goal = Prior.of(target, classes=self.classes)
        return self._moved(retarget(self.logits, self.carried, goal), goal)

    def probs(self) -> ArrayT:
        """The class probabilities under the carried prior."""
        return elementwise.softmax(self.logits)

    def predict(self) -> ArrayT:
        """The most likely class of each sample; of equally likely ones the lowest index."""
        return cast(ArrayT, elementwise.argmax(self.logits))

    def take(self, rows: ArrayLike | slice) -> Self:
        """Some of the samples: their positions, a mask, or a slice."""
        at = rows if isinstance(rows, slice) else as_numpy(rows)
        return self._with(
            logits=_taken(self.logits, at),
            labels=None if self.labels is None else _taken(self.labels, at),
            ids=None if self.ids is None else self.ids[at],
        )

    @classmethod
    def concat(cls, parts: Sequence[Scores[ArrayT]]) -> Self:
        """All samples of several scores of the same classes that carry the same prior."""
        first = parts[0]
        for part in parts[1:]:
            differs = [
                name
                for name in ("num_classes", "carried", "classes", "split")
                if getattr(part, name) != getattr(first, name)
            ]
            if differs:
                raise ValueError(
                    f"scores to put together must agree in {' and '.join(differs)}, got "
                    f"{first!r} and {part!r}; move them to one prior with .under(target) first"
                )
        columns: dict[str, Any] = {
            name: _joined([getattr(part, name) for part in parts])
            for name in ("logits", "labels", "ids")
        }
        return cls._made(vars(first) | columns)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one safetensors file with everything; it replaces an existing one whole."""
        scores_file.write(
            path,
            arrays={
                name: as_numpy(array)
                for name in ("logits", "labels", "counts")
                if (array := getattr(self, name)) is not None
            },
            carried=self.carried,
            classes=self.classes,
            split=self.split,
            ids=self.ids,
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Scores[npt.NDArray[Any]]:
        """Read what `save` wrote, as NumPy arrays."""
        stored = scores_file.read(path)
        arrays = stored.arrays
        check_rows(arrays["logits"], "logits")
        return Scores[npt.NDArray[Any]]._made(
            _known(
                arrays["logits"],
                arrays.get("labels"),
                stored.carried,
                arrays.get("counts"),
                stored.classes,
                stored.split,
                stored.ids,
            )
        )

    @classmethod
    def _made(cls, values: dict[str, Any]) -> Self:
        """From values that were checked: logits and what belongs to them."""
        scores = object.__new__(cls)
        vars(scores).update(values)
        return scores

    def _with(self, **changes: Any) -> Self:
        """The same with some values changed, which are not looked at again."""
        return self._made(vars(self) | changes)

    def _moved(self, logits: ArrayT, carried: Prior | None) -> Self:
        """The same samples with other logits, none of them left without a class."""
        if carried is not None and carried.has_zeros:
            check_class_left(logits)
        return self._with(logits=logits, carried=carried)

    def __len__(self) -> int:
        return int(self.logits.shape[0])

    def __repr__(self) -> str:
        known = [f"carried={self.carried!r}"]
        known += [n for n in ("labels", "counts", "classes") if getattr(self, n) is not None]
        known += [f"split={self.split!r}"] if self.split else []
        return f"Scores({len(self)} samples, {self.num_classes} classes, {', '.join(known)})"


def _rows_and_classes(
    rows: RowsLike, classes: Sequence[str] | None
) -> tuple[Any, Sequence[str] | None]:
    """Rows in their kind; the columns of a DataFrame are the classes where none are named."""
    array = as_array(rows)
    columns = getattr(rows, "columns", None)
    if classes is None and columns is not None and all(isinstance(name, str) for name in columns):
        classes = tuple(columns)
    return (array.detach() if is_torch(array) else array), classes


def _known(
    rows: Any,
    labels: object,
    carried: PriorLike | None,
    counts: PriorLike | None,
    classes: Sequence[str] | None,
    split: Split | None,
    ids: object,
) -> dict[str, Any]:
    """The checked values of scores, by attribute."""
    num_classes = rows.shape[1]
    names = None if classes is None else check_names(classes, num_classes)
    prior = None if carried is None else Prior.of(carried, classes=names)
    if prior is not None:
        check_same_classes(num_classes, prior, "the logits have", "the carried prior")
    if split not in (None, "train", "validation", "test"):
        raise ValueError(f'split must be "train", "validation" or "test", got {split!r}')
    return {
        "logits": rows,
        "labels": None if labels is None else labels_of(rows, labels),
        "carried": prior,
        "counts": None if counts is None else to_kind(counts_of(counts, num_classes, names), rows),
        "classes": names,
        "split": split,
        "ids": None if ids is None else check_ids(ids, len(rows)),
    }


def _taken(column: Any, at: Any) -> Any:
    if isinstance(at, slice) or isinstance(column, np.ndarray):
        return column[at]
    return column[to_kind(at, column)]


def _joined(columns: Sequence[Any]) -> Any:
    if any(column is None for column in columns):
        return None
    arrays = [c if isinstance(c, np.ndarray) else as_numpy(c) for c in columns]
    return to_kind(np.concatenate(arrays), columns[0])
