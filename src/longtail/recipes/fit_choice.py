r"""Choosing on held-out samples: the weight decay first, then each method's own number.

The weight decay is the one whose linear layer, trained by cross-entropy and moved to the target,
has the lowest log-loss on the held-out samples: steadier than errors, of which rare classes have
few. It is looked for on a grid of factors 10^½, from the middle outwards as long as it gets better,
and then at the lowest point of the parabola through the best and its neighbours. A method's number
is chosen on each held-out part; a part is judged with the median of the others'. A single part is
cut into five for that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

import torch
from torch import Tensor, nn

from longtail.core import Prior, Scores
from longtail.core.tensors import as_tensor
from longtail.data import stratified_folds
from longtail.engine import fit_linear
from longtail.heads import Head
from longtail.losses import CrossEntropy
from longtail.metrics import evaluate
from longtail.recipes.fit_methods import Aim, Method, Task
from longtail.recipes.fit_parts import Pair

_STEP = 10**0.5
_START = 3e-3  # for features of unit spread
_MOST = 8  # steps to either side
_TOLERANCE = 1e-5
_CUTS = 5


@dataclass
class DecaySearch:
    """Linear layers of every pair at the weight decays tried, and how these did.

    Attributes:
        pairs: What is fitted and judged on.
        target: Under which prior log-losses are taken.
        losses: Log-loss by place on the grid; 0 is the middle.
    """

    pairs: Sequence[Pair]
    target: Prior
    losses: dict[float, float] = field(default_factory=dict)
    _layers: dict[float, list[nn.Linear]] = field(default_factory=dict)

    def decay(self, place: float) -> float:
        """The weight decay at a place of the grid."""
        return float(_START * _STEP**place)

    def best(self, tick: Callable[[], None] = lambda: None) -> tuple[float, list[nn.Linear]]:
        """The place of the best weight decay, and the layers it gives."""
        here = 0.0
        for step in (1, -1):
            while abs(here) < _MOST:
                now = self._loss(here, here, tick)
                if self._loss(here + step, here, tick) >= now:
                    break
                here += step
        if {here - 1, here + 1} <= self.losses.keys():
            low, middle, high = (self.losses[here + step] for step in (-1, 0, 1))
            bend = low - 2 * middle + high
            between = here + 0.5 * (low - high) / bend if bend > 0 else here
            if self._loss(between, here, tick) < middle:
                here = between
        return here, self._layers[here]

    def _loss(self, place: float, near: float, tick: Callable[[], None]) -> float:
        if place not in self.losses:
            starts = self._layers.get(near, [None] * len(self.pairs))
            layers, scores = [], []
            for pair, start in zip(self.pairs, starts, strict=True):
                layer, prior = linear_layer(
                    pair.features, pair.labels, self.target.num_classes, self.decay(place), start
                )
                layers.append(layer)
                logits = layer(pair.held_features)
                scores.append(Scores(logits, pair.held_labels, carried=prior).under(self.target))
            self._layers[place] = layers
            loss = evaluate(_joined(scores), self.target)["nll"]
            assert loss is not None  # there are samples
            self.losses[place] = loss
            tick()
        return self.losses[place]


def linear_layer(
    features: Tensor, labels: Tensor, num_classes: int, decay: float, start: nn.Linear | None
) -> tuple[nn.Linear, Prior]:
    """A layer trained by cross-entropy, and the prior that its logits carry."""
    prior = Prior.from_labels(labels, num_classes)
    layer = fit_linear(
        features, labels, CrossEntropy(prior), weight_decay=decay, start=start, tolerance=_TOLERANCE
    )
    return layer, prior


class Predicted(NamedTuple):
    """Logits that a method predicts by, and what they carry."""

    logits: Tensor
    carried: Prior | None


def predicted(method: Method, head: Head, features: Tensor, target: Prior) -> Predicted:
    """What a method predicts by: moved to the target if it can be, unless its paper does not."""
    with torch.no_grad():
        logits = head(features)
    if method.is_as_is(target) or head.carried is None:
        return Predicted(logits, head.carried)
    moved = Scores(logits, carried=head.carried).under(target)
    return Predicted(torch.as_tensor(moved.logits), target)


def judged(
    method: Method, heads: list[Head], tasks: list[Task], pairs: Sequence[Pair], aim: Aim
) -> tuple[list[Predicted], float | None]:
    """What is predicted for every held-out part, and the number for the fit on all samples."""
    if method.tuned is None:
        return [
            predicted(method, head, pair.held_features, aim.target)
            for head, pair in zip(heads, pairs, strict=True)
        ], None
    if len(pairs) == 1:
        return _judged_in_cuts(method, heads[0], tasks[0], pairs[0], aim)
    found = [
        method.tuned.best(head, task, task.layer(pair.held_features), pair.held_labels, aim)
        for head, task, pair in zip(heads, tasks, pairs, strict=True)
    ]
    parts = []
    for k, (head, task, pair) in enumerate(zip(heads, tasks, pairs, strict=True)):
        others = median(found[:k] + found[k + 1 :])
        tuned = method.tuned.put(head, task, others, aim)
        parts.append(predicted(method, tuned, pair.held_features, aim.target))
    return parts, median(found)


def _judged_in_cuts(
    method: Method, head: Head, task: Task, pair: Pair, aim: Aim
) -> tuple[list[Predicted], float]:
    """Each cut of a single held-out part with the number that the rest of it chose."""
    assert method.tuned is not None
    features, labels = pair.held_features, pair.held_labels
    plain = task.layer(features)
    cut = as_tensor(stratified_folds(labels, min(_CUTS, len(labels)), task.seed))
    parts = []
    for number in range(int(cut.max()) + 1):
        rest = cut != number
        value = method.tuned.best(head, task, plain[rest], labels[rest], aim)
        tuned = method.tuned.put(head, task, value, aim)
        parts.append((~rest, predicted(method, tuned, features[~rest], aim.target)))
    whole = torch.zeros_like(plain)
    for rows, part in parts:
        whole[rows] = part.logits
    best = method.tuned.best(head, task, plain, labels, aim)
    return [Predicted(whole, parts[0][1].carried)], best


def _joined(parts: Sequence[Scores]) -> Scores:
    return Scores(
        torch.cat([torch.as_tensor(part.logits) for part in parts]),
        torch.cat([torch.as_tensor(part.labels) for part in parts]),
        carried=parts[0].carried,
        split="validation",
    )
