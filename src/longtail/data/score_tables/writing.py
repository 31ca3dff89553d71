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

import msgspec
import numpy as np
import numpy.typing as npt
import torch
from numpy.lib import format as npy

from longtail.core import PriorLike, Scores
from longtail.core.arrays import ArrayLike
from longtail.core.files import written_whole
from longtail.core.scores import Split
from longtail.core.scores_file import VERSION, Header
from longtail.core.tensor_file import begin_tensor_file, can_store
from longtail.core.tensors import as_tensor, label_tensor


@dataclass
class ScoreWriter:
    """Takes the rows of a file, one block after the other. `open_score_writer` makes it."""

    path: Path
    num_rows: int
    num_classes: int
    dtype: np.dtype[Any]
    file: IO[bytes]
    written: int = 0

    def write(self, logits: ArrayLike) -> None:
        """Append rows of logits, NumPy or torch."""
        rows = as_tensor(logits).detach()
        if rows.dim() != 2 or rows.shape[1] != self.num_classes:
            raise ValueError(
                f"{self.path.name} takes rows of {self.num_classes} logits, "
                f"got shape {tuple(rows.shape)}"
            )
        self.written += len(rows)
        if self.written > self.num_rows:
            raise ValueError(
                f"{self.path.name} was opened for {self.num_rows} rows, got {self.written} by now"
            )
        wanted = getattr(torch, self.dtype.name)
        self.file.write(rows.to("cpu", wanted).contiguous().numpy().data)


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

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     place = Path(folder) / "scores.safetensors"
    ...     with open_score_writer(place, 3, 2, carried=[90, 10]) as writer:
    ...         writer.write(np.array([[2.0, 1.0], [0.5, 0.0]]))
    ...         writer.write(np.array([[0.0, 1.0]]))
    ...     Scores.load(place)
    Scores(3 samples, 2 classes, carried=Prior([0.9, 0.1]))
    """
    place, stored = Path(path), np.dtype(dtype)
    begin = {".safetensors": _begin_safetensors, ".npy": _begin_npy}.get(place.suffix.lower())
    if begin is None:
        raise ValueError(f"{place} must end in .safetensors or .npy to take scores; rename it")
    if stored.kind != "f" or not can_store(stored):
        raise ValueError(f"scores are stored as float16, float32 or float64, not as {stored}")
    known = Scores(np.empty((0, num_classes)), None, carried, counts, classes, split)
    checked = _labels(labels, num_rows, num_classes)
    with written_whole(place) as part, part.open("wb") as file:
        writer = ScoreWriter(place, num_rows, num_classes, stored, file)
        begin(writer, known, checked)
        yield writer
        if writer.written != num_rows:
            raise ValueError(
                f"{place.name} was opened for {num_rows} rows, but {writer.written} came; "
                "nothing was kept of it"
            )


def _labels(
    labels: ArrayLike | None, num_rows: int, num_classes: int
) -> npt.NDArray[np.int64] | None:
    if labels is None:
        return None
    checked = label_tensor(labels, num_classes).cpu().numpy()
    if len(checked) != num_rows:
        raise ValueError(f"got {num_rows} rows of logits but {len(checked)} labels")
    return checked


def _begin_npy(writer: ScoreWriter, known: Scores, labels: npt.NDArray[Any] | None) -> None:
    shape = (writer.num_rows, writer.num_classes)
    said = {"descr": npy.dtype_to_descr(writer.dtype), "fortran_order": False, "shape": shape}
    npy.write_array_header_1_0(writer.file, said)


def _begin_safetensors(writer: ScoreWriter, known: Scores, labels: npt.NDArray[Any] | None) -> None:
    prior = known.carried
    small = {
        "labels": labels,
        "counts": known.counts,
        "carried": None if prior is None else as_tensor(prior.log).numpy(),
        "carried_counts": None
        if prior is None or prior.counts is None
        else as_tensor(prior.counts).numpy(),
    }
    header = Header(VERSION, "numpy", known.classes, known.split)
    begin_tensor_file(
        writer.file,
        metadata={"format": "pt", "longtail": msgspec.json.encode(header).decode()},
        small={name: np.asarray(array) for name, array in small.items() if array is not None},
        name="logits",
        dtype=writer.dtype,
        shape=(writer.num_rows, writer.num_classes),
    )
