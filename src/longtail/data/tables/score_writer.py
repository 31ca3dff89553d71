"""Writing scores a block of rows at a time, whole or not at all.

The header and everything small comes first, then the rows as they arrive. A .safetensors file is
what `Scores.save` writes and `Scores.load` reads; an .npy file holds the logits alone.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from longtail.core import PriorLike, Scores
from longtail.core.arrays import ArrayLike, as_numpy
from longtail.core.files import written_whole
from longtail.core.labels import check_labels
from longtail.core.score_checks import check_ids
from longtail.core.scores import Split
from longtail.core.scores_file import described
from longtail.core.tensor_file import begin_tensor_file, can_store


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

    Args:
        path: A .safetensors file, which `Scores.load` reads, or an .npy file of the logits alone.
        num_rows: How many rows will come.
        num_classes: How many logits a row has.
        dtype: What they are stored as: float16, float32 or float64.
        labels: The true classes.
        carried: The prior the logits carry.
        counts: Training samples of each class.
        classes: The names of the classes.
        split: What the samples may be used for.
        ids: What tells the samples apart, a number or a text each.

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
    known_ids = None if ids is None else check_ids(ids, num_rows)
    with written_whole(target) as part, part.open("wb") as file:
        if ending == ".npy":
            header = {"descr": npy.dtype_to_descr(stored), "fortran_order": False, "shape": shape}
            npy.write_array_header_1_0(file, header)
        else:
            small, metadata = described(facts.carried, facts.classes, facts.split, known_ids)
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
