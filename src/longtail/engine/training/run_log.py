"""The log of a run: a row an epoch in log.csv, and in TensorBoard's files if asked for.

When a run goes on, both are cut to what its checkpoint knows: no row comes twice.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO

from longtail.core.files import written_whole
from longtail.engine.training.progress import Row

_TRAIN = ("epoch", "step", "lr", "train_loss", "seconds", "images_per_second")
_VALIDATION = ("balanced_accuracy", "accuracy", "nll", "many", "medium", "few")
UNIFORM = "val_uniform_balanced_accuracy"


def columns(validated: bool) -> list[str]:
    """The columns of a log, in order."""
    return [*_TRAIN, *(f"val_{name}" for name in _VALIDATION), UNIFORM] if validated else [*_TRAIN]


def validation_row(metrics: Mapping[str, float | None], uniform: float | None) -> Row:
    """What the log says of a validation: all classes, the groups, and under the uniform prior."""
    return {f"val_{name}": metrics.get(name) for name in _VALIDATION} | {UNIFORM: uniform}


class RunLog:
    """Writes rows as they come.

    Args:
        folder: The run's.
        names: Of the columns.
        history: The rows so far.
        tensorboard: Whether to write TensorBoard's files too.
    """

    def __init__(
        self, folder: Path, names: Sequence[str], history: Sequence[Row], tensorboard: bool
    ) -> None:
        self.place, self.names = folder / "log.csv", list(names)
        with written_whole(self.place) as part, part.open("w", newline="") as file:
            writer = self._writer(file)
            writer.writeheader()
            writer.writerows(history)
        self.board = _board(folder / "tensorboard", len(history)) if tensorboard else None

    def write(self, row: Row) -> None:
        """Add a row, and have it on the disk."""
        try:
            with self.place.open("a", newline="") as file:
                self._writer(file).writerow(row)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise OSError(
                error.errno,
                f"the log could not be written ({error.strerror or error}); make room and start "
                "again, and the run goes on from its last checkpoint",
                str(self.place),
            ) from error
        if self.board is not None:
            for name, value in row.items():
                if value is not None and name not in ("epoch", "step"):
                    self.board.add_scalar(_scalar(name), value, int(row["epoch"] or 0))
            self.board.flush()

    def close(self) -> None:
        """Close TensorBoard's files."""
        if self.board is not None:
            self.board.close()

    def _writer(self, file: TextIO) -> csv.DictWriter[str]:
        return csv.DictWriter(file, self.names, extrasaction="ignore", lineterminator="\n")


def _scalar(name: str) -> str:
    """The name as TensorBoard groups it: train/loss, val/balanced_accuracy."""
    kind, _, rest = name.partition("_")
    return f"{kind}/{rest}" if kind in ("train", "val") else f"train/{name}"


def _board(folder: Path, epochs: int) -> Any:
    try:
        module = import_module("torch.utils.tensorboard")
    except ImportError as error:
        raise ImportError(
            "TensorBoard's files were asked for, but it is not installed; "
            "get it with: pip install longtail[tensorboard]"
        ) from error
    return module.SummaryWriter(str(folder), purge_step=epochs + 1)
