r"""A table of scores: a file with one row a sample, read a block of rows at a time.

Whether it holds logits or probabilities is said by the caller and never guessed. Blocks are always
logits: probabilities p come as log p, which carry whatever prior the logits behind them carry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from longtail.core import Prior, PriorLike, Scores
from longtail.core.arrays import ArrayLike
from longtail.core.blocks import BLOCK
from longtail.core.memory import check_memory
from longtail.core.probabilities import (
    FIRST_ROWS,
    NotLogitsError,
    RowSums,
    kind_in_words,
    log_probs,
)
from longtail.core.scores import Split
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
    ids: npt.NDArray[Any] | None = None
    counts: npt.NDArray[Any] | None = None
    carried: Prior | None = None
    split: Split | None = None
    array: str | None = None
    by_longtail: bool = False


class Block(NamedTuple):
    """Rows of a table that follow each other: the number of the first, logits (n, C), labels."""

    start: int
    logits: Matrix
    labels: npt.NDArray[np.int64] | None


@dataclass(frozen=True, eq=False, repr=False)
class ScoreTable:
    """A file of scores that is never held in memory whole. `open_score_table` makes it.

    `kind` says whether it holds "logits" or "probs"; labels, int64, classes and training counts are
    None where nobody knows them.
    """

    path: Path
    kind: Kind
    labels: npt.NDArray[np.int64] | None
    classes: tuple[str, ...] | None
    counts: npt.NDArray[np.int64] | None
    contents: Contents

    @property
    def carried(self) -> Prior | None:
        """The prior the logits carry, if the file says so."""
        return self.contents.carried

    @property
    def ids(self) -> npt.NDArray[Any] | None:
        """What tells the samples apart, if the file has it."""
        return self.contents.ids

    @property
    def split(self) -> Split | None:
        """What the samples may be used for, if the file says so."""
        return self.contents.split

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
        if not next(self._sums(FIRST_ROWS)).may_be_probs:
            return
        for seen in accumulate(self._sums(BLOCK // self.num_classes), RowSums.joined):
            if not seen.may_be_probs:
                return
        if seen.total is not None:
            named = "" if self.contents.array is None else f" --array {self.contents.array}"
            raise NotLogitsError(
                f"{self.path} was said to hold logits, but holds {kind_in_words(seen.total)}; say "
                f"--kind probs{named} (in Python kind='probs'; for compare call the array probs)"
            )

    def as_scores(
        self,
        carried: PriorLike | None = None,
        counts: ArrayLike | None = None,
        split: Split | None = None,
        rows: npt.NDArray[np.integer[Any]] | None = None,
    ) -> Scores:
        """The table in memory, or some of its rows; what is not given is what the file says.

        Args:
            carried: The prior the logits carry.
            counts: Training samples of each class.
            split: What the samples may be used for.
            rows: Positions of rows in ascending order; None for all of them.
        """
        number = self.num_rows if rows is None else len(rows)
        size = number * self.num_classes * self.dtype.itemsize
        check_memory(size, f"the scores of {self.path}")
        logits = np.empty((number, self.num_classes), self.dtype)
        for block in self.blocks():
            stop = block.start + len(block.logits)
            if rows is None:
                logits[block.start : stop] = block.logits
            else:
                first, last = np.searchsorted(rows, (block.start, stop))
                logits[first:last] = block.logits[rows[first:last] - block.start]
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

    def _sums(self, rows: int) -> Iterator[RowSums]:
        for stored in self.contents.read(max(1, rows)):
            yield RowSums.of(stored.astype(self.dtype, copy=False))

    def _as_logits(self, rows: Matrix, start: int) -> Matrix:
        # The largest of a row is NaN if any is, +inf if any is, and -inf if there is nothing else.
        wrong = ~np.isfinite(rows.max(axis=1))
        if wrong.any():
            row = int(wrong.argmax())
            column = int((~(rows[row] < np.inf)).argmax())
            raise ValueError(
                f"{self.path} must hold numbers below +inf with one finite value in every row, "
                f"got {rows[row, column]} in row {start + row}, class {column}; "
                "the model that made them has diverged, or a value is missing"
            )
        if self.kind == "logits":
            return rows
        advice = "say --kind logits (kind='logits' in Python)"
        return log_probs(rows, str(self.path), advice, first_row=start)
