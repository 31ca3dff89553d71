r"""The same samples before and after: both sets of metrics, and how sure the difference is.

A sample that turns right adds one, one that turns wrong takes one away. With d_i in {-1, 0, 1}

    gain = Σ_y w_y Σ_{i: y_i = y} d_i,        var(gain) = Σ_y w_y² · n_y · var_y(d),

which is narrower than two separate intervals suggest, since most samples do not change. var_y leans
on the other classes as far as class y has few samples (`class_variance`).
"""

from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor

from longtail.core import Prior
from longtail.core.arrays import ArrayLike
from longtail.metrics.class_variance import NORMAL, class_variances
from longtail.metrics.sanity import Sanity, sanity
from longtail.metrics.tally import Measured, Tally


class Comparison:
    """Two tallies of the same samples: `add` blocks of both, then read `metrics` and `gains`.

    Args:
        label_counts: How many of the samples to come are of each class.
        target: Where labels follow this prior; None for the samples as they are.
        train_counts: Training samples of each class, for many, medium and few.

    >>> both = Comparison([2, 2])
    >>> before, after = torch.tensor([[1.0, 0.0]] * 4), torch.tensor([[1.0, 0.0], [0.0, 1.0]] * 2)
    >>> both.add(before, after, torch.tensor([0, 1, 0, 1]))
    >>> both.gains()["balanced_accuracy"].value
    0.5
    """

    def __init__(
        self,
        label_counts: ArrayLike,
        target: Prior | None = None,
        train_counts: ArrayLike | None = None,
    ) -> None:
        self.before = Tally(label_counts, target, train_counts)
        self.after = Tally(label_counts, target, train_counts)
        self.changed = torch.zeros_like(self.before.hits)

    def add(self, before: Tensor, after: Tensor, labels: Tensor) -> None:
        """Count in a block of logits before and after, of the same samples."""
        was, now = self.before.add(before, labels), self.after.add(after, labels)
        self.changed += torch.bincount(labels.cpu()[was != now], minlength=len(self.changed))

    def metrics(self) -> dict[str, tuple[Measured, Measured]]:
        """Every metric before and after."""
        after = self.after.metrics()
        return {name: (was, after[name]) for name, was in self.before.metrics().items()}

    def gains(self) -> dict[str, Measured]:
        """By how much each accuracy rose.

        A group without samples has none, and without a target there is none under it.
        """
        self.before.check_complete()
        counts = self.before.counts.clamp(min=1)
        return {
            name: self._gain(share / counts) for name, share in self.before.class_shares.items()
        }

    @property
    def sanity(self) -> Sanity:
        """Whether these scores are better than those of no model."""
        return sanity(self.before, self.after)

    def as_json(self) -> dict[str, Any]:
        """Whether to trust it, every metric before and after, and the gains with intervals."""
        return {
            "sanity": self.sanity.as_json(),
            "metrics": {
                name: {"before": asdict(before), "after": asdict(after)}
                for name, (before, after) in self.metrics().items()
            },
            "gains": {name: asdict(gain) for name, gain in self.gains().items()},
        }

    def _gain(self, weight: Tensor) -> Measured:
        net = self.after.hits - self.before.hits
        return _paired(net, self.changed, self.before.counts, weight)


def paired_gain(before: Tensor, after: Tensor, labels: Tensor, target: Prior) -> Measured:
    """By how much accuracy under the target rose, from which samples were right before and after.

    >>> was, now = torch.tensor([True, False, True]), torch.tensor([True, True, True])
    >>> paired_gain(was, now, torch.tensor([0, 0, 1]), Prior.uniform(2)).value
    0.25
    """
    classes = target.num_classes
    counts = torch.bincount(labels, minlength=classes).double()
    net = torch.bincount(labels, after.double() - before.double(), minlength=classes)
    changed = torch.bincount(labels[before != after], minlength=classes)
    shares = target.probs * (counts > 0)
    return _paired(net, changed, counts, shares / shares.sum() / counts.clamp(min=1))


def _paired(net: Tensor, changed: Tensor, counts: Tensor, weight: Tensor) -> Measured:
    # d² is one for a sample that changed. A few changes may all fall into classes that seem
    # certain: as if one sample more had turned right and one wrong (Agresti and Min, 2005).
    few = float((changed.sum() + 2) / (counts.sum() + 2)) if changed.any() else 0.0
    spread = counts * class_variances(net.double(), changed.double(), counts, least=few)
    value = float((weight * net).sum())
    reach = NORMAL * float((weight.square() * spread).sum()) ** 0.5
    return Measured(value, value - reach, value + reach)
