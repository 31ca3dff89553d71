"""Training a head on features by mini-batch SGD, as its SGDConfig says.

All that is random follows from the seed and the epoch, so a fit that stopped goes on from its
checkpoint as if it had not: one safetensors file, written whole after every epoch.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

from longtail.core import Prior
from longtail.core.retarget import retarget
from longtail.data.tables.errors import reading
from longtail.engine.epoch_sampler import carried_after
from longtail.engine.feature_rows import FeatureRows
from longtail.engine.head_file import FitState, load_checkpoint, save_checkpoint
from longtail.heads import Head, SGDConfig
from longtail.images import ClassSampler
from longtail.losses import Loss
from longtail.metrics import balanced_error


class Samples(NamedTuple):
    """Features and their labels."""

    rows: FeatureRows
    labels: Tensor


class EpochDone(NamedTuple):
    """What `progress` is told: `validation_error` is None without validation samples."""

    epoch: int
    epochs: int
    loss: float
    validation_error: float | None


@dataclass(frozen=True)
class HeadTraining:
    """What is trained on what, and how; validation samples are to stop by, never trained on."""

    head: Head
    train: Samples
    loss: Loss
    sampler: ClassSampler
    sgd: SGDConfig
    validation: Samples | None
    patience: int

    def run(self, checkpoint: str | None, progress: Callable[[EpochDone], None] | None) -> None:
        """Train the head in place; with validation, leave it at the epoch that did best there."""
        with _training(self.head):
            self._epochs(checkpoint, progress)
        if self.validation is None:
            self._carry()

    def _carry(self) -> None:
        takes_prior = self.head.takes_prior
        self.head.carry(carried_after(self.loss, self.sampler) if takes_prior else None)

    def _epochs(self, checkpoint: str | None, progress: Callable[[EpochDone], None] | None) -> None:
        head, loss, sgd = self.head, self.loss, self.sgd
        trained = [p for p in head.parameters() if p.requires_grad]
        solver = torch.optim.SGD(
            trained, lr=sgd.lr, momentum=sgd.momentum, weight_decay=sgd.weight_decay
        )
        state = FitState(f"{self._task()}, {sgd}, patience {self.patience}", 0, None, 0)
        best: dict[str, Tensor] = {}
        stored = None if checkpoint is None else load_checkpoint(checkpoint, state.task)
        if stored is not None:
            states, state = stored
            with reading(Path(str(checkpoint)), "a checkpoint of this fit"):
                head.load_state_dict(states["head"])
                loss.load_state_dict(states.get("loss", {}))
                self._set_epoch(state.epoch - 1)
                best = states.get("best", {})
                for index, velocity in states.get("velocity", {}).items():
                    moved = trained[int(index)]
                    solver.state[moved]["momentum_buffer"] = velocity.reshape(moved.shape)
        while state.epoch < sgd.epochs and state.since_best < self.patience:
            value = self._epoch(solver, state.epoch)
            state.epoch += 1
            error = None
            if self.validation is not None:
                self._carry()
                error = _balanced_error(head, self.validation)
                state.since_best += 1
                if state.best_error is None or error < state.best_error:
                    state.best_error, state.since_best = error, 0
                    best = {key: tensor.clone() for key, tensor in head.state_dict().items()}
            if checkpoint is not None:
                velocities = [solver.state[p].get("momentum_buffer") for p in trained]
                states = {
                    "head": head.state_dict(),
                    "loss": loss.state_dict(),
                    "best": best,
                    "velocity": {str(i): v for i, v in enumerate(velocities) if v is not None},
                }
                save_checkpoint(checkpoint, states, state)
            if progress is not None:
                progress(EpochDone(state.epoch, sgd.epochs, value, error))
        if best:
            head.load_state_dict(best)

    def _epoch(self, solver: torch.optim.Optimizer, epoch: int) -> float:
        """One epoch; the mean of the loss over its batches."""
        self._set_epoch(epoch)
        sgd, (group,) = self.sgd, solver.param_groups
        batches = torch.split(torch.tensor(list(self.sampler)), sgd.batch_size)
        total = 0.0
        for number, batch in enumerate(batches):
            if sgd.schedule == "cosine":
                done = (epoch + number / len(batches)) / sgd.epochs
                group["lr"] = sgd.lr * 0.5 * (1 + math.cos(math.pi * done))
            features = self.train.rows.take(batch)
            solver.zero_grad()
            value = self.loss(self.head(features), self.train.labels[batch], features=features)
            torch.autograd.backward(value)
            if sgd.clip_value is not None:
                nn.utils.clip_grad_value_(group["params"], sgd.clip_value)
            solver.step()
            total += value.item()
        if not math.isfinite(total):
            raise ValueError(
                f"the loss is no longer finite in epoch {epoch}; lower the learning rate "
                f"{sgd.lr:g} with sgd=dataclasses.replace(head.sgd, lr=...), "
                "or scale the features"
            )
        return total / len(batches)

    def _set_epoch(self, epoch: int) -> None:
        self.sampler.set_epoch(epoch)
        self.loss.set_epoch(epoch)

    def _task(self) -> str:
        """What a checkpoint must agree with for the fit to resume from it."""
        (rows, labels), sampler = self.train, self.sampler
        tensors = [rows.take(torch.arange(min(8, len(rows)))), labels]
        tensors += [part for part in self.loss.state_dict().values() if part is not None]
        tensors += [] if self.validation is None else [self.validation.labels]
        return (
            f"{type(self.head).__name__} on {len(rows)} x {rows.dim} features of "
            f"{self.head.num_classes} classes with {type(self.loss).__name__}, "
            f"{type(sampler).__name__}(seed={sampler.seed}), "
            f"data {', '.join(map(_sum_by_place, tensors))}"
        )


@torch.no_grad()
def _balanced_error(head: Head, validation: Samples) -> float:
    """The balanced error of the head: under the uniform prior where it is known what it carries."""
    uniform = Prior.uniform(head.num_classes)
    predictions = []
    for _, block in validation.rows.blocks():
        logits = head(block)
        if head.carried is not None:
            logits = retarget(logits, head.carried, uniform)
        predictions.append(logits.argmax(dim=1))
    return balanced_error(torch.cat(predictions), validation.labels, head.num_classes)


def _sum_by_place(part: Tensor) -> str:
    """Enough to tell other data from the same, and short."""
    flat = part.flatten().double()
    return f"{float(flat @ (1.0 + torch.arange(len(flat)) % 997).double()):.9g}"


@contextmanager
def _training(head: nn.Module) -> Iterator[None]:
    """Training mode, with gradients even where the caller has them off; evaluation mode after."""
    # Velocities that fade become denormal numbers, which the processor is ten times slower with.
    kept = bool((torch.tensor(1e-40) * 0.5).item())
    torch.set_flush_denormal(True)
    head.train()
    try:
        with torch.inference_mode(False), torch.enable_grad():
            yield
    finally:
        head.train(False)
        torch.set_flush_denormal(not kept)
