"""Training a head on features by mini-batch SGD, as its SGDConfig says.

All that is random follows from the seed and the epoch, so a fit that stopped goes on from its
checkpoint as if it had not: one safetensors file, written whole after every epoch.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from longtail.core import Prior
from longtail.core.retarget import retarget
from longtail.core.tensor_file import save_tensors
from longtail.engine.feature_rows import FeatureRows
from longtail.heads import Head, SGDConfig
from longtail.images import ClassSampler
from longtail.losses import Loss
from longtail.metrics import balanced_error


class Validation(NamedTuple):
    """Samples to stop by; they are never trained on."""

    rows: FeatureRows
    labels: Tensor


class EpochDone(NamedTuple):
    """What `progress` is told: `validation_error` is None without validation samples."""

    epoch: int
    epochs: int
    loss: float
    validation_error: float | None


def train_head(
    head: Head,
    rows: FeatureRows,
    labels: Tensor,
    loss: Loss,
    sampler: ClassSampler,
    sgd: SGDConfig,
    *,
    carried: Callable[[], Prior | None],
    validation: Validation | None,
    patience: int,
    checkpoint: str | None,
    progress: Callable[[EpochDone], None] | None,
) -> None:
    """Train the head in place; with validation, leave it at the epoch that did best there."""
    trained = [p for p in head.parameters() if p.requires_grad]
    solver = torch.optim.SGD(
        trained, lr=sgd.lr, momentum=sgd.momentum, weight_decay=sgd.weight_decay
    )
    task = _task(head, rows, labels, loss, sampler, validation)
    state = FitState(f"{task}, {sgd}, patience {patience}", 0, None, 0)
    best: dict[str, Tensor] = {}
    stored = None if checkpoint is None else load_checkpoint(checkpoint, state.task)
    if stored is not None:
        states, state = stored
        head.load_state_dict(states["head"])
        loss.load_state_dict(states.get("loss", {}))
        _tell(state.epoch - 1, sampler, loss)
        best = states.get("best", {})
        for parameter, velocity in zip(trained, _ordered(states.get("velocity", {})), strict=False):
            solver.state[parameter]["momentum_buffer"] = velocity
    while state.epoch < sgd.epochs and state.since_best < patience:
        value = _epoch(head, rows, labels, loss, sampler, solver, state.epoch, sgd)
        state.epoch += 1
        error = None
        if validation is not None:
            head.carry(carried())
            error = validation_error(head, validation)
            state.since_best += 1
            if state.best_error is None or error < state.best_error:
                state.best_error, state.since_best = error, 0
                best = {key: tensor.clone() for key, tensor in head.state_dict().items()}
        if checkpoint is not None:
            velocities = [solver.state[p].get("momentum_buffer") for p in trained]
            save_checkpoint(
                checkpoint,
                {
                    "head": head.state_dict(),
                    "loss": loss.state_dict(),
                    "best": best,
                    "velocity": {str(i): v for i, v in enumerate(velocities) if v is not None},
                },
                state,
            )
        if progress is not None:
            progress(EpochDone(state.epoch, sgd.epochs, value, error))
    if best:
        head.load_state_dict(best)


@torch.no_grad()
def validation_error(head: Head, validation: Validation) -> float:
    """The balanced error of the head: under the uniform prior where it is known what it carries."""
    uniform = Prior.uniform(head.num_classes)
    predictions = []
    for _, block in validation.rows.blocks():
        logits = head(block)
        if head.carried is not None:
            logits = retarget(logits, head.carried, uniform)
        predictions.append(logits.argmax(dim=1))
    return balanced_error(torch.cat(predictions), validation.labels, head.num_classes)


def _epoch(
    head: Head,
    rows: FeatureRows,
    labels: Tensor,
    loss: Loss,
    sampler: ClassSampler,
    solver: torch.optim.Optimizer,
    epoch: int,
    sgd: SGDConfig,
) -> float:
    """One epoch; the mean of the loss over its batches."""
    _tell(epoch, sampler, loss)
    batches = torch.split(torch.tensor(list(sampler)), sgd.batch_size)
    total = 0.0
    for number, batch in enumerate(batches):
        for group in solver.param_groups:
            group["lr"] = sgd.lr * _factor(sgd, epoch + number / len(batches))
        features = rows.take(batch)
        solver.zero_grad()
        value = loss(head(features), labels[batch], features=features)
        torch.autograd.backward(value)
        if sgd.clip_value is not None:
            nn.utils.clip_grad_value_(
                [p for g in solver.param_groups for p in g["params"]], sgd.clip_value
            )
        solver.step()
        total += value.item()
    if not math.isfinite(total):
        raise ValueError(
            f"the loss is no longer finite in epoch {epoch}; lower the learning rate "
            f"{sgd.lr:g} with sgd=dataclasses.replace(head.sgd, lr=...), "
            "or scale the features"
        )
    return total / len(batches)


def _tell(epoch: int, sampler: ClassSampler, loss: Loss) -> None:
    """Say which epoch it is to whoever does something else in another."""
    sampler.set_epoch(epoch)
    loss.set_epoch(epoch)


def _factor(sgd: SGDConfig, epochs: float) -> float:
    """What the schedule makes of the learning rate after that many epochs."""
    if sgd.schedule == "constant":
        return 1.0
    return 0.5 * (1 + math.cos(math.pi * epochs / sgd.epochs))


def _ordered(state: dict[str, Tensor]) -> list[Tensor]:
    return [state[key] for key in sorted(state, key=int)]


def _task(
    head: Head,
    rows: FeatureRows,
    labels: Tensor,
    loss: Loss,
    sampler: ClassSampler,
    validation: Validation | None,
) -> str:
    """What a checkpoint must agree with to be gone on from."""
    drawn = f"{type(sampler).__name__}(seed={sampler.seed})"
    tensors = [rows.take(torch.arange(min(8, len(rows)))), labels, *loss.state_dict().values()]
    if validation is not None:
        tensors.append(validation.labels)
    # Sums and not the bytes: enough to tell other data from the same, and short.
    seen = ", ".join(_sum_by_place(part) for part in tensors if part is not None)
    return (
        f"{type(head).__name__} on {len(rows)} x {rows.dim} features of {head.num_classes} classes"
        f" with {type(loss).__name__}, {drawn}, data {seen}"
    )


def _sum_by_place(part: Tensor) -> str:
    flat = part.flatten().double()
    return f"{float(flat @ (1.0 + torch.arange(len(flat)) % 997).double()):.9g}"


_KEY = "longtail_fit"


class FitState(msgspec.Struct):
    """What is not a tensor: `task` says of which fit this is the state."""

    task: str
    epoch: int
    best_error: float | None  # None: there is none yet
    since_best: int


def save_checkpoint(
    path: str | os.PathLike[str], states: dict[str, dict[str, Tensor]], fit_state: FitState
) -> None:
    """Write the tensors of several states, each under its name."""
    tensors = {
        f"{name}.{key}": value for name, state in states.items() for key, value in state.items()
    }
    save_tensors(path, tensors, {_KEY: msgspec.json.encode(fit_state).decode()})


def _opened(path: str | os.PathLike[str]) -> Any:
    try:
        return safe_open(path, "pt")
    except SafetensorError as error:
        raise ValueError(
            f"{os.fspath(path)} is damaged ({error}); remove it to begin anew"
        ) from error


def load_checkpoint(
    path: str | os.PathLike[str], task: str
) -> tuple[dict[str, dict[str, Tensor]], FitState] | None:
    """What `save_checkpoint` wrote, None if there is no file, an error if it is of another fit."""
    if not Path(path).exists():
        return None
    with _opened(path) as file:
        text = (file.metadata() or {}).get(_KEY)
        if text is None:
            raise ValueError(f"{path} is no checkpoint of fit_head; give another name")
        try:
            fit_state = msgspec.json.decode(text, type=FitState)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"the header of {path} is damaged: {error}; remove it") from error
        if fit_state.task != task:
            raise ValueError(
                f"the checkpoint {path} is of another fit: it was for\n  {fit_state.task}\n"
                f"and this is\n  {task}\nremove it to begin anew, or give another name"
            )
        states: dict[str, dict[str, Tensor]] = {}
        for key in file.keys():  # noqa: SIM118  (a file, not a dict)
            name, _, rest = key.partition(".")
            states.setdefault(name, {})[rest] = file.get_tensor(key)
    return states, fit_state
