"""The folder of a run: where its checkpoint and its log are.

Only the first process writes, but for what the processes share, of which each writes its part.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Generator, Tensor

from longtail.core import Prior
from longtail.engine.training.checkpoint_folder import (
    Checkpoint,
    read_checkpoint,
    sweep,
    write_checkpoint,
)
from longtail.engine.training.learner import Learner
from longtail.engine.training.process_group import current_processes, stacked_over_processes
from longtail.engine.training.progress import Progress, Row, restore, tensors_of, values_of
from longtail.engine.training.run_log import RunLog, columns
from longtail.engine.training.shard_files import write_shards
from longtail.engine.training.sharding import is_shard
from longtail.engine.training.task import check_task
from longtail.images import ClassSampler


class RunFolder:
    """Keeps a run, or nothing if there is no folder.

    Args:
        folder: Made if it is not there; None to keep nothing.
        task: What a checkpoint must be of.
        counts: Training images of each class, to be kept.
        validated: Whether rows of the log have a validation.
        tensorboard: Whether to write TensorBoard's files.
    """

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

    def resume(self, learner: Learner, generator: Generator) -> Progress:
        """Where the run is: at its checkpoint, or at the beginning."""
        if self.folder is None:
            return Progress()
        place = self.folder / "checkpoint"
        found = read_checkpoint(place)
        if found is not None:
            check_task(found.state["task"], self.task, place)
        self._check_all_found_it(found, learner.device)
        progress = Progress() if found is None else restore(found, learner, generator, place)
        if learner.sharded and current_processes().is_main:
            sweep(place)  # before parts of a dead run come between new ones
        # Nobody writes while somebody still reads.
        stacked_over_processes(torch.zeros(1), learner.device)
        if current_processes().is_main:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.log = RunLog(self.folder, self.names, progress.history, self.tensorboard)
        return progress

    def _check_all_found_it(self, found: Checkpoint | None, device: torch.device) -> None:
        """A ValueError if not."""
        state = {"epoch": 0, "step": 0} if found is None else found.state
        place = torch.tensor([state["epoch"], state["step"]])
        places = stacked_over_processes(place, device)
        if (places != place).any():
            raise ValueError(
                f"the processes found different checkpoints in {self.folder}: epochs and steps "
                f"{places.tolist()}; the run folder must be one that all machines share"
            )

    def write_row(self, row: Row) -> None:
        """Add a row to the log."""
        if self.log is not None:
            self.log.write(row)

    def save(
        self,
        progress: Progress,
        learner: Learner,
        generator: Generator,
        sampler: ClassSampler,
        carried: Prior | None,
    ) -> None:
        """Write a checkpoint. Every process must call it."""
        if self.folder is None:
            return
        tensors = tensors_of(learner, generator)
        values = values_of(learner, progress)
        place, name = self.folder / "checkpoint", f"epoch-{progress.epoch}-step-{progress.step}"
        if learner.sharded:
            shards = {key: tensor for key, tensor in tensors.items() if is_shard(tensor)}
            tensors = {key: tensor for key, tensor in tensors.items() if key not in shards}
            write_shards(place, name, shards)
            values["shards"] = {"folder": name, "names": list(shards)}
        if current_processes().is_main:
            values |= {
                "task": self.task,
                "sampler": sampler.state_dict(),
                "counts": self.counts,
                "carried": None if carried is None else carried.probs.tolist(),
            }
            write_checkpoint(place, name, tensors, values)

    def close(self) -> None:
        """Nothing more will be written."""
        if self.log is not None:
            self.log.close()
