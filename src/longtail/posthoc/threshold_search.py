r"""The exact optimum over the thresholds of a label: narrowed down by histograms, then sorted.

A criterion that rises with the true positives TP and falls with the false ones FP is in a bin of
scores nowhere better than TP at its low end with FP at its high end. The scores between the highest
and the lowest bin in which that beats the best of all ends are put into bins anew, until they are
few. Of equal thresholds the highest wins.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from longtail.core.arrays import Floats, Numbers, as_numpy
from longtail.core.blocks import IN_CACHE, slices
from longtail.core.label_scores import LabelScores
from longtail.core.threads import in_threads

Criterion: TypeAlias = Literal["f1", "balanced_error", "recall_at_precision", "precision_at_recall"]
Booleans: TypeAlias = npt.NDArray[np.bool_]
_Codes: TypeAlias = npt.NDArray[np.int16]
_BINS, _PART = 2**12, 2**15  # of a histogram, and scores that are put into it at a time
_FEW, _SAMPLE = 2**12, 2**10  # scores that are sorted, and that say where bins begin and end
_AT_A_TIME = 2**24  # numbers whose columns are put together
_ROUNDING = 1e-12


class Best(NamedTuple):
    """The threshold of a label, the criterion there and its standard error."""

    logit: float
    value: float
    standard_error: float


class Label(NamedTuple):
    """What a label's criterion is made of: how many positives and negatives, and what one counts.

    `positive` is the mass of all positives, and 1 − positive that of all negatives.
    """

    criterion: Criterion
    at: float | None
    positives: int
    negatives: int
    positive: float

    def value(self, true: Numbers | int, false: Numbers | int) -> Floats:
        """The criterion to be maximised, of so many positives and negatives from a threshold on."""
        mass, rest = self.positive, 1 - self.positive
        tp = np.asarray(true, np.float64) * (mass / self.positives)
        fp = np.asarray(false, np.float64) * (rest / self.negatives)
        if self.criterion == "f1":
            return np.asarray(2 * tp / (tp + fp + mass))
        if self.criterion == "balanced_error":
            return np.asarray((tp / mass - fp / rest + 1) / 2)
        chosen = tp + fp
        precision = np.divide(tp, chosen, out=np.zeros_like(tp), where=chosen > 0)
        recall = np.asarray(true, np.float64) / self.positives
        least = (self.at or 0.0) * (1 - _ROUNDING)  # 4 of 5 are a precision of 0.8
        if self.criterion == "recall_at_precision":  # of none the recall is zero
            return np.where((precision >= least) | (chosen == 0), recall, -1.0)
        return np.where((recall >= least) & (chosen > 0), precision, -1.0)

    def said(self, value: float) -> float:
        """The criterion as it is called: an error is minimised."""
        return 1 - value if self.criterion == "balanced_error" else value

    def standard_error(self, true: int, false: int) -> float:
        """Of the criterion there, by the slopes in TP and FP; rates are kept off 0 and 1."""
        mass, rest = self.positive, 1 - self.positive
        hit, alarm = (true + 0.5) / (self.positives + 1), (false + 0.5) / (self.negatives + 1)
        tp, fp = mass * hit, rest * alarm
        if self.criterion == "f1":
            total = tp + fp + mass
            slopes = 2 * (fp + mass) / total**2, 2 * tp / total**2
        elif self.criterion == "balanced_error":
            slopes = 0.5 / mass, 0.5 / rest
        elif self.criterion == "recall_at_precision":
            slopes = 1 / mass, 0.0
        else:
            slopes = fp / (tp + fp) ** 2, tp / (tp + fp) ** 2
        variances = (
            mass**2 * hit * (1 - hit) / self.positives,
            rest**2 * alarm * (1 - alarm) / self.negatives,
        )
        terms = zip(slopes, variances, strict=True)
        return float(np.sqrt(sum(slope**2 * variance for slope, variance in terms)))


def best_thresholds(
    scores: LabelScores, criterion: Criterion, at: float | None, target: Floats | None
) -> list[Best]:
    """The best threshold of every label; `target` are probabilities of yes."""
    logits, labels = as_numpy(scores.logits), as_numpy(scores.labels)
    found: list[Best] = []
    for part in slices(scores.num_labels, len(scores), _AT_A_TIME):
        columns, truth = _columns(logits, part), _columns(labels, part).astype(bool, copy=False)
        shares = [None] * len(columns) if target is None else target[part].tolist()

        def best(one: slice, each: Any = (columns, truth, shares)) -> Best:
            scores, is_yes, share = (values[one.start] for values in each)
            return _best(scores, is_yes, criterion, at, share)

        found += in_threads(best, list(slices(len(columns), 1, 1)))
    return found


def _columns(rows: Numbers, part: slice) -> Numbers:
    """Some columns, each with its numbers side by side; copied by parts that stay in the cache."""
    into = np.empty((part.stop - part.start, len(rows)), rows.dtype)
    for at in slices(len(rows), rows.shape[1], IN_CACHE):
        into[:, at] = rows[at, part].T
    return into


def _best(
    scores: Numbers, is_yes: Booleans, criterion: Criterion, at: float | None, share: float | None
) -> Best:
    """The best threshold of a single label."""
    positives = int(np.count_nonzero(is_yes))
    negatives = len(scores) - positives
    if not positives or not negatives:
        return Best(-np.inf if positives else np.inf, np.nan, np.nan)
    mass = positives / len(scores) if share is None else share
    label = Label(criterion, at, positives, negatives, mass)
    best, above = float(label.value(0, 0)), (0, 0)  # positives and negatives of higher scores
    while len(scores) > _FEW:
        codes, counts = _histogram(scores, is_yes)
        bins = np.flatnonzero(counts.any(axis=0))[::-1]  # from the highest scores on
        of_no, of_yes = counts[:, bins]
        true, false = above[0] + np.cumsum(of_yes), above[1] + np.cumsum(of_no)
        best = max(best, float(label.value(true, false).max()))
        can_win = np.flatnonzero(label.value(true, false - of_no) >= best - _ROUNDING)
        if not len(can_win):
            break  # none is as good
        first, last = can_win[[0, -1]]
        kept = true[last] - true[first] + of_yes[first] + false[last] - false[first] + of_no[first]
        if kept > len(scores) // 2:
            break  # nothing left to narrow down: many are alike
        above = int(true[first] - of_yes[first]), int(false[first] - of_no[first])
        inside = np.flatnonzero((codes <= bins[first]) & (codes >= bins[last]))
        scores, is_yes = scores[inside], is_yes[inside]
    return _best_of_sorted(label, scores, is_yes, above)


def _best_of_sorted(
    label: Label, scores: Numbers, is_yes: Booleans, above: tuple[int, int]
) -> Best:
    """The best threshold among these scores, with so many above them, or none at all."""
    order = np.argsort(scores)[::-1]
    scores, is_yes = scores[order], is_yes[order]
    true, false = above[0] + np.cumsum(is_yes), above[1] + np.cumsum(~is_yes)
    last = np.flatnonzero(np.diff(scores, append=np.nan) != 0)  # of equal scores: all or none
    values = label.value(true[last], false[last])
    none = float(label.value(0, 0))
    if none >= values.max() - _ROUNDING:
        return Best(np.inf, label.said(none), label.standard_error(0, 0))
    at = int((values >= values.max() - _ROUNDING).argmax())  # the highest
    error = label.standard_error(int(true[last][at]), int(false[last][at]))
    return Best(float(scores[last][at]), label.said(float(values[at])), error)


def _histogram(scores: Numbers, is_yes: Booleans) -> tuple[_Codes, npt.NDArray[np.int64]]:
    """The bin of each score, which rises with it, and the counts of no and of yes by bin.

    Bins are of one width but for the first and the last, which hold what lies beyond most scores.
    """
    sample = np.sort(scores[:: max(1, len(scores) // _SAMPLE)])
    low, high = (float(sample[int(share * (len(sample) - 1))]) for share in (0.002, 0.998))
    wide = scores.dtype if scores.dtype.itemsize > 2 else np.dtype(np.float32)
    start = wide.type(low)
    scale = wide.type(min((_BINS - 2) / max(high - low, 1e-30), 1e30))
    codes, counts = np.empty(len(scores), np.int16), np.zeros(2 * _BINS, np.int64)
    for at in slices(len(scores), 1, _PART):
        with np.errstate(over="ignore"):
            place = (scores[at].astype(wide, copy=False) - start) * scale + wide.type(1)
        codes[at] = np.clip(place, 0, _BINS - 1, out=place)
        both = codes[at] + np.multiply(is_yes[at], _BINS, dtype=np.int16)
        counts += np.bincount(both, minlength=2 * _BINS)
    return codes, counts.reshape(2, _BINS)
