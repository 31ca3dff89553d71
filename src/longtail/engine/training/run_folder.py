"""The folder of a run: its checkpoint, and its log with a row an epoch.

Only the first process writes, but for what the processes share, of which each writes its part. When
a run goes on, log.csv and the files of TensorBoard are cut to what its checkpoint knows: no row
comes twice.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO

import torch
from torch import Generator, Tensor

from longtail.core import Prior
from longtail.core.files import written_whole
from longtail.engine.training.checkpoint_folder import (
    Checkpoint,
    read_checkpoint,
    sweep,
    write_checkpoint,
)
from longtail.engine.training.fingerprint import check_task
from longtail.engine.training.learner import Learner
from longtail.engine.training.process_group import current_processes, stacked_over_processes
from longtail.engine.training.run_state import Row, RunState, restore, tensors_of, values_of
from longtail.engine.training.sharding import is_shard, write_shards
from longtail.images import ClassSampler


class RunFolder:
    """Keeps a run, or nothing if there is no folder."""

    def __init__(
        self,
        folder: str | os.PathLike[str] | None,
        task: Mapping[str, Any],
        counts: Tensor,
        validated: bool,
        tensorboard: bool,
    ) -> None:
        self.folder = None if folder is None else Path(folder)
        self.task, self.counts = task, counts.tolist()
        self.names, self.tensorboard = columns(validated), tensorboard
        self.log: RunLog | None = None
        if self.folder is None and tensorboard:
            raise ValueError("TensorBoard's files go to the run folder; give one with run=...")

    def resume(self, learner: Learner, generator: Generator) -> RunState:
        """Where the run is: at its checkpoint, or at the beginning."""
        if self.folder is None:
            return RunState()
        folder = self.folder / "checkpoint"
        checkpoint = read_checkpoint(folder)
        if checkpoint is not None:
            check_task(checkpoint.state["task"], self.task, folder)
        self._check_all_agree(checkpoint, learner.device)
        state = (
            RunState() if checkpoint is None else restore(checkpoint, learner, generator, folder)
        )
        if learner.sharded and current_processes().is_main:
            sweep(folder)  # before parts of a dead run come between new ones
        # Nobody writes while somebody still reads.
        stacked_over_processes(torch.zeros(1), learner.device)
        if current_processes().is_main:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.log = RunLog(self.folder, self.names, state.history, self.tensorboard)
        return state

    def _check_all_agree(self, checkpoint: Checkpoint | None, device: torch.device) -> None:
        """A ValueError if not."""
        state = {"epoch": 0, "step": 0} if checkpoint is None else checkpoint.state
        own = torch.tensor([state["epoch"], state["step"]])
        all_of_them = stacked_over_processes(own, device)
        if (all_of_them != own).any():
            raise ValueError(
                f"the processes found different checkpoints in {self.folder}: epochs and steps "
                f"{all_of_them.tolist()}; the run folder must be one that all machines share"
            )

    def write_row(self, row: Row) -> None:
        """Add a row to the log."""
        if self.log is not None:
            self.log.write(row)

    def save(
        self,
        state: RunState,
        learner: Learner,
        generator: Generator,
        sampler: ClassSampler,
        carried: Prior | None,
    ) -> None:
        """Write a checkpoint. Every process must call it."""
        if self.folder is None:
            return
        tensors = tensors_of(learner, generator)
        values = values_of(learner, state)
        folder, name = self.folder / "checkpoint", f"epoch-{state.epoch}-step-{state.step}"
        if learner.sharded:
            shards = {key: tensor for key, tensor in tensors.items() if is_shard(tensor)}
            tensors = {key: tensor for key, tensor in tensors.items() if key not in shards}
            write_shards(folder, name, shards)
            values["shards"] = {"folder": name, "names": list(shards)}
        if current_processes().is_main:
            values |= {
                "task": self.task,
                "sampler": sampler.state_dict(),
                "counts": self.counts,
                "carried": None if carried is None else carried.probs.tolist(),
            }
            write_checkpoint(folder, name, tensors, values)

    def close(self) -> None:
        """Nothing more will be written."""
        if self.log is not None:
            self.log.close()


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
    """Writes rows as they come."""

    def __init__(
        self, folder: Path, names: Sequence[str], history: Sequence[Row], tensorboard: bool
    ) -> None:
        self.path, self.names = folder / "log.csv", list(names)
        with written_whole(self.path) as part, part.open("w", newline="") as file:
            writer = self._writer(file)
            writer.writeheader()
            writer.writerows(history)
        self.board = _board(folder / "tensorboard", len(history)) if tensorboard else None

    def write(self, row: Row) -> None:
        """Add a row, and have it on the disk."""
        try:
            with self.path.open("a", newline="") as file:
                self._writer(file).writerow(row)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise OSError(
                error.errno,
                f"the log could not be written ({error.strerror or error}); make room and start "
                "again, and the run goes on from its last checkpoint",
                str(self.path),
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
