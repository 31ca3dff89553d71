r"""What accuracy and calibration become as the labels' prior moves.

On the way from the source π through uniform to its inverse, t ∝ π^s with s from 1 to −1, the scores
are moved to each t (after), and left as they are (before). What is moved is the result, so that
under its target it is as good as the tables beside it say. A sample of class y counts t(y)/n_y. How
a logit moves along this way is a straight line in s, so nothing is approximated between the places.
With m the largest logit of a row, the normaliser of all places is one product of matrices,

    log Σ_y exp(z_y + o_y)  =  m + log Σ_y exp(z_y − m)·exp(o_y).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from longtail.core import Prior, Scores
from longtail.core.arrays import as_numpy
from longtail.core.blocks import slices
from longtail.core.retarget import prior_offset
from longtail.flows.samples import BeforeAfter
from longtail.metrics.terms import bin_of

PLACES = tuple(k / 10 for k in range(21))  # 1 − s: 0 as before, 1 uniform, 2 reversed
_BLOCK = 2**18  # numbers of a block, which is passed over for every place: it stays in the cache

Floats = npt.NDArray[np.float64]


class UnderTarget(NamedTuple):
    """Three measures under one target; no NLL where it is infinite, which JSON cannot hold."""

    accuracy: float
    ece: float
    nll: float | None


@dataclass(frozen=True, eq=False)
class TargetPath:
    """The measures at each of PLACES."""

    left: tuple[UnderTarget, ...]  # of the scores before, left as they are
    moved: tuple[UnderTarget, ...]  # of the result, moved to the target of the place
    ratio: float  # of the source, its largest to its smallest probability


def target_path(samples: BeforeAfter) -> TargetPath | None:
    """The path of before and of the result; None if it is not known what they carry."""
    source, carried = samples.source, samples.before.carried
    if source is None or carried is None or source.is_close(Prior.uniform(source.num_classes)):
        return None
    result = samples.after
    if result.carried is None or result.carried.has_zeros:  # nothing can be moved from there
        result = samples.before
    targets = [source.tempered(1 - place) for place in PLACES]
    offsets = np.stack([prior_offset(result.carried, target) for target in targets])
    as_they_are = measured(samples.before, np.zeros((1, samples.num_classes)))[0]
    moved = measured(result, offsets)
    weights = [_weights(target, samples) for target in targets]
    logs = source.log
    return TargetPath(
        left=tuple(under(as_they_are, weight) for weight in weights),
        moved=tuple(map(under, moved, weights)),
        ratio=float(np.exp(logs.max() - logs.min())),
    )


class PerSample(NamedTuple):
    """Of each sample: whether it is right, with what confidence, its log-loss and its bin."""

    right: Floats
    confidence: Floats
    loss: Floats
    bins: npt.NDArray[np.int64]


def measured(scores: Scores, offsets: Floats) -> list[PerSample]:
    """What the logits say of their samples, with each row of offsets added to them."""
    logits, labels = as_numpy(scores.logits), as_numpy(scores.labels)
    shape = len(offsets), len(logits)
    right, highest, own, total = (np.empty(shape) for _ in range(4))
    factors = np.exp(offsets - offsets.max(axis=1, keepdims=True)).T
    tops = offsets.max(axis=1)
    for at in slices(len(logits), logits.shape[1], _BLOCK):
        block = logits[at]
        block = block if block.dtype.itemsize > 2 else block.astype(np.float32)
        index, true = np.arange(len(block)), labels[at]
        most = block.max(axis=1, keepdims=True).astype(np.float64)
        with np.errstate(divide="ignore"):
            sums = np.log(np.exp(block - most) @ factors).T
        total[:, at] = sums + most.T + tops[:, None]
        for place, offset in enumerate(offsets):
            # From the logits, as Scores.predict does: probabilities may tie where these do not.
            moved = block + offset.astype(block.dtype)
            taken = moved.argmax(axis=1)
            right[place, at] = taken == true
            highest[place, at] = moved[index, taken]
            own[place, at] = moved[index, true]
    confidence, loss = np.exp(highest - total), total - own
    measures = zip(right, confidence, loss, bin_of(confidence), strict=True)
    return [PerSample(*parts) for parts in measures]


def under(samples: PerSample, weights: Floats) -> UnderTarget:
    """Accuracy, ECE and NLL where samples count by their weights."""
    shares = weights / weights.sum()
    gaps = np.bincount(samples.bins, shares * (samples.right - samples.confidence))
    counted = shares > 0  # a class that does not count may have an infinite loss
    loss = float(shares[counted] @ samples.loss[counted])
    accuracy = float(shares @ samples.right)
    return UnderTarget(accuracy, float(np.abs(gaps).sum()), loss if math.isfinite(loss) else None)


def _weights(target: Prior, samples: BeforeAfter) -> Floats:
    weights: Floats = (target.probs / np.maximum(samples.label_counts, 1))[samples.labels]
    return weights
