r"""The same samples before and after: both sets of metrics, and how sure the difference is.

A sample that turns right adds one, one that turns wrong takes one away. With d_i in {-1, 0, 1}

    gain = Σ_y w_y Σ_{i: y_i = y} d_i,        var(gain) = Σ_y w_y² · n_y · var_y(d) + 2/n²,

which is narrower than two separate intervals suggest, since most samples do not change. var_y leans
on the other classes as far as class y has few samples (`class_variance`), and on no less than the
share of samples that changed, r = Σ_y w_y · changed_y. No change seen is not no change to come:
2/n² is as if of the n samples that these are worth (Kish) one more had turned right and one wrong
(Agresti and Min, 2005).

Few changes say little about how many there will be. A number of them varies by itself, so that

    var(var) = Σ_y w_y⁴ · n_y · var_y(d) + 2/n⁴,        f = 2 var(gain)² / var(var),

are the degrees of freedom of Student's t (Satterthwaite). Without a change f = 4, and the interval
reaches to 3.9/n, as the exact one of none in n does (3.7/n). Only where the scores after are those
before by a factor, as with a temperature, no sample can change: then the interval is the point 0.
"""

import math
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor

from longtail.core import Prior
from longtail.core.arrays import ArrayLike
from longtail.core.tensors import as_tensor
from longtail.metrics.class_variance import NORMAL, class_variances
from longtail.metrics.sanity import Sanity, sanity
from longtail.metrics.student import reach
from longtail.metrics.tally import Measured, Tally

_SCORES = ("nll", "brier")
_MORE = 2  # changes
_LEAST_FREEDOM = (
    3.0  # of a sample that outweighs all others it would be next to none, and t endless
)


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
        # Over the samples of each class, by how much the score fell, and the squares of that.
        self.falls = {name: torch.zeros(2, len(self.changed)).double() for name in _SCORES}
        self.can_differ = False  # whether any logits are not those before by a factor

    def add(self, before: Tensor, after: Tensor, labels: Tensor) -> None:
        """Count in a block of logits before and after, of the same samples."""
        was, now = self.before.add(before, labels), self.after.add(after, labels)
        known, classes = labels.cpu(), len(self.changed)
        self.changed += torch.bincount(known[was.right != now.right], minlength=classes)
        for name, sums in self.falls.items():
            fall = getattr(was, name) - getattr(now, name)
            for total, terms in zip(sums, (fall, fall.square()), strict=True):
                total += torch.bincount(known, terms, minlength=classes)
        self.can_differ = self.can_differ or not _is_scaled(before, after)

    def metrics(self) -> dict[str, tuple[Measured, Measured]]:
        """Every metric before and after."""
        after = self.after.metrics()
        return {name: (was, after[name]) for name, was in self.before.metrics().items()}

    def gains(self) -> dict[str, Measured]:
        """By how much each accuracy rose, and log-loss and Brier score fell.

        A group without samples has none, and without a target there is none under it. A calibration
        error is no mean over samples, so there is no such interval of its change.
        """
        self.before.check_complete()
        counts = self.before.counts.clamp(min=1)
        accuracies = {
            name: self._gain(share / counts) for name, share in self.before.class_shares.items()
        }
        return accuracies | {name: self._fall(*sums) for name, sums in self.falls.items()}

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

    def _fall(self, sums: Tensor, squares: Tensor) -> Measured:
        """Of a score that is a mean over samples; none where a class was ruled out."""
        seen = self.before.weight > 0
        n, total, weight = self.before.counts[seen], sums[seen], self.before.weight[seen]
        value = float((weight * total).sum())
        if n.sum() < 2 or not math.isfinite(value):
            return Measured(None)
        terms = weight.square() * n * class_variances(total, squares[seen], n)
        wide = NORMAL * float(terms.sum()) ** 0.5
        return Measured(value, value - wide, value + wide)

    def _gain(self, weight: Tensor) -> Measured:
        net = self.after.hits - self.before.hits
        return _paired(net, self.changed, self.before.counts, weight, self.can_differ)


def paired_gain(before: Tensor, after: Tensor, labels: Tensor, target: Prior) -> Measured:
    """By how much accuracy under the target rose, from which samples were right before and after.

    The same tensor twice is one model beside itself, which gains 0 without any doubt. Without a
    sample of a class that the target has there is no gain.

    >>> was, now = torch.tensor([True, False, True]), torch.tensor([True, True, True])
    >>> paired_gain(was, now, torch.tensor([0, 0, 1]), Prior.uniform(2)).value
    0.25
    """
    classes = target.num_classes
    counts = torch.bincount(labels, minlength=classes).double()
    net = torch.bincount(labels, after.double() - before.double(), minlength=classes)
    changed = torch.bincount(labels[before != after], minlength=classes).double()
    shares = as_tensor(target.probs) * (counts > 0)
    if not shares.any():
        return Measured(None)
    weight = shares / shares.sum() / counts.clamp(min=1)
    return _paired(net, changed, counts, weight, can_differ=before is not after)


def _paired(
    net: Tensor, changed: Tensor, counts: Tensor, weight: Tensor, can_differ: bool
) -> Measured:
    value = float((weight * net).sum())
    if not can_differ:
        return Measured(value, value, value)
    seen = weight > 0
    net, changed, counts, weight = net[seen], changed[seen], counts[seen], weight[seen]
    samples = float(1 / (weight.square() * counts).sum())  # equally weighted ones (Kish)
    share = float((weight * changed).sum())
    # d² is one for a sample that changed.
    terms = weight.square() * counts * class_variances(net, changed, counts, least=share)
    variance = float(terms.sum()) + _MORE / samples**2
    freedom = 2 * variance**2 / (float((weight.square() * terms).sum()) + _MORE / samples**4)
    wide = reach(0.05, max(freedom, _LEAST_FREEDOM)) * variance**0.5
    return Measured(value, max(-1.0, value - wide), min(1.0, value + wide))


def _is_scaled(before: Tensor, after: Tensor) -> bool:
    """Whether each row is that before times a factor plus a number, which decide alike.

    Of two classes any two rows that decide alike are, so there it is one factor for all rows.
    """
    was, now = (part.to("cpu", torch.float64) for part in (before, after))
    if torch.equal(was, now):  # also where a class is ruled out by −∞
        return True
    kinds = [part.dtype for part in (before, after) if part.is_floating_point()]
    eps = max((torch.finfo(kind).eps for kind in kinds), default=0.0)
    if was.shape[1] < 3:
        was, now = (part - part.mean(dim=1, keepdim=True) for part in (was, now))
        was, now = was.reshape(1, -1), now.reshape(1, -1)
    x, y = (part - part.mean(dim=1, keepdim=True) for part in (was, now))
    squares = x.square().sum(dim=1)
    factor = (x * y).sum(dim=1) / squares.where(squares > 0, 1.0)
    left = (y - factor.unsqueeze(1) * x).square().sum(dim=1)
    rounding = now.square().sum(dim=1) + factor.square() * was.square().sum(dim=1)
    return bool(((left <= (8 * eps) ** 2 * rounding) & (factor >= 0)).all())
