"""Training from images: the loop."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from copy import copy
from typing import Any, NamedTuple

import torch
from torch import Generator, Tensor

from longtail.core import GroupsLike, Prior
from longtail.core.files import locked
from longtail.core.numbers import check_whole
from longtail.engine.epoch_sampler import sampler_for
from longtail.engine.schedules import ByEpoch
from longtail.engine.training.checkpoint import task_of
from longtail.engine.training.image_source import Inputs, image_source
from longtail.engine.training.learner import Learner
from longtail.engine.training.loop import (
    EpochEnd,
    EpochValidation,
    Interruption,
    Loop,
    StepEnd,
    Stopped,
    interruption,
)
from longtail.engine.training.model import Model
from longtail.engine.training.options import TrainingOptions
from longtail.engine.training.process_group import agree_on_buffers, current_processes
from longtail.engine.training.run_folder import RunFolder, best_epoch
from longtail.engine.training.run_state import Row, RunState, seed_of
from longtail.engine.training.sharding import check_sharding, check_torch, gather
from longtail.images import ClassSampler, LabelledImages
from longtail.images.augment import Augmentation, Normalize
from longtail.losses import Loss


class Trained(NamedTuple):
    """What a run came to; the model is that of the last epoch."""

    carried: Prior | None  # by the model's logits; None where that is not known, or no prior
    best_epoch: int | None  # by balanced accuracy in validation, counted from 1; None without it
    history: list[Row]  # the rows of the log, one an epoch
    finished: bool  # False if `stop_after` stopped it


def train(
    model: Model,
    images: LabelledImages,
    sampler: ClassSampler,
    loss: Loss,
    options: TrainingOptions,
    *,
    normalize: Normalize,
    augment: Augmentation | None = None,
    validation: LabelledImages | None = None,
    evaluate_every: int = 1,
    groups: GroupsLike | None = None,
    run: str | os.PathLike[str] | None = None,
    checkpoint_every: int | None = None,
    recipe: Mapping[str, Any] | None = None,
    progress: Callable[[StepEnd | EpochEnd], None] | None = None,
    tensorboard: bool = False,
    stop_after: int | None = None,
) -> Trained:
    """Train the model in place, and leave it in evaluation mode, knowing what it carries.

    With a run folder it goes on from the checkpoint there, if that is of the same task. On a CPU,
    with as many threads, it ends with the same weights to the bit as a run that was never stopped.
    With a process group open it trains on all processes; the first one writes and calls `progress`,
    the folder must be one that all can read. How the processes share the work may change from one
    start to the next, and so may their number: then the steps are the same up to rounding.

    Args:
        model: On the device to train on, with weights that are the same on every start.
        images: `ImageArrays` stay on the device; others are read as they come.
        sampler: What an epoch consists of: that of all processes, it is shared out here.
        loss: Its reduction is the mean, and it is as new on every start. A `Deferred` one is told
            the epoch, and says how often to draw each class if it re-samples.
        options: How to train.
        normalize: Comes after augmentation.
        augment: Called with images as they are stored.
        validation: Images to evaluate on; nothing is fitted to them.
        evaluate_every: Epochs from one validation to the next; the last is always validated.
        groups: The edges of many, medium and few in validation.
        run: The folder for `checkpoint/`, `log.csv` and `tensorboard/`; made if it is not there.
        checkpoint_every: Steps from one checkpoint to the next, beside those after every epoch.
        recipe: Kept in the checkpoint, which only goes on with an equal one; what JSON can hold.
        progress: Told after every step and every epoch.
        tensorboard: Whether to write TensorBoard's files to the run folder.
        stop_after: Steps after which to stop with a checkpoint; to go on, call it again.

    Raises:
        FloatingPointError: Where the loss is no longer finite.
        KeyboardInterrupt: On Ctrl-C or SIGTERM, between two steps and after a checkpoint.
    """
    these = current_processes()
    check_training(model, images, sampler, loss, options, validation, these.world_size)
    numbers = {"checkpoint_every": checkpoint_every, "stop_after": stop_after}
    for name, number in {"evaluate_every": evaluate_every, **numbers}.items():
        if number is not None:
            check_whole(number, name, least=1)
    loss.set_epoch(0)
    drawn = shared_sampler(sampler, images.labels, loss)
    steps = -(-len(drawn) * these.world_size // options.batch_size)
    task = task_of(model, images, drawn, loss, options, augment, normalize, recipe or {}, steps)
    model.head.carry(None)  # whatever it carried, it is about to change
    learner = Learner(model, loss, options)
    generator = Generator().manual_seed(seed_of(options.seed, these.rank, 0))
    validate = None
    if validation is not None:
        source = image_source(validation, learner.device, options.num_workers)
        counted = validation.labels, images.counts
        validate = EpochValidation(source, *counted, normalize, evaluate_every, groups)
    schedule = options.schedule
    loop = Loop(
        learner=learner,
        sampler=drawn,
        source=image_source(images, learner.device, options.num_workers),
        inputs=Inputs(augment, normalize, options.mixup, images.num_classes, generator),
        rate=ByEpoch(schedule, steps) if options.by_epoch else schedule.stretched(steps),
        steps=steps,
        options=options,
        folder=RunFolder(run, task, images.counts, validation is not None, tensorboard),
        validation=validate,
        checkpoint_every=checkpoint_every,
        progress=progress if these.is_main else None,
    )
    alone = locked(run) if run is not None and these.is_main else nullcontext()
    with alone, _learning(learner, seed_of(options.seed, these.rank, 1)) as interrupt:
        state = loop.run(interrupt, stop_after)
    loop.folder.close()
    if interrupt.signal is not None:
        raise Stopped(interrupt.signal, f"in epoch {state.epoch + 1}")
    return _ended(loop, state, model)


def _ended(loop: Loop, state: RunState, model: Model) -> Trained:
    """What the run came to; the model gets what was learned."""
    learner, last = loop.learner, max(state.epoch - (state.step == 0), 0)
    carried = loop.begin(last)  # the epoch of the last step
    finished = state.epoch >= loop.options.epochs
    if finished:
        predictor = learner.predictor()
        agree_on_buffers(predictor)
        model.load_state_dict(predictor.state_dict())
        model.head.carry(carried)
    elif learner.sharded:
        gather(learner.model, into=model)
    return Trained(carried, best_epoch(state.history), state.history, finished)


def shared_sampler(sampler: ClassSampler, labels: Tensor, loss: Loss) -> ClassSampler:
    """The share of this process in what is drawn, by the sampler or as the loss asks for."""
    these = current_processes()
    shared = copy(sampler_for(sampler, labels, loss))
    shared.num_replicas, shared.rank = these.world_size, these.rank
    shared.set_epoch(0)
    return shared


@contextmanager
def _learning(learner: Learner, seed: int) -> Iterator[Interruption]:
    """Training mode with gradients, a generator of its own, and signals noted; undone after."""
    these = current_processes()
    gpus = [learner.device] if learner.device.type == "cuda" else []
    learner.model.train()
    try:
        with (
            torch.inference_mode(False),
            torch.enable_grad(),
            torch.random.fork_rng(gpus),
            # Several processes would stop at different steps, and wait for each other.
            interruption(catch=these.world_size == 1) as interrupt,
        ):
            torch.manual_seed(seed)
            yield interrupt
    finally:
        learner.model.train(False)
        learner.whole.train(False)


def check_training(
    model: Model,
    images: LabelledImages,
    sampler: ClassSampler,
    loss: Loss,
    options: TrainingOptions,
    validation: LabelledImages | None,
    world_size: int,
) -> None:
    """A ValueError that says what does not fit."""
    losses = loss.stages
    if not len(images) or (validation is not None and not len(validation)):
        raise ValueError("there must be images to train on, and to validate on, got none")
    numbers = {"the head has": model.head.num_classes, "the loss has": losses[0].num_classes}
    if validation is not None:
        numbers["the validation images have"] = validation.num_classes
    for what, number in numbers.items():
        if number != images.num_classes:
            raise ValueError(
                f"the images have {images.num_classes} classes, {what} {number}; "
                "all must be of the same classes"
            )
    if sampler.num_classes != images.num_classes or not sampler.is_of(images.labels):
        raise ValueError(
            "the sampler was made for other labels than those of the images; make it from "
            "images.labels and images.num_classes"
        )
    if any(part.reduction != "mean" for part in losses):
        raise ValueError(f'a loss to train with must have reduction="mean", got {loss}')
    if any(0 <= part.ignore_index < images.num_classes for part in losses):
        raise ValueError(
            "the loss ignores a class by its ignore_index; leave the images of that class out "
            "instead: images.subset(...)"
        )
    if options.mixup is not None and not all(part.takes_soft_labels for part in losses):
        raise ValueError(
            f"mixup makes soft labels, which {type(losses[-1]).__name__} does not take; "
            "leave mixup out or take another loss"
        )
    side = min(images[0][0].shape[1:])
    if any(size >= side for _, size in options.early_sizes):
        raise ValueError(
            f"early_sizes scale images down, but theirs are {side} pixels a side, got "
            f"{options.early_sizes}; take smaller sizes, or leave them out"
        )
    trained = [p for p in model.parameters() if p.requires_grad]
    if not trained or any(True for _ in loss.parameters()):
        raise ValueError(
            "training changes the parameters of the model: it must have some that require a "
            "gradient, and the loss none of its own"
        )
    if options.precision == "float16" and trained[0].device.type != "cuda":
        raise ValueError('precision "float16" needs a GPU; on a CPU take "bfloat16" or "float32"')
    if options.parallel == "fsdp":
        check_torch()
        check_sharding(model, losses)
    if options.batch_size % world_size:
        raise ValueError(
            f"batch_size is that of all processes together and must be a multiple of their "
            f"number, got {options.batch_size} for {world_size}"
        )
