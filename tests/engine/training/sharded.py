"""What the processes of test_sharding.py do: runs of a model that is shared out over them."""

import errno
import os

import torch
import torch.distributed as dist

import longtail as lt
from engine.training.tiny import (
    CLASSES,
    curve,
    flat_model,
    full_run,
    images,
    model,
    quick,
    quick_train,
)
from longtail.engine.training import Model, sharding
from longtail.engine.training.learner import Learner
from longtail.engine.training.process_group import mean_over_processes
from longtail.losses import CrossEntropy

CURVES = ("CrossEntropy", "LADE", "ELM")
HEADS = {
    "CausalNorm": lambda dim: lt.heads.CausalNorm(dim, CLASSES),
    "Cosine": lambda dim: lt.heads.Cosine(dim, CLASSES),
    "EstimatedOffset": lambda dim: lt.heads.EstimatedOffset(dim, CLASSES),
    "WeightVectorNorm": lambda dim: lt.heads.WeightVectorNorm(
        dim, CLASSES, train=images().counts.tolist()
    ),
}
SETTINGS = {
    "adamw": {"optimizer": "adamw", "lr": 1e-3, "weight_decay": 0.1},
    "head_lr, clipped": {"head_lr": 0.01, "clip_norm": 0.1, "nesterov": True},
    "ema, in pieces": {"ema": 0.9, "accumulate": 3},
    "bfloat16": {"precision": "bfloat16"},
}


def sharded_curves():
    """Layer by layer; the loss of a whole batch is the mean over processes."""
    sharding.LEAST = 1
    found, seen, step = {}, [], Learner.step

    def noted(learner, *batch):
        value = step(learner, *batch)
        seen.append(mean_over_processes(value, learner.device))
        return value

    Learner.step = noted
    for name in CURVES:
        # The processes have one batch and two of the images to validate on.
        _, weights = curve(name, parallel="fsdp", validation=images(33, seed=1))
        found |= {f"{name}.losses": torch.tensor(seen)}
        found |= {f"{name}.{key}": value for key, value in weights.items()}
        seen.clear()
    return found


def both_ways():
    """Runs of all heads and settings, with DDP and with FSDP; the last weights of all of them."""
    torch.set_num_threads(1)
    found = {}
    for parallel in ("ddp", "fsdp"):
        for name, head in HEADS.items():
            torch.manual_seed(2)
            net = Model(model().backbone, head(32))
            quick_train(net, images(48), options=quick(parallel=parallel, epochs=1))
            found |= {f"{name}.{parallel}.{k}": v for k, v in net.state_dict().items()}
        for name, changes in SETTINGS.items():
            net = model(norm="none")
            quick_train(net, images(48), options=quick(parallel=parallel, epochs=1, **changes))
            found |= {f"{name}.{parallel}.{k}": v for k, v in net.state_dict().items()}
    return found


def sizes():
    """Numbers that this process keeps: of parameters, gradients, momenta and averages."""
    net, data = flat_model(), images()
    learner = Learner(net, CrossEntropy(data.counts), quick(parallel="fsdp", ema=0.9))
    learner.step(data.images[:8].float() / 255, data.labels[:8], 0.1)
    kept = {
        "weights": learner.trained,
        "gradients": [parameter.grad for parameter in learner.trained],
        "momenta": [state["momentum_buffer"] for state in learner.optimizer.state.values()],
        "averages": list(learner.average.module.parameters()),
    }
    return {
        name: torch.tensor(sum(t.to_local().numel() for t in tensors))
        for name, tensors in kept.items()
    }


def stopped_by_a_full_disk(folder):
    """The second process cannot write its part of the third checkpoint; what all are told."""
    real, calls = os.fsync, []

    def full(file):
        calls.append(file)
        if len(calls) == 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(file)

    if dist.get_rank() == 1:
        os.fsync = full
    try:
        full_run(folder, epochs=2, parallel="fsdp")
    except OSError as error:
        return {"said": torch.tensor(list(str(error).encode()))}
    return {"said": torch.zeros(0)}


def whole_run(folder=None):
    """A run of two epochs, or the rest of it."""
    net, _ = full_run(folder, epochs=2, parallel="fsdp", checkpoint_every=None)
    return net.state_dict()


def run_in_parts(folder):
    """The same, stopped twice."""
    while True:
        net, result = full_run(
            folder, epochs=2, parallel="fsdp", stop_after=5, checkpoint_every=None
        )
        if result.finished:
            return net.state_dict()


def the_rest_of_ddp(folder):
    """Of a run that others began without FSDP."""
    return curve("LADE", parallel="fsdp", run=folder)[1]


def refused(folder):
    """What is said of a checkpoint that cannot be read."""
    try:
        curve("LADE", parallel="fsdp", run=folder)
    except ValueError as error:
        return {"said": torch.tensor(list(str(error).encode()))}
    return {"said": torch.zeros(0)}
