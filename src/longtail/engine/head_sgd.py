"""Training a head on features by mini-batch SGD, as its recipe says.

All that is random follows from the seed and the epoch, so a fit that stopped goes on from its
checkpoint as if it had not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from longtail.core import Prior
from longtail.core.retarget import retarget
from longtail.data import ClassSampler
from longtail.engine.feature_rows import FeatureRows
from longtail.engine.head_checkpoint import Progress, load_checkpoint, save_checkpoint
from longtail.heads import Head, Recipe
from longtail.losses import Deferred
from longtail.metrics import balanced_error


class HeldOut(NamedTuple):
    """Samples to stop by; they are never trained on."""

    rows: FeatureRows
    labels: Tensor


class EpochDone(NamedTuple):
    """What `progress` is told: `held_out_error` is None without held-out samples."""

    epoch: int
    epochs: int
    loss: float
    held_out_error: float | None


@dataclass(frozen=True)
class Sgd:
    """How to train: the recipe, and what a user may set beside it."""

    recipe: Recipe
    patience: int
    checkpoint: str | None
    progress: Callable[[EpochDone], None] | None


def train_head(
    head: Head,
    rows: FeatureRows,
    labels: Tensor,
    loss: nn.Module,
    sampler: ClassSampler,
    carried: Callable[[], Prior | None],
    held_out: HeldOut | None,
    how: Sgd,
) -> None:
    """Train the head in place; with held-out samples, leave it at the epoch that did best on them.

    Args:
        head: Whose parameters are trained.
        rows: The features.
        labels: Their classes.
        loss: Called as `loss(logits, labels, features=features)`.
        sampler: Says what an epoch consists of.
        carried: What the head carries if training stops in this epoch; asked for after each.
        held_out: Samples to stop by.
        how: The recipe and the rest.
    """
    recipe = how.recipe
    trained = [p for p in head.parameters() if p.requires_grad]
    solver = torch.optim.SGD(
        trained, lr=recipe.lr, momentum=recipe.momentum, weight_decay=recipe.weight_decay
    )
    state = Progress(_task(head, rows, labels, loss, sampler, held_out, how), 0, None, 0)
    best: dict[str, Tensor] = {}
    found = None if how.checkpoint is None else load_checkpoint(how.checkpoint, state.task)
    if found is not None:
        states, state = found
        head.load_state_dict(states["head"])
        loss.load_state_dict(states.get("loss", {}))
        _tell(state.epoch - 1, sampler, loss)
        best = states.get("best", {})
        for parameter, velocity in zip(trained, _ordered(states.get("velocity", {})), strict=False):
            solver.state[parameter]["momentum_buffer"] = velocity
    while state.epoch < recipe.epochs and state.since_best < how.patience:
        value = _epoch(head, rows, labels, loss, sampler, solver, state.epoch, recipe)
        state.epoch += 1
        error = None
        if held_out is not None:
            head.carry(carried())
            error = held_out_error(head, held_out)
            state.since_best += 1
            if state.best_error is None or error < state.best_error:
                state.best_error, state.since_best = error, 0
                best = {key: tensor.clone() for key, tensor in head.state_dict().items()}
        if how.checkpoint is not None:
            velocities = [solver.state[p].get("momentum_buffer") for p in trained]
            save_checkpoint(
                how.checkpoint,
                {
                    "head": head.state_dict(),
                    "loss": loss.state_dict(),
                    "best": best,
                    "velocity": {str(i): v for i, v in enumerate(velocities) if v is not None},
                },
                state,
            )
        if how.progress is not None:
            how.progress(EpochDone(state.epoch, recipe.epochs, value, error))
    if best:
        head.load_state_dict(best)


@torch.no_grad()
def held_out_error(head: Head, held_out: HeldOut) -> float:
    """The balanced error of the head: under the uniform prior where it is known what it carries."""
    uniform = Prior.uniform(head.num_classes)
    predictions = []
    for _, block in held_out.rows.blocks():
        logits = head(block)
        if head.carried is not None:
            logits = retarget(logits, head.carried, uniform)
        predictions.append(logits.argmax(dim=1))
    return balanced_error(torch.cat(predictions), held_out.labels, head.num_classes)


def _epoch(
    head: Head,
    rows: FeatureRows,
    labels: Tensor,
    loss: nn.Module,
    sampler: ClassSampler,
    solver: torch.optim.Optimizer,
    epoch: int,
    recipe: Recipe,
) -> float:
    """One epoch; the mean of the loss over its batches."""
    _tell(epoch, sampler, loss)
    batches = torch.split(torch.tensor(list(sampler)), recipe.batch_size)
    total = 0.0
    for number, batch in enumerate(batches):
        for group in solver.param_groups:
            group["lr"] = recipe.lr * _factor(recipe, epoch + number / len(batches))
        features = rows.take(batch)
        solver.zero_grad()
        value = loss(head(features), labels[batch], features=features)
        torch.autograd.backward(value)
        if recipe.clip_value is not None:
            nn.utils.clip_grad_value_(
                [p for g in solver.param_groups for p in g["params"]], recipe.clip_value
            )
        solver.step()
        total += value.item()
    if not math.isfinite(total):
        raise ValueError(
            f"the loss is no longer finite in epoch {epoch}; lower the learning rate "
            f"{recipe.lr:g} with recipe=dataclasses.replace(head.recipe, lr=...), "
            "or scale the features"
        )
    return total / len(batches)


def _tell(epoch: int, sampler: ClassSampler, loss: nn.Module) -> None:
    """Say which epoch it is to whoever does something else in another."""
    sampler.set_epoch(epoch)
    if isinstance(loss, Deferred):
        loss.set_epoch(epoch)


def _factor(recipe: Recipe, epochs: float) -> float:
    """What the schedule makes of the learning rate after that many epochs."""
    if recipe.schedule == "constant":
        return 1.0
    return 0.5 * (1 + math.cos(math.pi * epochs / recipe.epochs))


def _ordered(state: dict[str, Tensor]) -> list[Tensor]:
    return [state[key] for key in sorted(state, key=int)]


def _task(
    head: Head,
    rows: FeatureRows,
    labels: Tensor,
    loss: nn.Module,
    sampler: ClassSampler,
    held_out: HeldOut | None,
    how: Sgd,
) -> str:
    """What a checkpoint must agree with to be gone on from."""
    drawn = f"{type(sampler).__name__}(seed={sampler.seed})"
    given = [rows.take(torch.arange(min(8, len(rows)))), labels, *loss.state_dict().values()]
    if held_out is not None:
        given.append(held_out.labels)
    # Sums and not the bytes: enough to tell other data from the same, and short.
    seen = ", ".join(_sum_by_place(part) for part in given if part is not None)
    return (
        f"{type(head).__name__} on {len(rows)} x {rows.dim} features of {head.num_classes} classes"
        f" with {type(loss).__name__}, {drawn}, {how.recipe}, patience {how.patience}, data {seen}"
    )


def _sum_by_place(part: Tensor) -> str:
    flat = part.flatten().double()
    return f"{float(flat @ (1.0 + torch.arange(len(flat)) % 997).double()):.9g}"
