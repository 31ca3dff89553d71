r"""Fitting a head on features that were computed once: the second stage of every method.

    class moments → SGD, or L-BFGS where the problem is convex → what the head now carries

What it carries is loss.carried · batches / train: the loss is for batches that follow `train`, the
sampler makes them follow `batches`. Adding τ·log n to class-balanced batches (NCM eq. 9) thus gives
π^(−τ). Heads that are no change of prior carry None.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn

from longtail.core import Prior, Scores
from longtail.core.arrays import Array, ArrayLike, is_torch
from longtail.core.numbers import check_whole
from longtail.core.prior import check_same_classes
from longtail.data import SAMPLERS, ClassSampler, InstanceSampler, ProgressiveSampler
from longtail.engine.drawing import carried_after, sampler_for
from longtail.engine.feature_rows import FeatureRows
from longtail.engine.fit_head_checks import check_head, check_options, checked_labels
from longtail.engine.head_full import minimise_scale
from longtail.engine.head_sgd import EpochDone, HeldOut, Sgd, train_head
from longtail.engine.linear import fit_linear
from longtail.heads import EstimatedOffset, Head, Linear, Recipe, TauNorm, class_moments
from longtail.losses import CrossEntropy, Deferred, LogitAdjusted, Loss
from longtail.losses import EstimatedOffset as EstimatedOffsetLoss
from longtail.posthoc import WeightNormalization

AnyLoss: TypeAlias = Loss | Deferred | Callable[[Prior], Loss | Deferred]


def fit_head(
    head: Head,
    features: Array,
    labels: ArrayLike,
    loss: AnyLoss | None = None,
    sampler: str | ClassSampler | None = None,
    *,
    recipe: Recipe | None = None,
    solver: Literal["sgd", "lbfgs"] = "sgd",
    held_out: tuple[Array, ArrayLike] | None = None,
    patience: int = 3,
    seed: int = 0,
    progress: Callable[[EpochDone], None] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> Prior | None:
    """Fit the head in place, and say what it now carries.

    Heads in closed form are set from class moments. Others start there if they take moments and
    have none, or else where they are, and are trained. The τ of TauNorm is the best on `held_out`.

    Args:
        head: One of `longtail.heads`; it is left in evaluation mode.
        features: Shape (N, D), torch or NumPy, float16 to float64. A memory-mapped array is read a
            batch or a block at a time.
        labels: Class indices.
        loss: A loss, or a loss class to be made for the batches, called as `loss(prior)`. By
            default that of the head: cross-entropy, adjusted if its recipe has a τ.
        sampler: A name in `longtail.data.SAMPLERS` or a sampler of these labels. By default the
            recipe's if the loss is the head's own too, else "instance".
        recipe: How to train; by default the head's own. For "lbfgs" its weight decay counts alone.
        solver: "sgd" takes the recipe's steps; "lbfgs" goes to the minimum, for heads that are
            convex in what they learn (Linear, LearnableScale), with the sampler as class weights.
        held_out: Features and labels to stop by: after each epoch the balanced accuracy on them
            is taken, and the head ends as it was at the best.
        patience: Epochs without a better one before it stops; needs `held_out`.
        seed: Of the sampler.
        progress: Told after each epoch.
        checkpoint: A file to go on from if it is there, and to write after each epoch.

    >>> import longtail as lt
    >>> data = lt.data.caltech101_long_tailed()
    >>> head = lt.heads.LearnedNCM(256, 101)
    >>> lt.fit_head(head, data.train_features, data.train_labels).is_close(lt.Prior.uniform(101))
    True
    """
    check_head(head)
    rows = FeatureRows(features)
    known = checked_labels(labels, rows, head, "features")
    stop_by = None
    if held_out is not None:
        held_rows = FeatureRows(held_out[0])
        stop_by = HeldOut(
            held_rows, checked_labels(held_out[1], held_rows, head, "held-out features")
        )
    check_whole(seed, "seed")
    how = head.recipe if recipe is None else recipe
    trained = not isinstance(head, TauNorm) and head.recipe is not None
    given = (loss, sampler, recipe, progress, checkpoint, None if trained else stop_by)
    check_options(head, solver, patience, trained, given)
    if isinstance(head, TauNorm):
        _choose_tau(head, stop_by)
        return None
    if head.moment_options is not None and (how is None or head.waits_for_moments):
        head.set_moments(class_moments(features, known, head.num_classes, **head.moment_options))
    if how is None:
        head.train(False)
        return head.carried
    drawn = _sampler(sampler, loss, known, head.num_classes, how, seed)
    if solver == "lbfgs":
        if checkpoint is not None or stop_by is not None or progress is not None:
            raise ValueError(
                "L-BFGS goes to the minimum in one go; held_out, progress and checkpoint are for "
                'solver="sgd"'
            )
        carried = _minimise(head, rows, features, known, loss, drawn, how)
        head.carry(carried if head.takes_prior else None)
        head.train(False)
        return head.carried
    prior = Prior.of(drawn.counts, zeros="smooth")
    made = _loss(loss, head, drawn.induced(prior), prior, how)
    check_same_classes(head.num_classes, made.batches, "the head has", "the loss")
    drawn = sampler_for(drawn, known, made)

    def carried_now() -> Prior | None:
        return carried_after(made, drawn) if head.takes_prior else None

    place = None if checkpoint is None else os.fspath(checkpoint)
    with _training(head):
        way = Sgd(how, patience, place, progress)
        train_head(head, rows, known, made, drawn, carried_now, stop_by, way)
    if stop_by is None:
        head.carry(carried_now())
    return head.carried


def _sampler(
    sampler: str | ClassSampler | None,
    loss: AnyLoss | None,
    labels: Tensor,
    num_classes: int,
    recipe: Recipe,
    seed: int,
) -> ClassSampler:
    if isinstance(sampler, ClassSampler):
        if sampler.num_classes != num_classes or not sampler.is_of(labels):
            raise ValueError("the sampler was made for other labels than these; make it from them")
        return sampler
    name = sampler or (recipe.sampler if loss is None else "instance")
    if name not in SAMPLERS:
        raise ValueError(f"sampler must be one of {', '.join(SAMPLERS)}, got {name!r}")
    if name == "progressive":
        return ProgressiveSampler(labels, num_classes, num_epochs=recipe.epochs, seed=seed)
    if name == "m_per_class":
        raise ValueError(
            "give m_per_class as longtail.data.MPerClassSampler(labels, num_classes, m=...): "
            "m is yours to choose"
        )
    return SAMPLERS[name](labels, num_classes, seed=seed)


def _loss(
    loss: AnyLoss | None, head: Head, batches: Prior, prior: Prior, recipe: Recipe
) -> Loss | Deferred:
    """The loss to train with."""
    if loss is not None:
        made = loss if isinstance(loss, nn.Module) else loss(batches)
        if not isinstance(made, (Loss, Deferred)):
            raise TypeError(
                f"fit_head trains with losses of longtail.losses, which say what is carried, got "
                f"{type(made).__name__}; cross-entropy is longtail.losses.CrossEntropy"
            )
        if isinstance(made, Loss) and made.reduction == "none":
            raise ValueError('a fit minimises one number; use reduction="mean" or "sum"')
        return made
    if isinstance(head, EstimatedOffset):
        return EstimatedOffsetLoss(batches, head=head)  # type: ignore[arg-type]  # a Parameter too
    if recipe.tau:
        return LogitAdjusted(prior, tau=recipe.tau)
    return CrossEntropy(batches)


def _minimise(
    head: Head,
    rows: FeatureRows,
    features: Array,
    labels: Tensor,
    loss: AnyLoss | None,
    sampler: ClassSampler,
    recipe: Recipe,
) -> Prior | None:
    """Go to the minimum over all samples; what is then carried."""
    prior = Prior.of(sampler.counts, zeros="smooth")
    if loss is None and not recipe.tau and not isinstance(sampler, ProgressiveSampler):
        made: Loss | Deferred = CrossEntropy(prior, weight=sampler.weights())
    elif type(sampler) is InstanceSampler:
        made = _loss(loss, head, prior, prior, recipe)
    else:
        raise ValueError(
            "L-BFGS draws no batches, so of a sampler it can only take the class weights, and only "
            "with the head's own loss; give the loss a weight instead, or use solver='sgd'"
        )
    if not isinstance(made, Loss):
        raise ValueError("L-BFGS has no epochs to switch the loss in; use solver='sgd'")
    if isinstance(head, Linear):
        if is_torch(features) and features.element_size() < 4:
            features = features.float()
        layer = fit_linear(
            features,
            labels,
            made,
            weight_decay=recipe.weight_decay,
            bias=head.bias is not None,
            start=head.to_linear(),
        )
        head.load_state_dict(layer.state_dict())
    else:
        minimise_scale(head, rows, labels, made, recipe.weight_decay)
    return carried_after(made, InstanceSampler(labels, head.num_classes))


def _choose_tau(head: TauNorm, held_out: HeldOut | None) -> None:
    """Set τ to the best on held-out samples, as far as they determine it."""
    if held_out is None:
        raise ValueError(
            "the tau of TauNorm is chosen on samples that its weights were not trained on; "
            "give held_out=(features, labels)"
        )
    plain = torch.cat([block @ head.weight.to(block).T for _, block in held_out.rows.blocks()])
    nu = head.log_nu(torch.float64).exp()
    best = WeightNormalization(nu).fit(Scores(plain, held_out.labels)).tau
    if not (nu**-best).to(head.weight).isfinite().all():
        raise ValueError(
            f"the best tau on the held-out samples is {best:.3g}, which {head.weight.dtype} cannot "
            "hold: the norms say nothing about these classes; train the weights first"
        )
    head.tau = best
    head.carry(None)
    head.train(False)


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
