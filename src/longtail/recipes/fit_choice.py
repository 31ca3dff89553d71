r"""Choosing on held-out samples: the weight decay first, then each method's own number.

The weight decay is the one whose linear layer, trained by cross-entropy and moved to the target,
has the lowest log-loss on the held-out samples: steadier than errors, of which rare classes have
few. It is looked for on a grid of factors 10^½, from the middle outwards as long as it gets better,
and then at the lowest point of the parabola through the best and its neighbours. A method's number
is chosen on each held-out part; a part is judged with the median of the others'.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median

import torch
from torch import Tensor, nn

from longtail.core import Prior, Scores
from longtail.engine import fit_linear
from longtail.heads import Head
from longtail.losses import CrossEntropy
from longtail.metrics import evaluate
from longtail.recipes.fit_methods import Method, Task
from longtail.recipes.fit_parts import Pair

_STEP = 10**0.5
_START = 3e-3  # times the mean square of a feature
_MOST = 6  # steps to either side
_TOLERANCE = 1e-5


@dataclass
class DecaySearch:
    """Linear layers of every pair at the weight decays tried, and how these did.

    Attributes:
        pairs: What is fitted and judged on.
        num_classes: How many classes there are.
        target: Under which prior log-losses are taken.
        losses: Log-loss by place on the grid; 0 is the middle.
    """

    pairs: Sequence[Pair]
    num_classes: int
    target: Prior
    losses: dict[float, float] = field(default_factory=dict)
    _layers: dict[float, list[nn.Linear]] = field(default_factory=dict)

    def decay(self, place: float) -> float:
        """The weight decay at a place of the grid, in the features' own units."""
        rows = self.pairs[0].features
        return float(_START * _STEP**place * rows.square().mean())

    def best(self, tick: Callable[[], None] = lambda: None) -> tuple[float, list[nn.Linear]]:
        """The best weight decay, and the layers it gives."""
        here = 0.0
        for step in (1, -1):
            while abs(here) < _MOST:
                now = self._loss(here, here, tick)
                if self._loss(here + step, here, tick) >= now:
                    break
                here += step
        if {here - 1, here + 1} <= self.losses.keys():
            low, middle, high = (self.losses[here + step] for step in (-1, 0, 1))
            between = here + 0.5 * (low - high) / (low - 2 * middle + high)
            if self._loss(between, here, tick) < middle:
                here = between
        return self.decay(here), self._layers[here]

    def _loss(self, place: float, near: float, tick: Callable[[], None]) -> float:
        if place not in self.losses:
            starts = self._layers.get(near, [None] * len(self.pairs))
            layers, scores = [], []
            for pair, start in zip(self.pairs, starts, strict=True):
                layer, prior = linear_layer(
                    pair.features, pair.labels, self.num_classes, self.decay(place), start
                )
                layers.append(layer)
                logits = layer(pair.held_features)
                scores.append(Scores(logits, pair.held_labels, carried=prior).under(self.target))
            self._layers[place] = layers
            loss = evaluate(joined(scores), self.target)["nll"]
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


def joined(parts: Sequence[Scores]) -> Scores:
    """Scores of several parts that carry the same."""
    return Scores(
        torch.cat([torch.as_tensor(part.logits) for part in parts]),
        torch.cat([torch.as_tensor(part.labels) for part in parts]),
        carried=parts[0].carried,
        split="validation",
    )


def predicted(
    method: Method, head: Head, features: Tensor, target: Prior
) -> tuple[Tensor, Prior | None]:
    """The logits a method predicts by, and what they carry."""
    with torch.no_grad():
        logits = head(features)
    if method.as_is or head.carried is None:
        return logits, head.carried
    return torch.as_tensor(Scores(logits, carried=head.carried).under(target).logits), target


def tuned_heads(
    method: Method, heads: list[Head], tasks: list[Task], pairs: Sequence[Pair]
) -> tuple[list[Head], float | None]:
    """Heads with the number that the other parts chose, and the one for the fit on all samples."""
    if method.tuned is None:
        return heads, None
    found = [
        method.tuned.best(head, task, task.layer(pair.held_features), pair.held_labels)
        for head, task, pair in zip(heads, tasks, pairs, strict=True)
    ]
    with_value = []
    for k, (head, task) in enumerate(zip(heads, tasks, strict=True)):
        others = found[:k] + found[k + 1 :] or found
        with_value.append(method.tuned.put(head, task, median(others)))
    return with_value, median(found)
