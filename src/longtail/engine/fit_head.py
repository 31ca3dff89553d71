r"""Fitting a head on features that were computed once: the second stage of every method.

    class moments → SGD, or L-BFGS where the problem is convex → what the head now carries

What it carries is loss.carried · batches / train: the loss is for batches that follow `train`, the
sampler makes them follow `batches`. Adding τ·log n to class-balanced batches (NCM eq. 9) thus gives
π^(−τ). Heads that are no change of prior carry None.
"""

import os
from collections.abc import Callable
from functools import singledispatch
from typing import Literal, TypeAlias

from torch import Tensor, nn

from longtail.core import Prior
from longtail.core.arrays import Array, ArrayLike
from longtail.core.numbers import check_seed, check_whole
from longtail.core.prior import check_same_classes
from longtail.core.tensors import label_tensor
from longtail.engine.epoch_sampler import carried_after, sampler_for
from longtail.engine.feature_rows import FeatureRows
from longtail.engine.head_sgd import EpochDone, HeadTraining, Samples
from longtail.engine.linear import minimise_head
from longtail.heads import EstimatedOffset, Head, SGDConfig, class_moments
from longtail.images import SAMPLERS, ClassSampler, InstanceSampler
from longtail.losses import CrossEntropy, LogitAdjusted, Loss
from longtail.losses import EstimatedOffset as EstimatedOffsetLoss

AnyLoss: TypeAlias = Loss | Callable[[Prior], Loss]


def fit_head(
    head: Head,
    features: Array,
    labels: ArrayLike,
    loss: AnyLoss | None = None,
    sampler: str | ClassSampler | None = None,
    *,
    sgd: SGDConfig | None = None,
    solver: Literal["sgd", "lbfgs"] = "sgd",
    validation: tuple[Array, ArrayLike] | None = None,
    patience: int = 3,
    seed: int = 0,
    progress: Callable[[EpochDone], None] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> Prior | None:
    """Fit the head in place, and say what it now carries.

    Heads in closed form are set from class moments. Others start there if they take moments and
    have none, or else where they are, and are trained. The τ of TauNorm is the best on
    `validation`.

    Args:
        head: One of `longtail.heads`; it is left in evaluation mode.
        features: Shape (N, D), torch or NumPy, float16 to float64. A memory-mapped array is read a
            batch or a block at a time.
        labels: Class indices.
        loss: A loss, or a loss class to be made for the batches, called as `loss(prior)`. By
            default that of the head: cross-entropy, adjusted if its SGDConfig has a τ.
        sampler: A name in `longtail.images.SAMPLERS` or a sampler of these labels. By default that
            of the SGDConfig if the loss is the head's own too, else "instance".
        sgd: How to train; by default as the head says. For "lbfgs" its weight decay counts alone.
        solver: "sgd" takes the steps of `sgd`; "lbfgs" goes to the minimum, for heads that are
            convex in what they learn (Linear, LearnableScale), with the sampler as class weights.
        validation: Features and labels to stop by: after each epoch the balanced accuracy on them
            is taken, and the head ends as it was at the best.
        patience: Epochs without a better one before it stops; needs `validation`.
        seed: Of the sampler.
        progress: Told after each epoch.
        checkpoint: A file to go on from if it is there, and to write after each epoch.

    >>> import longtail as lt
    >>> data = lt.data.caltech101_long_tailed()
    >>> head = lt.heads.LearnedNCM(256, 101)
    >>> lt.fit_head(head, data.train_features, data.train_labels).is_close(lt.Prior.uniform(101))
    True
    """
    _check_head(head)
    samples = _samples(features, labels, head, "features")
    stop_by = None if validation is None else _samples(*validation, head, "validation features")
    check_seed(seed)
    if solver not in ("sgd", "lbfgs"):
        raise ValueError(f'solver must be "sgd" or "lbfgs", got {solver!r}')
    check_whole(patience, "patience", least=1)
    config, moments = head.sgd if sgd is None else sgd, head.moment_options
    if head.sgd is None:
        ignored = (loss, sampler, sgd, progress, checkpoint, None if solver == "sgd" else solver)
        _check_untrained(head, any(option is not None for option in ignored), stop_by)
        if stop_by is not None:
            head.choose_on((block for _, block in stop_by.rows.blocks()), stop_by.labels)
    if moments is not None and (config is None or head.waits_for_moments):
        head.set_moments(class_moments(features, samples.labels, head.num_classes, **moments))
    if config is None:
        head.train(False)
        return head.carried
    if sampler is None:
        sampler = config.sampler if loss is None else "instance"
    drawn = _sampler(sampler, samples.labels, head.num_classes, config.epochs, seed)
    if solver == "sgd":
        training = _sgd_training(head, samples, loss, drawn, config, stop_by, patience)
        training.run(None if checkpoint is None else os.fspath(checkpoint), progress)
    elif checkpoint is None and stop_by is None and progress is None:
        _minimise(head, samples, loss, drawn, config)
    else:
        raise ValueError(
            "L-BFGS goes to the minimum in one go; validation, progress and checkpoint are for "
            'solver="sgd"'
        )
    return head.carried


def _sgd_training(
    head: Head,
    samples: Samples,
    loss: AnyLoss | None,
    sampler: ClassSampler,
    config: SGDConfig,
    validation: Samples | None,
    patience: int,
) -> HeadTraining:
    prior = Prior.of(sampler.counts, zeros="smooth")
    chosen_loss = _loss(loss, head, sampler.induced(prior), prior, config)
    check_same_classes(head.num_classes, chosen_loss.batches, "the head has", "the loss")
    drawn = sampler_for(sampler, samples.labels, chosen_loss)
    return HeadTraining(head, samples, chosen_loss, drawn, config, validation, patience)


def _minimise(
    head: Head, samples: Samples, loss: AnyLoss | None, sampler: ClassSampler, config: SGDConfig
) -> None:
    """Go to the minimum by L-BFGS."""
    chosen_loss = _whole_loss(loss, head, sampler, config)
    minimise_head(head, *samples, chosen_loss, config.weight_decay)
    carried = carried_after(chosen_loss, InstanceSampler(samples.labels, head.num_classes))
    head.carry(carried if head.takes_prior else None)
    head.train(False)


def _check_head(head: Head) -> None:
    if not isinstance(head, Head):
        raise TypeError(
            f"fit_head fits heads of longtail.heads, got {type(head).__name__}; a torch.nn.Linear "
            "becomes one by longtail.heads.Linear.from_linear"
        )
    if head.unit is not None:
        raise ValueError(
            f"this head divides features by {head.unit.item():.3g}, as it was fitted on such; "
            "fit a new one"
        )


def _check_untrained(head: Head, is_told_how: bool, validation: Samples | None) -> None:
    """Raise for what would be accepted and ignored by a head that has nothing to train."""
    what = "is set from class moments" if head.moment_options is not None else "only chooses its τ"
    if is_told_how:
        raise ValueError(
            f"{type(head).__name__} {what} and has nothing to train, so it takes no loss, "
            "sampler, sgd, solver, progress or checkpoint"
        )
    if validation is not None and not head.needs_validation:
        raise ValueError(f"{type(head).__name__} {what}, so there is nothing to stop by validation")
    if validation is None and head.needs_validation:
        raise ValueError(
            f"the tau of {type(head).__name__} is chosen on samples that its weights were not "
            "trained on; give validation=(features, labels)"
        )


def _samples(features: Array, labels: ArrayLike, head: Head, what: str) -> Samples:
    """Features of the head's dimension, which must be finite, and a label for each."""
    rows, classes = FeatureRows(features), label_tensor(labels, head.num_classes).cpu()
    if len(classes) != len(rows) or not len(rows) or rows.dim != head.dim:
        raise ValueError(
            f"{what} must have {head.dim} numbers for each of {len(classes)} labels, at least one, "
            f"got {len(rows)} rows of {rows.dim}"
        )
    rows.check_finite(what)
    return Samples(rows, classes)


def _sampler(
    sampler: str | ClassSampler, labels: Tensor, num_classes: int, epochs: int, seed: int
) -> ClassSampler:
    if isinstance(sampler, ClassSampler):
        if sampler.num_classes != num_classes or not sampler.is_of(labels):
            raise ValueError("the sampler was made for other labels than these; make it from them")
        return sampler
    if sampler not in SAMPLERS:
        raise ValueError(f"sampler must be one of {', '.join(SAMPLERS)}, got {sampler!r}")
    return SAMPLERS[sampler].for_epochs(labels, num_classes, epochs, seed)


def _loss(loss: AnyLoss | None, head: Head, batches: Prior, prior: Prior, sgd: SGDConfig) -> Loss:
    if loss is None:
        return own_loss(head, batches, prior, sgd)
    chosen_loss = loss if isinstance(loss, nn.Module) else loss(batches)
    if not isinstance(chosen_loss, Loss):
        raise TypeError(
            f"fit_head trains with losses of longtail.losses, which say what is carried, got "
            f"{type(chosen_loss).__name__}; cross-entropy is longtail.losses.CrossEntropy"
        )
    if chosen_loss.reduction == "none":
        raise ValueError('a fit minimises one number; use reduction="mean" or "sum"')
    return chosen_loss


@singledispatch
def own_loss(head: Head, batches: Prior, prior: Prior, sgd: SGDConfig) -> Loss:
    """The loss of a head that is given none: cross-entropy, adjusted if `sgd` has a τ."""
    return LogitAdjusted(prior, tau=sgd.tau) if sgd.tau else CrossEntropy(batches)


@own_loss.register
def _(head: EstimatedOffset, batches: Prior, prior: Prior, sgd: SGDConfig) -> Loss:
    return EstimatedOffsetLoss(batches, head=head)  # type: ignore[arg-type]  # a Parameter too


def _whole_loss(loss: AnyLoss | None, head: Head, sampler: ClassSampler, sgd: SGDConfig) -> Loss:
    """The loss of all samples at once: what the sampler draws more often weighs more."""
    prior = Prior.of(sampler.counts, zeros="smooth")
    if loss is None and not sgd.tau and not sampler.changes:
        return CrossEntropy(prior, weight=sampler.weights())
    if not sampler.follows_data:
        raise ValueError(
            "L-BFGS draws no batches, so of a sampler it can only take the class weights, and only "
            "with the head's own loss; give the loss a weight instead, or use solver='sgd'"
        )
    chosen_loss = _loss(loss, head, prior, prior, sgd)
    if len(chosen_loss.stages) > 1:
        raise ValueError("L-BFGS has no epochs to switch the loss in; use solver='sgd'")
    return chosen_loss
