r"""Choosing on validation samples: the weight decay first, then each method's own τ.

The weight decay is the one whose linear layer, trained by cross-entropy and moved to the target,
has the lowest log-loss on the validation samples: steadier than errors, of which rare classes have
few. It is looked for on a grid of factors 10^½, from the middle outwards as long as it gets better,
and then at the lowest point of the parabola through the best and its neighbours. A method's τ
is chosen on each fold's validation part; a part is judged with the median of the others'. A single
part is cut into five for that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from typing import NamedTuple

import torch
from torch import Tensor, nn

from longtail.core import Prior, Scores
from longtail.core.tensors import as_tensor
from longtail.data import stratified_folds
from longtail.engine import fit_linear
from longtail.flows.fit_methods import Aim, Method, Task, Tuned
from longtail.flows.fit_samples import Fold, Samples
from longtail.heads import Head
from longtail.losses import CrossEntropy
from longtail.metrics import evaluate

_FACTOR = 10**0.5
_MIDDLE = 3e-3  # for features of unit spread
_MOST_STEPS = 8  # to either side
_TOLERANCE = 1e-5
_CUTS = 5


class DecayChoice(NamedTuple):
    """The weight decay with the lowest log-loss.

    Attributes:
        decay: The weight decay.
        layers: The linear layer of each fold that it gives.
        losses: Log-loss of every weight decay that was tried.
    """

    decay: float
    layers: list[nn.Linear]
    losses: dict[float, float]


def choose_decay(
    folds: Sequence[Fold], target: Prior, progress: Callable[[], None] = lambda: None
) -> DecayChoice:
    """The best weight decay for linear layers of these folds; `progress` is called for each tried.

    Args:
        folds: What is fitted and judged on.
        target: Under which prior log-losses are taken.
        progress: Called after each weight decay.
    """
    layers: dict[float, list[nn.Linear]] = {}  # by the step on the grid, 0 in the middle
    losses: dict[float, float] = {}

    def decay(step: float) -> float:
        return float(_MIDDLE * _FACTOR**step)

    def loss(step: float, near: float) -> float:
        """The log-loss at a step; layers start from those at another that is near."""
        if step not in losses:
            starts = layers.get(near, [None] * len(folds))
            layers[step] = [
                linear_layer(fold.train, target.num_classes, decay(step), start)
                for fold, start in zip(folds, starts, strict=True)
            ]
            losses[step] = _log_loss(layers[step], folds, target)
            progress()
        return losses[step]

    best = 0.0
    for step in (1, -1):
        while abs(best) < _MOST_STEPS:
            here = loss(best, best)
            if loss(best + step, best) >= here:
                break
            best += step
    if {best - 1, best + 1} <= losses.keys():
        low, middle, high = (losses[best + step] for step in (-1, 0, 1))
        bend = low - 2 * middle + high
        between = best + 0.5 * (low - high) / bend if bend > 0 else best
        if loss(between, best) < middle:
            best = between
    return DecayChoice(decay(best), layers[best], {decay(step): losses[step] for step in losses})


def linear_layer(
    samples: Samples, num_classes: int, decay: float, start: nn.Linear | None
) -> nn.Linear:
    """A layer trained by cross-entropy, whose logits carry the prior of the labels."""
    labels = samples.labels
    loss = CrossEntropy(Prior.from_labels(labels, num_classes))
    return fit_linear(
        samples.features, labels, loss, weight_decay=decay, start=start, tolerance=_TOLERANCE
    )


def _log_loss(layers: Sequence[nn.Linear], folds: Sequence[Fold], target: Prior) -> float:
    """Of the validation parts of all folds together, moved to the target."""
    logits = []
    for layer, fold in zip(layers, folds, strict=True):
        carried = Prior.from_labels(fold.train.labels, target.num_classes)
        moved = Scores(layer(fold.validation.features), carried=carried).under(target)
        logits.append(as_tensor(moved.logits))
    labels = torch.cat([fold.validation.labels for fold in folds])
    scores = Scores(torch.cat(logits), labels, carried=target, split="validation")
    loss = evaluate(scores, target)["nll"]
    assert loss is not None  # there are samples
    return loss


class Predicted(NamedTuple):
    """Logits that a method predicts by, and what they carry."""

    logits: Tensor
    carried: Prior | None


def predicted(method: Method, head: Head, features: Tensor, target: Prior) -> Predicted:
    """What a method predicts by: moved to the target if it can be, unless its paper does not."""
    with torch.no_grad():
        logits = head(features)
    if method.keeps_logits(target) or head.carried is None:
        return Predicted(logits, head.carried)
    moved = Scores(logits, carried=head.carried).under(target)
    return Predicted(as_tensor(moved.logits), target)


def predicted_folds(
    method: Method, heads: Sequence[Head], tasks: Sequence[Task], folds: Sequence[Fold], aim: Aim
) -> tuple[list[Predicted], float | None]:
    """What is predicted for every validation part, and the τ for the fit on all samples."""
    parts = [fold.validation for fold in folds]
    if method.tuned is None:
        return [
            predicted(method, head, part.features, aim.target)
            for head, part in zip(heads, parts, strict=True)
        ], None
    if len(parts) == 1:
        return _predicted_in_cuts(method, method.tuned, tasks[0], parts[0], aim)
    tuned = method.tuned
    taus = [
        tuned.best(task, aim, task.layer(part.features), part.labels)
        for task, part in zip(tasks, parts, strict=True)
    ]
    outputs = []
    for k, (task, part) in enumerate(zip(tasks, parts, strict=True)):
        head = tuned.head(task, aim, median(taus[:k] + taus[k + 1 :]))
        outputs.append(predicted(method, head, part.features, aim.target))
    return outputs, median(taus)


def _predicted_in_cuts(
    method: Method, tuned: Tuned, task: Task, part: Samples, aim: Aim
) -> tuple[list[Predicted], float]:
    """Each cut of a single validation part with the τ that the rest of it chose."""
    features, labels = part.features, part.labels
    plain = task.layer(features)
    cut = as_tensor(stratified_folds(labels, min(_CUTS, len(labels)), task.seed))
    logits, carried = torch.zeros_like(plain), None
    for number in range(int(cut.max()) + 1):
        rest = cut != number
        head = tuned.head(task, aim, tuned.best(task, aim, plain[rest], labels[rest]))
        logits[~rest], carried = predicted(method, head, features[~rest], aim.target)
    return [Predicted(logits, carried)], tuned.best(task, aim, plain, labels)
