r"""What becomes of the result that a page is about on two ways: along τ, and along the target.

**Every τ.** The logits f of the result are calibrated and moved by τ₀. At another τ they are

    f + (τ − τ₀)·(log t − log π),

so that at τ₀ nothing is added: what is counted there is what the tables beside it count. A sample
is right on one interval [start, stop) of τ. So two numbers a sample are enough: the places on a
slider from which on and up to which it is right. Both are found in float64. τ₀ has a place of its
own among those of the slider.

**Every target** from the source π through uniform to its inverse, t ∝ π^s with s from 1 to −1: the
result is moved to each t, and the scores before are left as they are. A sample of class y counts
t(y)/n_y. A logit moves on a straight line in s, so nothing is approximated between the places. With
m the largest logit of a row, the normaliser of all places is one product of matrices,

    log Σ_y exp(z_y + o_y)  =  m + log Σ_y exp(z_y − m)·exp(o_y).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from longtail.core import Prior, Scores
from longtail.core.arrays import as_numpy
from longtail.core.blocks import slices
from longtail.core.retarget import prior_offset
from longtail.flows.samples import BeforeAfter
from longtail.metrics import Accumulator, recalls
from longtail.metrics.recall import mean_recall
from longtail.posthoc import TauCurve
from longtail.posthoc.tau.curve import curve_along
from longtail.posthoc.tau.intervals import Intervals
from longtail.posthoc.tau.paths import Shift
from longtail.posthoc.validation import Weighted

STEP = 0.001  # of the slider
MOST_SAMPLES = 250_000  # two numbers a sample: above a megabyte and a third in a page
_DRAWN = 20  # so many places of the slider for a point of the drawn curves
_FARTHEST = 30.0  # 60,000 places, which two bytes can number
PLACES = tuple(k / 10 for k in range(21))  # 1 − s: 0 as before, 1 uniform, 2 reversed
_BLOCK = 2**18  # numbers of a block, which is passed over for every place: it stays in the cache

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TauPath:
    """What becomes of the samples at every τ. Classes are in their own order.

    Attributes:
        ends: From which place on and up to which each sample is right, a row a sample; the samples
            by class, in the order in which classes are shown.
    """

    tau: float  # that of the result, where the slider starts
    best_tau: float  # where on the slider accuracy under the target is highest on these samples
    slider: Floats  # the steps of the slider
    position: int  # that of the result among the steps and itself
    is_between: bool  # whether that place lies between those of the steps
    ends: npt.NDArray[np.uint16]
    weights: dict[str, Floats]  # what each class counts for in each accuracy
    before: Floats  # the accuracy of each class before; NaN where there are no samples
    result: Floats  # the same of the result
    totals: dict[str, tuple[float, float]]  # each accuracy before and of the result
    drawn: Floats  # the τ at which the accuracies are drawn
    curves: dict[str, Floats]  # each accuracy there


def tau_path(
    samples: BeforeAfter, target: Prior | None, shares: Mapping[str, Floats], keys: Sequence[str]
) -> TauPath | None:
    """The path of the result; None without a known prior or with too many samples.

    It follows those of `keys` for which `shares` says what each class counts for. `target` is what
    samples are measured under; None: as they are.
    """
    way = _way(samples)
    if way is None or len(samples.labels) > MOST_SAMPLES:
        return None
    offset, tau = way
    under = target or Prior.of(samples.label_counts, zeros="keep")
    weighted = Weighted.under(under, as_numpy(samples.after.logits), samples.labels)
    curve = curve_along(Shift(offset), weighted, under)  # for τ beyond that of the result
    steps = slider(curve.best_tau + tau, tau)
    taus = np.union1d(steps, tau)  # the result has a place of its own
    before = as_numpy(recalls(samples.before))
    (result,) = _recalls(np.zeros(1), curve.intervals, samples)
    weights = {key: shares[key] for key in keys if key in shares}
    drawn = steps[::_DRAWN]
    right = _recalls(drawn - tau, curve.intervals, samples)
    return TauPath(
        tau=tau,
        best_tau=best_place(steps, tau, curve),
        slider=steps,
        position=int(np.searchsorted(taus, tau)),
        is_between=len(taus) > len(steps),
        ends=_ends(taus - tau, curve.intervals, samples),
        weights=weights,
        before=before,
        result=np.where(np.isnan(before), np.nan, result),
        totals={
            key: (float(np.nan_to_num(before) @ w), float(result @ w)) for key, w in weights.items()
        },
        drawn=drawn,
        curves={key: right @ w for key, w in weights.items()},
    )


def slider(*taus: float) -> Floats:
    """The steps of the slider: −1 to 3, and further where a τ that it has to reach lies further."""
    low = max(min(-1.0, math.floor(min(taus) - 1)), -_FARTHEST)
    high = min(max(3.0, math.ceil(max(taus) + 1)), _FARTHEST)
    steps = round(1 / STEP)
    # Divided, not multiplied: so each is the double that its decimals stand for.
    return np.arange(round(low) * steps, round(high) * steps + 1) / steps


def best_place(taus: Floats, start: float, curve: TauCurve) -> float:
    """The τ of the slider with the highest accuracy under the target.

    The best τ of all may lie in a piece of the curve that no place of the slider falls into. Of
    equally good places it is the nearest to that τ.
    """
    pieces = np.searchsorted(as_numpy(curve.taus), taus - start, side="right")
    accuracy = as_numpy(curve.accuracy)[pieces]
    good = taus[accuracy > accuracy.max() - 1e-12]
    return float(good[np.abs(good - start - curve.best_tau).argmin()])


def _way(samples: BeforeAfter) -> tuple[Floats, float] | None:
    """What is added to the result's logits for each unit of τ, and the τ of the result.

    A result that is no move of the scores before is taken as it is, at τ = 0.
    """
    source = samples.source_of(samples.moved_by_tau)
    if source is None or source.is_close(samples.goal):
        return None
    # What the target rules out is ruled out in the result already.
    offset = np.nan_to_num(prior_offset(source, samples.goal), neginf=0.0)
    is_move = samples.tau is not None and source is samples.before.carried
    return offset, samples.tau or 0.0 if is_move else 0.0


def _ends(taus: Floats, intervals: Intervals, samples: BeforeAfter) -> npt.NDArray[np.uint16]:
    """The places of the interval of each sample; `taus` are counted from the result."""
    rank = np.empty_like(samples.order)
    rank[samples.order] = np.arange(len(rank))
    by_class = np.argsort(rank[samples.labels], kind="stable")
    start, stop = (np.searchsorted(taus, end) for end in intervals)
    return np.stack([start, stop], axis=1)[by_class].astype(np.uint16)


def _recalls(taus: Floats, intervals: Intervals, samples: BeforeAfter) -> Floats:
    """The recall of every class at each τ, counted from that of the result, a row a τ.

    It is zero for a class without samples, which weighs none.
    """
    classes, able = samples.num_classes, intervals.start < intervals.stop
    labels, right = samples.labels[able], np.zeros((len(taus) + 1, classes))
    for ends, sign in ((intervals.start, 1), (intervals.stop, -1)):
        cells = np.searchsorted(taus, ends[able]) * classes + labels
        right += sign * np.bincount(cells, minlength=right.size).reshape(right.shape)
    shares: Floats = right[:-1].cumsum(axis=0) / np.maximum(samples.label_counts, 1)
    return shares


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

    @property
    def ratios(self) -> tuple[float, ...]:
        """The same of the target at each of the places."""
        return tuple(self.ratio ** abs(1 - position) for position in PLACES)


def target_path(samples: BeforeAfter) -> TargetPath | None:
    """The path of before and of the result; None if it is not known what they carry."""
    source, carried = samples.source, samples.before.carried
    if source is None or carried is None or source.is_close(Prior.uniform(source.num_classes)):
        return None
    if not source.probs[samples.label_counts > 0].any():  # no sample would count
        return None
    result = samples.after
    if result.carried is None or result.carried.has_zeros:  # nothing can be moved from there
        result = samples.before
    targets = [source.tempered(1 - position) for position in PLACES]
    offsets = np.stack([prior_offset(result.carried, target) for target in targets])
    (as_they_are,) = sums_with(samples.before, np.zeros((1, samples.num_classes)))
    moved = sums_with(result, offsets)
    logs = source.log
    return TargetPath(
        left=tuple(under(as_they_are, target) for target in targets),
        moved=tuple(map(under, moved, targets)),
        ratio=float(np.exp(logs.max() - logs.min())),
    )


def sums_with(scores: Scores, offsets: Floats) -> list[Accumulator]:
    """The sums of labelled scores with each row of offsets added to them."""
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
        for position, offset in enumerate(offsets):
            # From the logits, as Scores.predict does: probabilities may tie where these do not.
            moved = block + offset.astype(block.dtype)
            taken = moved.argmax(axis=1)
            right[position, at] = taken == true
            highest[position, at] = moved[index, taken]
            own[position, at] = moved[index, true]
    # Where the likely classes are next to ruled out, the sum may leave the range of numbers.
    confidence, loss = np.exp(np.minimum(highest - total, 0.0)), total - own
    return [
        Accumulator.of_terms(labels, each, scores.num_classes, confidence=sure, nll=nll)
        for each, sure, nll in zip(right, confidence, loss, strict=True)
    ]


def under(sums: Accumulator, target: Prior) -> UnderTarget:
    """Accuracy, ECE and NLL where labels follow the target."""
    moved = sums.under(target)
    accuracy, loss = mean_recall(moved.recalls, target.probs), moved.mean(moved.nll)
    return UnderTarget(accuracy, moved.ece, loss if math.isfinite(loss) else None)
