"""The folder of a run: its checkpoint, and its log with a row an epoch.

Only the first process writes, but for what the processes share, of which each writes its part. When
a run goes on, log.csv and the files of TensorBoard are cut to what its checkpoint knows: no row
comes twice.
"""

import csv
import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO

import msgspec
import torch
from torch import Generator, Tensor

from longtail.core import Prior
from longtail.core.files import written_whole
from longtail.engine.training.checkpoint import (
    STATE,
    check_task,
    read_checkpoint,
    sweep,
    undamaged,
    write_checkpoint,
)
from longtail.engine.training.learner import Learner
from longtail.engine.training.process_group import current_processes, stacked_over_processes
from longtail.engine.training.run_state import (
    Row,
    RunState,
    StoredRun,
    restore,
    tensors_of,
    values_of,
)
from longtail.engine.training.sharding import is_shard, write_shards
from longtail.images import ClassSampler

_TRAIN = ("epoch", "step", "lr", "train_loss", "seconds", "images_per_second")
# Of a validation: all classes and the groups; and under the uniform prior where that is known.
VALIDATED = ("balanced_accuracy", "accuracy", "nll", "many", "medium", "few")
UNIFORM = "val_uniform_balanced_accuracy"


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
        self.names, self.tensorboard = [*_TRAIN], tensorboard
        if validated:
            self.names += [f"val_{name}" for name in VALIDATED] + [UNIFORM]
        self.log: Path | None = None  # of the process that writes
        self.board: Any = None
        if self.folder is None and tensorboard:
            raise ValueError("TensorBoard's files go to the run folder; give one with run=...")

    def resume(self, learner: Learner, generator: Generator) -> RunState:
        """Where the run is: at its checkpoint, or at the beginning."""
        if self.folder is None:
            return RunState()
        folder = self.folder / "checkpoint"
        checkpoint, stored = read_checkpoint(folder), None
        if checkpoint is not None:
            with undamaged(folder / STATE, folder):
                stored = msgspec.convert(checkpoint.state, StoredRun)
            check_task(stored.task, self.task, folder)
            with undamaged(folder / STATE, folder):
                _check_progress(stored, self.task)
        self._check_all_agree(stored, learner.device)
        state = RunState()
        if checkpoint is not None and stored is not None:
            with undamaged(folder, folder):
                state = restore(checkpoint.tensors, stored, learner, generator, folder)
        if learner.sharded and current_processes().is_main:
            sweep(folder)  # before parts of a dead run come between new ones
        # Nobody writes while somebody still reads.
        stacked_over_processes(torch.zeros(1), learner.device)
        if current_processes().is_main:
            self._begin_log(self.folder, state.history)
        return state

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

    def write_row(self, row: Row) -> None:
        """Add a row to the log, and have it on the disk."""
        if self.log is None:
            return
        try:
            with self.log.open("a", newline="") as file:
                self._writer(file).writerow(row)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise OSError(
                error.errno,
                f"the log could not be written ({error.strerror or error}); make room and start "
                "again, and the run goes on from its last checkpoint",
                str(self.log),
            ) from error
        if self.board is not None:
            for name, value in row.items():
                if value is not None and name not in ("epoch", "step"):
                    # As TensorBoard groups them: train/loss, val/balanced_accuracy.
                    grouped = name if name.startswith(("train_", "val_")) else f"train_{name}"
                    self.board.add_scalar(grouped.replace("_", "/", 1), value, row["epoch"])
            self.board.flush()

    def close(self) -> None:
        """Nothing more will be written."""
        if self.board is not None:
            self.board.close()

    def _begin_log(self, folder: Path, history: Sequence[Row]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.log = folder / "log.csv"
        with written_whole(self.log) as part, part.open("w", newline="") as file:
            writer = self._writer(file)
            writer.writeheader()
            writer.writerows(history)
        if self.tensorboard:
            try:
                module = import_module("torch.utils.tensorboard")
            except ImportError as error:
                raise ImportError(
                    "TensorBoard's files were asked for, but it is not installed; "
                    "get it with: pip install longtail[tensorboard]"
                ) from error
            board = str(folder / "tensorboard")
            self.board = module.SummaryWriter(board, purge_step=len(history) + 1)

    def _writer(self, file: TextIO) -> "csv.DictWriter[str]":
        return csv.DictWriter(file, self.names, extrasaction="ignore", lineterminator="\n")

    def _check_all_agree(self, stored: StoredRun | None, device: torch.device) -> None:
        own = torch.tensor([0, 0] if stored is None else [stored.epoch, stored.step])
        all_of_them = stacked_over_processes(own, device)
        if (all_of_them != own).any():
            raise ValueError(
                f"the processes found different checkpoints in {self.folder}: epochs and steps "
                f"{all_of_them.tolist()}; the run folder must be one that all machines share"
            )


def _check_progress(stored: StoredRun, task: Mapping[str, Any]) -> None:
    """A ValueError if it is not a place in this run, which would never come to its end."""
    epochs, steps = task["options"]["epochs"], task["steps"]
    if not (stored.epoch == len(stored.history) <= epochs and stored.step < steps):
        raise ValueError(
            f"it is {stored.step} steps into epoch {stored.epoch + 1}, with "
            f"{len(stored.history)} rows, of a run of {epochs} epochs of {steps} steps"
        )
    if not all(row.keys() >= {*_TRAIN} for row in stored.history):
        raise ValueError(f"a row of its history lacks one of {', '.join(_TRAIN)}")


def best_epoch(history: Sequence[Row]) -> int | None:
    """The first epoch with the best balanced accuracy, under the uniform prior where known."""
    values = {}
    for row in history:
        value = row.get(UNIFORM)
        value = row.get("val_balanced_accuracy") if value is None else value
        if value is not None:
            values[int(row["epoch"] or 0)] = value
    return max(values, key=lambda epoch: (values[epoch], -epoch)) if values else None
