"""Scores in a file with one row a sample, read and written a block of rows at a time.

Whether it holds logits or probabilities is said by the caller and never guessed. Blocks are always
logits: probabilities p come as log p, which carry whatever prior the logits behind them carry.

A file is written the same way, whole or not at all: the header and everything small comes first,
then the rows as they arrive. A .safetensors file is what `Scores.save` writes and `Scores.load`
reads; an .npy file holds the logits alone.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from longtail.core import Prior, PriorLike, Scores, probabilities
from longtail.core.arrays import ArrayLike, Indices, Numbers, as_numpy
from longtail.core.blocks import BLOCK
from longtail.core.files import written_whole
from longtail.core.labels import check_labels
from longtail.core.memory import check_memory
from longtail.core.retarget import check_finite
from longtail.core.score_checks import check_ids
from longtail.core.scores import Split
from longtail.core.scores_file import described
from longtail.core.tensor_file import begin_tensor_file, can_store
from longtail.data.tables.label_codes import LabelCodes

Kind: TypeAlias = Literal["logits", "probs"]
Matrix: TypeAlias = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class Contents:
    """What the reader of a format finds in a file of scores, all as it is stored.

    `read` yields blocks of at most so many rows; `array` is the name of the scores in a file of
    named arrays; in a file that longtail wrote logits were looked at before.
    """

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    read: Callable[[int], Iterator[Matrix]]
    labels: LabelCodes | None = None
    classes: tuple[str, ...] | None = None
    ids: Numbers | None = None
    counts: Numbers | None = None
    carried: Prior | None = None
    split: Split | None = None
    array: str | None = None
    by_longtail: bool = False


class Block(NamedTuple):
    """Rows of a table that follow each other: the number of the first, logits (n, C), labels."""

    start: int
    logits: Matrix
    labels: Indices | None


@dataclass(frozen=True, eq=False, repr=False)
class ScoreTable:
    """A file of scores that is never held in memory whole. `open_score_table` makes it.

    What belongs to `Scores` is None where neither the file nor the caller says it.
    """

    path: Path
    kind: Kind
    contents: Contents
    labels: Indices | None
    classes: tuple[str, ...] | None
    counts: Indices | None
    carried: Prior | None
    split: Split | None
    ids: Numbers | None

    @property
    def num_rows(self) -> int:
        """How many samples there are."""
        return self.contents.shape[0]

    @property
    def num_classes(self) -> int:
        """How many classes there are."""
        return self.contents.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The floating type of the blocks."""
        stored = self.contents.dtype
        widened = self.kind == "probs" and stored == np.float16  # its logarithms would be coarse
        return np.dtype(np.float32) if widened else stored

    def blocks(self, numbers: int = BLOCK) -> Iterator[Block]:
        """All rows in order, checked, as logits; at most that many numbers at a time."""
        start = 0
        for stored in self.contents.read(max(1, numbers // self.num_classes)):
            rows = self._as_logits(stored.astype(self.dtype, copy=False), start)
            stop = start + len(rows)
            yield Block(start, rows, None if self.labels is None else self.labels[start:stop])
            start = stop
        if start != self.num_rows:
            raise ValueError(
                f"{self.path} has {start} rows, but {self.num_rows} when it was opened; "
                "it is cut short, or was changed meanwhile: make it again"
            )

    def check_kind(self) -> None:
        """Raise NotLogitsError if all rows of what was said to be logits are probabilities.

        It stops at the first block that has others, which of logits is the first one.
        """
        if self.kind == "probs" or self.contents.by_longtail:
            return
        first = next(self._sums(probabilities.FIRST_ROWS), None)
        if first is None or not first.may_be_probs:  # of a file without its rows `blocks` tells
            return
        for seen in accumulate(self._sums(BLOCK // self.num_classes), probabilities.RowSums.joined):
            if not seen.may_be_probs:
                return
        if seen.total is not None:
            named = "" if self.contents.array is None else f" --array {self.contents.array}"
            words = probabilities.kind_in_words(seen.total)
            raise probabilities.NotLogitsError(
                f"{self.path} was said to hold logits, but holds {words}; say --kind probs{named} "
                "(in Python kind='probs'; for compare call the array probs)"
            )

    def as_scores(
        self,
        carried: PriorLike | None = None,
        counts: ArrayLike | None = None,
        split: Split | None = None,
        rows: npt.NDArray[np.integer[Any]] | None = None,
        each: Callable[[Block], object] = lambda block: None,
    ) -> Scores:
        """The table in memory, or its `rows` at ascending positions.

        What is not given of `carried`, `counts` and `split` is what the file says. `each` is called
        with every block that is read on the way.
        """
        shape = (self.num_rows if rows is None else len(rows), self.num_classes)
        check_memory(math.prod(shape) * self.dtype.itemsize, f"the scores of {self.path}")
        logits = np.empty(shape, self.dtype)
        for block in self.blocks():
            stop = block.start + len(block.logits)
            if rows is None:
                logits[block.start : stop] = block.logits
            else:
                first, last = np.searchsorted(rows, (block.start, stop))
                logits[first:last] = block.logits[rows[first:last] - block.start]
            each(block)
        chosen = slice(None) if rows is None else rows
        return Scores(
            logits,
            labels=None if self.labels is None else self.labels[chosen],
            carried=self.carried if carried is None else carried,
            counts=self.counts if counts is None else counts,
            classes=self.classes,
            split=split or self.split,
            ids=None if self.ids is None else self.ids[chosen],
            _are_logits=True,
        )

    def __repr__(self) -> str:
        names = ("labels", "classes", "ids", "counts", "carried")
        facts = [name for name in names if getattr(self, name) is not None]
        facts += [f"split={self.split!r}"] if self.split else []
        size = f"{self.num_rows} rows, {self.num_classes} classes of {self.kind}"
        return f"ScoreTable({', '.join([str(self.path.name), size, *facts])})"

    def _sums(self, rows: int) -> Iterator[probabilities.RowSums]:
        for stored in self.contents.read(max(1, rows)):
            yield probabilities.RowSums.of(stored.astype(self.dtype, copy=False))

    def _as_logits(self, rows: Matrix, start: int) -> Matrix:
        check_finite(rows, str(self.path), start)
        if self.kind == "logits":
            return rows
        advice = "say --kind logits (kind='logits' in Python)"
        return probabilities.log_probs(rows, str(self.path), advice, first_row=start)


@dataclass
class ScoreWriter:
    """Takes the rows of a file, one block after the other. `open_score_writer` makes it."""

    path: Path
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    file: IO[bytes]
    written: int = 0

    def write(self, logits: ArrayLike) -> None:
        """Append rows of logits, NumPy or torch."""
        rows = as_numpy(logits)
        num_rows, num_classes = self.shape
        if rows.ndim != 2 or rows.shape[1] != num_classes:
            raise ValueError(
                f"{self.path.name} takes rows of {num_classes} logits, got shape {rows.shape}"
            )
        self.written += len(rows)
        if self.written > num_rows:
            raise ValueError(
                f"{self.path.name} was opened for {num_rows} rows, got {self.written} by now"
            )
        self.file.write(np.ascontiguousarray(rows, self.dtype).data)


@contextmanager
def open_score_writer(
    path: str | os.PathLike[str],
    num_rows: int,
    num_classes: int,
    dtype: npt.DTypeLike = np.float32,
    labels: ArrayLike | None = None,
    carried: PriorLike | None = None,
    counts: ArrayLike | None = None,
    classes: Sequence[str] | None = None,
    split: Split | None = None,
    ids: npt.ArrayLike | None = None,
) -> Iterator[ScoreWriter]:
    """A file of scores to write to; it takes its place if every row was written.

    Logits are stored as float16, float32 or float64. Labels, carried, counts, classes, split and
    ids are those of `Scores`, and are left out of an .npy file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     place = Path(folder) / "scores.safetensors"
    ...     with open_score_writer(place, 3, 2, carried=[90, 10]) as writer:
    ...         writer.write(np.array([[2.0, 1.0], [0.5, 0.0]]))
    ...         writer.write(np.array([[0.0, 1.0]]))
    ...     Scores.load(place)
    Scores(3 samples, 2 classes, carried=Prior([0.9, 0.1]))
    """
    target, stored, shape = Path(path), np.dtype(dtype), (num_rows, num_classes)
    ending = target.suffix.lower()
    if ending not in (".safetensors", ".npy"):
        raise ValueError(f"{target} must end in .safetensors or .npy to take scores; rename it")
    if stored.kind != "f" or not can_store(stored):
        raise ValueError(f"scores are stored as float16, float32 or float64, not as {stored}")
    facts = Scores(np.empty((0, num_classes)), None, carried, counts, classes, split)
    indices = None if labels is None else check_labels(labels, num_classes)
    if indices is not None and len(indices) != num_rows:
        raise ValueError(f"got {num_rows} rows of logits but {len(indices)} labels")
    checked_ids = None if ids is None else check_ids(ids, num_rows)
    with written_whole(target) as part, part.open("wb") as file:
        if ending == ".npy":
            header = {"descr": npy.dtype_to_descr(stored), "fortran_order": False, "shape": shape}
            npy.write_array_header_1_0(file, header)
        else:
            small, metadata = described(facts.carried, facts.classes, facts.split, checked_ids)
            beside = {"labels": indices, "counts": facts.counts}
            small |= {name: array for name, array in beside.items() if array is not None}
            begin_tensor_file(file, metadata, small, "logits", stored, shape)
        writer = ScoreWriter(target, shape, stored, file)
        yield writer
        if writer.written != num_rows:
            raise ValueError(
                f"{target.name} was opened for {num_rows} rows, but {writer.written} came; "
                "nothing was kept of it"
            )
