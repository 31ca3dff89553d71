r"""What learns: model, optimiser and average, and one step of them.

A batch may go through the model in pieces, whose gradients add up to that of the whole batch. A
loss that is a mean over samples, (1/W) Σ_i w_i·ℓ_i with W = Σ_i w_i, is the sum over pieces of
W_piece/W times the mean over the piece. With k processes, whose gradients are averaged, a piece
counts k·W_piece/W, W being that of all processes. Losses of the whole batch (LADE, ELM) see the
pieces of all processes themselves: there W_piece is of all processes too, and k is 1.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from longtail.engine.averaging import moving_average
from longtail.engine.training.model import Model, Outputs
from longtail.engine.training.options import TrainingOptions
from longtail.engine.training.process_group import (
    agree_on_buffers,
    current_processes,
    mean_over_processes,
)
from longtail.engine.training.sharding import gather, shard
from longtail.losses import Loss


class Learner:
    """A model and what changes it, step by step."""

    def __init__(self, model: Model, loss: Loss, options: TrainingOptions) -> None:
        self.whole, self.options = model, options
        several = current_processes().world_size > 1
        self.sharded = options.parallel == "fsdp" and several
        self.model = deepcopy(model) if self.sharded else model
        self.average = None if options.ema is None else moving_average(model, options.ema)
        if self.sharded:
            shard(self.model)
            if self.average is not None:
                shard(cast(Model, self.average.module))
        self.optimizer = _optimizer(self.model, options)
        # In the order of the optimiser, by which its state is numbered.
        self.trained = [p for group in self.optimizer.param_groups for p in group["params"]]
        self.device = self.trained[0].device
        self.loss = loss.to(self.device)
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=options.precision == "float16")
        self.parallel: DistributedDataParallel | None = None
        if several and not self.sharded:
            ids = [self.device] if self.device.type == "cuda" else None
            self.parallel = DistributedDataParallel(model, device_ids=ids)
        self.run: Callable[[Tensor], Outputs] = self.parallel or self.model
        if options.compile:
            backend = "inductor" if options.compile is True else options.compile
            self.run = torch.compile(self.run, backend=backend)

    def predictor(self) -> Model:
        """The model to predict with: the average if there is one. Every process must call it."""
        learned = self.model if self.average is None else cast(Model, self.average.module)
        if not self.sharded:
            return learned
        gather(learned, into=self.whole)
        return self.whole

    def step(self, images: Tensor, labels: Tensor, lr: float) -> float:
        """One step on a batch, in pieces if the options say so; the loss of the batch."""
        for group in self.optimizer.param_groups:
            group["lr"] = lr * group["times"]
        self.optimizer.zero_grad()
        if self.sharded:
            agree_on_buffers(self.model)  # DDP does it itself
        pieces = labels.tensor_split(min(self.options.accumulate, len(labels)))
        shares = _piece_shares(self.loss, pieces)
        value, start = 0.0, 0
        for piece, share in zip(pieces, shares, strict=True):
            stop = start + len(piece)
            with self._exchange(stop == len(labels)):
                part = share * self._loss_of(images[start:stop], piece)
                torch.autograd.backward(self.scaler.scale(part))
            value, start = value + part.item(), stop
        if self.options.clip_norm is not None:
            self.scaler.unscale_(self.optimizer)
            nn.utils.clip_grad_norm_(self.trained, self.options.clip_norm)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        if self.average is not None:
            self.average.update_parameters(self.model)
        return value

    def _loss_of(self, images: Tensor, labels: Tensor) -> Tensor:
        dtype: torch.dtype = getattr(torch, self.options.precision)
        with torch.autocast(self.device.type, dtype, enabled=dtype != torch.float32):
            outputs = self.run(images)
        # Outside: losses widen what they are given themselves.
        value: Tensor = self.loss(outputs.logits, labels, features=outputs.features)
        return value

    def _exchange(self, last: bool) -> AbstractContextManager[None]:
        """With DDP gradients go to the other processes with the last piece, with FSDP with each."""
        if self.parallel is None or last:
            return nullcontext()
        waiting: AbstractContextManager[None] = self.parallel.no_sync()
        return waiting


def _optimizer(model: Model, options: TrainingOptions) -> torch.optim.Optimizer:
    """The optimiser, with the head in a group of its own where its rate is another."""
    head = {id(p) for p in model.head.parameters()} if options.head_lr is not None else set()
    trained = [p for p in model.parameters() if p.requires_grad]
    groups = [{"params": [p for p in trained if id(p) not in head], "times": 1.0}]
    if options.head_lr is not None:
        own = [p for p in trained if id(p) in head]
        groups.append({"params": own, "times": options.head_lr / options.lr})
    if options.optimizer == "adamw":
        return torch.optim.AdamW(groups, lr=options.lr, weight_decay=options.weight_decay)
    return torch.optim.SGD(
        groups,
        lr=options.lr,
        momentum=options.momentum,
        nesterov=options.nesterov,
        weight_decay=options.weight_decay,
    )


def _piece_shares(loss: Loss, labels: Sequence[Tensor]) -> list[float]:
    """How much the loss of each piece counts on this process."""
    weight = loss.class_weight
    if weight is None or labels[0].is_floating_point():
        totals = [float(len(piece)) for piece in labels]
        return [total / sum(totals) for total in totals]
    totals = torch.stack([weight[piece].sum() for piece in labels]).tolist()
    device = labels[0].device
    if loss.gathers:
        totals = [mean_over_processes(total, device) for total in totals]
    whole = mean_over_processes(sum(totals), device)
    return [total / whole for total in totals]
