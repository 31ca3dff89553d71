"""Training from images: the loop."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from copy import copy
from typing import Any, NamedTuple

import torch
from torch import Generator, Tensor

from longtail.core import Prior
from longtail.core.locks import locked
from longtail.data.images import LabelledImages
from longtail.engine.epoch_sampler import sampler_for
from longtail.engine.schedules import ByEpoch, Schedule
from longtail.engine.training.checks import check_intervals, check_training
from longtail.engine.training.events import EpochEnd, StepEnd
from longtail.engine.training.image_source import image_source
from longtail.engine.training.inputs import Inputs
from longtail.engine.training.interruption import Interruption, Stopped, interruption
from longtail.engine.training.learner import Learner
from longtail.engine.training.loop import Loop
from longtail.engine.training.model import Model
from longtail.engine.training.options import TrainingOptions
from longtail.engine.training.predict import agree_on_buffers
from longtail.engine.training.process_group import current_processes
from longtail.engine.training.progress import Row
from longtail.engine.training.random_state import mixed_seed
from longtail.engine.training.run_folder import RunFolder
from longtail.engine.training.sharding import gather
from longtail.engine.training.task import task_of
from longtail.engine.training.validate import Validation, best_epoch
from longtail.images import ClassSampler
from longtail.images.augment import Augmentation, Normalize
from longtail.losses import Deferred, Loss


class Trained(NamedTuple):
    """What a run came to.

    Attributes:
        carried: The prior the model's logits carry; None where that is not known, or no prior.
        best_epoch: The one with the best balanced accuracy in validation, counted from 1; None
            without validation. The model is that of the last epoch.
        history: The rows of the log, one an epoch.
        finished: False if `stop_after` stopped it.
    """

    carried: Prior | None
    best_epoch: int | None
    history: list[Row]
    finished: bool


def train(
    model: Model,
    images: LabelledImages,
    sampler: ClassSampler,
    loss: Loss | Deferred,
    options: TrainingOptions,
    *,
    normalize: Normalize,
    augment: Augmentation | None = None,
    validation: LabelledImages | None = None,
    evaluate_every: int = 1,
    run: str | os.PathLike[str] | None = None,
    checkpoint_every: int | None = None,
    recipe: Mapping[str, Any] | None = None,
    log: Callable[[StepEnd | EpochEnd], None] | None = None,
    tensorboard: bool = False,
    stop_after: int | None = None,
) -> Trained:
    """Train the model in place, and leave it in evaluation mode, knowing what it carries.

    With a run folder it goes on from the checkpoint there, if that is of the same task. On a CPU,
    with as many threads, it ends with the same weights to the bit as a run that was never stopped.
    With a process group open it trains on all processes; the first one writes and calls `log`, the
    folder must be one that all can read. How the processes share the work may change from one start
    to the next, and so may their number: then the steps are the same up to rounding.

    Args:
        model: On the device to train on, with weights that are the same on every start.
        images: What to train on. `ImageArrays` stay on the device; others are read as they come.
        sampler: What an epoch consists of: that of all processes, it is shared out here.
        loss: Its reduction is the mean, and it is as new on every start. A `Deferred` one is told
            the epoch, and says how often to draw each class if it re-samples.
        options: How to train.
        normalize: Comes after augmentation.
        augment: Called with images as they are stored.
        validation: Images to evaluate on; nothing is fitted to them.
        evaluate_every: Epochs from one validation to the next; the last is always validated.
        run: The folder for `checkpoint/`, `log.csv` and `tensorboard/`; made if it is not there.
        checkpoint_every: Steps from one checkpoint to the next, beside those after every epoch.
        recipe: Kept in the checkpoint, which only goes on with an equal one; what JSON can hold.
        log: Told after every step and every epoch.
        tensorboard: Whether to write TensorBoard's files to the run folder.
        stop_after: Steps after which to stop with a checkpoint; to go on, call it again.

    Raises:
        FloatingPointError: Where the loss is no longer finite.
        KeyboardInterrupt: On Ctrl-C or SIGTERM, between two steps and after a checkpoint.
    """
    these = current_processes()
    check_training(model, images, sampler, loss, options, validation, these.world_size)
    check_intervals(
        evaluate_every=evaluate_every, checkpoint_every=checkpoint_every, stop_after=stop_after
    )
    if isinstance(loss, Deferred):
        loss.set_epoch(0)
    drawn = shared_sampler(sampler, images.labels, loss)
    steps = -(-len(drawn) * these.world_size // options.batch_size)
    task = task_of(model, images, drawn, loss, options, augment, normalize, recipe or {}, steps)
    model.head.carry(None)  # whatever it carried, it is about to change
    learner = Learner(model, loss, options)
    generator = Generator().manual_seed(mixed_seed(options.seed, these.rank, 0))
    loop = Loop(
        learner=learner,
        sampler=drawn,
        source=image_source(images, learner.device, options.num_workers),
        inputs=Inputs(augment, normalize, options.mixup, images.num_classes, generator),
        rate=_rate(options, steps),
        steps=steps,
        options=options,
        folder=RunFolder(run, task, images.counts, validation is not None, tensorboard),
        validation=None
        if validation is None
        else Validation(validation, learner, normalize, options, images.counts),
        evaluate_every=evaluate_every,
        checkpoint_every=checkpoint_every,
        log=log if these.is_main else None,
    )
    alone = locked(run) if run is not None and these.is_main else nullcontext()
    with alone, _learning(learner, mixed_seed(options.seed, these.rank, 1)) as asked:
        progress = loop.run(asked, stop_after)
    loop.folder.close()
    if asked.signal is not None:
        raise Stopped(asked.signal, f"in epoch {progress.epoch + 1}")
    last = max(progress.epoch - (progress.step == 0), 0)  # the epoch of the last step
    carried = loop.begin(last)
    finished = progress.epoch >= options.epochs
    if finished:
        predictor = learner.predictor()
        agree_on_buffers(predictor)
        model.load_state_dict(predictor.state_dict())
        model.head.carry(carried)
    elif learner.sharded:
        gather(learner.model, into=model)
    return Trained(carried, best_epoch(progress.history), progress.history, finished)


def shared_sampler(sampler: ClassSampler, labels: Tensor, loss: Loss | Deferred) -> ClassSampler:
    """The share of this process in what is drawn, by the sampler or as the loss asks for."""
    these = current_processes()
    shared = copy(sampler_for(sampler, labels, loss))
    shared.num_replicas, shared.rank = these.world_size, these.rank
    shared.set_epoch(0)
    return shared


def _rate(options: TrainingOptions, steps: int) -> Schedule:
    """The schedule, which counts epochs, called with steps."""
    if options.by_epoch:
        return ByEpoch(options.schedule, steps)
    return options.schedule.stretched(steps)


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
            interruption(catch=these.world_size == 1) as asked,
        ):
            torch.manual_seed(seed)
            yield asked
    finally:
        learner.model.train(False)
        learner.whole.train(False)
