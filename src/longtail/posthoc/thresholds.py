r"""Thresholds of yes/no labels, the exact optimum of each: from which logit on the answer is yes.

With a positive mass P and a negative mass M, of the samples or of a target, TP(t) and FP(t) are the
masses of positives and negatives from t on. A threshold maximises

    F1                   2·TP / (TP + FP + P)
    balanced accuracy    ½·(TP/P + 1 − FP/M)
    recall               TP/P   among those with TP/(TP + FP) ≥ a
    precision            TP/(TP + FP)   among those with TP/P ≥ a

All of these rise with TP and fall with FP. So of a bin of scores, of which the histogram says TP
and FP at both ends, no threshold inside is better than TP at its low end with FP at its high end:
only bins in which that beats the best of all ends are looked into and sorted. Of equal thresholds
the highest wins. Standard errors are those of the criterion at the threshold, positives and
negatives drawn anew apart; that it was chosen on the same samples makes it look better than it is.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from longtail.core.arrays import Floats, Indices, Numbers, as_numpy
from longtail.core.blocks import IN_CACHE, slices
from longtail.core.files import read_whole, written_whole
from longtail.core.label_odds import LabelOdds, LabelOddsLike
from longtail.core.label_scores import LabelScores, check_sigmoid
from longtail.core.numbers import check_choice, check_number
from longtail.core.threads import in_threads

Criterion: TypeAlias = Literal["f1", "balanced_error", "recall_at_precision", "precision_at_recall"]
Booleans: TypeAlias = npt.NDArray[np.bool_]
_Value: TypeAlias = Callable[[Floats, Floats], Floats]  # of TP and FP
_BINS = 2**16  # as many as the upper half of a float32 tells apart
_AT_A_TIME = 2**24  # numbers whose columns are put together
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Thresholds:
    """From which logit on each label is yes: `scores.predict(thresholds=...)` takes them.

    A label without positives or without negatives in the validation samples has none: it is never
    yes, or always, and its value is NaN. Make them with `fit`.

    >>> import longtail as lt
    >>> logits, labels = [[2.0], [1.0], [0.5], [-1.0]], [[1], [0], [1], [0]]
    >>> fitted = Thresholds.fit(lt.Scores(logits, labels, family="sigmoid"))
    >>> fitted.logits.tolist(), fitted.values.round(3).tolist()
    ([0.5], [0.8])
    """

    logits: Floats  # one a label; +inf is never, -inf always
    values: Floats  # of the criterion on the validation samples
    standard_errors: Floats
    criterion: Criterion
    at: float | None  # the precision or the recall that is fixed
    carried: LabelOdds | None  # what logits must carry to be compared with them
    classes: tuple[str, ...] | None = None  # the names of the labels

    @classmethod
    def fit(
        cls,
        validation: LabelScores,
        criterion: Criterion = "f1",
        at: float | None = None,
        target: LabelOddsLike | None = None,
    ) -> Thresholds:
        """The best thresholds on labelled samples that the model was not trained on.

        Args:
            validation: Scores of yes/no labels.
            criterion: What is best: "f1", "balanced_error", "recall_at_precision" or
                "precision_at_recall".
            at: For the last two, the precision or the recall to keep, above 0 and up to 1.
            target: Where labels have these odds: the scores are moved there, and samples counted
                so; None for the samples as they are.
        """
        scores = check_sigmoid(validation, "Thresholds.fit")
        check_choice(criterion, Criterion, "criterion")
        has_at = criterion in ("recall_at_precision", "precision_at_recall")
        if has_at != (at is not None):
            needs = "needs at=, what is kept" if has_at else "takes no at="
            raise ValueError(f'criterion="{criterion}" {needs}; got at={at}')
        kept = None if at is None else check_number(at, "at", least=0, most=1)
        if scores.split == "test":
            raise ValueError(
                "thresholds must not be fitted on split='test': what is chosen on the test set "
                "makes its results look better than they are; fit on validation samples"
            )
        if scores.labels is None or not len(scores):
            raise ValueError("Thresholds.fit needs labelled samples, got none or no labels")
        moved = scores if target is None else scores.under(target)
        probs = None if target is None or moved.carried is None else moved.carried.probs
        found = _best_of_all(moved, criterion, kept, probs)
        logits, values, errors = np.array(found, np.float64).T
        return cls(logits, values, errors, criterion, kept, moved.carried, scores.classes)

    @property
    def probs(self) -> Floats:
        """The thresholds as probabilities of yes, under what is carried."""
        with np.errstate(over="ignore"):
            return np.asarray(1 / (1 + np.exp(-self.logits)))

    @property
    def num_labels(self) -> int:
        """How many labels there are."""
        return len(self.logits)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write them as JSON."""
        text = msgspec.json.encode(self.as_json())
        with written_whole(path) as part:
            part.write_bytes(msgspec.json.format(text, indent=2) + b"\n")

    def as_json(self) -> dict[str, Any]:
        """Everything in it, as plain numbers and words; without a threshold "never" or "always"."""
        words = {np.inf: "never", -np.inf: "always"}
        return {
            "version": 1,
            "logits": [words.get(number, number) for number in self.logits.tolist()],
            "values": [none_for_nan(number) for number in self.values.tolist()],
            "standard_errors": [none_for_nan(number) for number in self.standard_errors.tolist()],
            "criterion": self.criterion,
            "at": self.at,
            "carried": None if self.carried is None else self.carried.logit.tolist(),
            "classes": None if self.classes is None else list(self.classes),
        }

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Thresholds:
        """Read what `save` wrote."""
        try:
            stored = msgspec.json.decode(read_whole(path), type=_Stored)
        except msgspec.DecodeError as error:
            raise ValueError(
                f"{path} has no thresholds ({error}); such files are made by Thresholds.save"
            ) from error
        sizes = {len(stored.logits), len(stored.values), len(stored.standard_errors)}
        sizes |= set() if stored.carried is None else {len(stored.carried)}
        if stored.version != 1 or len(sizes) != 1:
            raise ValueError(
                f"{path} has thresholds of version {stored.version} with lists of "
                f"{sorted(sizes)} labels; this longtail reads version 1, as Thresholds.save writes"
            )
        numbers: dict[str, float] = {"never": np.inf, "always": -np.inf}
        logits = [numbers[one] if isinstance(one, str) else one for one in stored.logits]
        return cls(
            np.array(logits, np.float64),
            np.array(stored.values, np.float64),  # None is NaN
            np.array(stored.standard_errors, np.float64),
            stored.criterion,
            stored.at,
            None if stored.carried is None else LabelOdds(np.array(stored.carried)),
            stored.classes,
        )


def none_for_nan(number: float) -> float | None:
    """The number, or None where there is none: JSON has no NaN."""
    return None if number != number else number


class _Stored(msgspec.Struct):
    version: int
    logits: list[float | Literal["never", "always"]]
    values: list[float | None]
    standard_errors: list[float | None]
    criterion: Criterion
    at: float | None
    carried: list[float] | None
    classes: tuple[str, ...] | None


class _Best(NamedTuple):
    """The threshold of a label, the criterion there and its standard error."""

    logit: float
    value: float
    standard_error: float


class _Label(NamedTuple):
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
        if self.criterion == "recall_at_precision":  # of none the recall is zero
            return np.where((precision >= (self.at or 0.0)) | (chosen == 0), recall, -1.0)
        return np.where((recall >= (self.at or 0.0)) & (chosen > 0), precision, -1.0)

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


def _best_of_all(
    scores: LabelScores, criterion: Criterion, at: float | None, target: Floats | None
) -> list[_Best]:
    """The best threshold of every label; `target` are probabilities of yes."""
    logits, labels = as_numpy(scores.logits), as_numpy(scores.labels)
    found: list[_Best] = []
    for part in slices(scores.num_labels, len(scores), _AT_A_TIME):
        columns, truth = _columns(logits, part), _columns(labels, part).astype(bool, copy=False)
        shares = [None] * len(columns) if target is None else target[part].tolist()

        def best(one: slice, each: Any = (columns, truth, shares)) -> _Best:
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
) -> _Best:
    """The best threshold of a single label."""
    positives = int(np.count_nonzero(is_yes))
    negatives = len(scores) - positives
    if not positives or not negatives:
        return _Best(-np.inf if positives else np.inf, np.nan, np.nan)
    mass = positives / len(scores) if share is None else share
    label = _Label(criterion, at, positives, negatives, mass)
    codes = _codes(scores)
    of_yes, of_all = (np.zeros(_BINS, np.int64) for _ in range(2))
    for some in slices(len(scores), 1, IN_CACHE):
        of_all += np.bincount(codes[some], minlength=_BINS)
        of_yes += np.bincount(codes[some][is_yes[some]], minlength=_BINS)
    bins = np.flatnonzero(of_all)[::-1]  # from the highest scores on
    true, false = np.cumsum(of_yes[bins]), np.cumsum((of_all - of_yes)[bins])
    best = max(label.value(true, false).max(), label.value(0, 0).max())
    before = false - (of_all - of_yes)[bins]
    can_win = label.value(true, before) >= best - _ROUNDING
    chosen = np.zeros(_BINS, bool)
    chosen[bins[can_win]] = True
    inside = np.flatnonzero(chosen[codes])
    # Of the bins that are left, in order from the highest: what is before each, then its scores.
    start = np.zeros((2, _BINS), np.int64)
    start[0, bins], start[1, bins] = true - of_yes[bins], before
    return _inside(label, scores[inside], is_yes[inside], codes[inside], start)


def _inside(
    label: _Label, scores: Numbers, is_yes: Booleans, codes: Indices, start: Indices
) -> _Best:
    """The best threshold among the scores of some bins; `start` is what lies above each bin."""
    order = np.argsort(scores)[::-1]
    scores, is_yes, codes = scores[order], is_yes[order], codes[order]
    true, false = np.cumsum(is_yes), np.cumsum(~is_yes)
    first = np.flatnonzero(np.diff(codes, prepend=-1))  # of each bin
    sizes = np.diff(first, append=len(codes))
    # Cumulated over the bins that were left: what lies between them is added.
    so_far: Indices = np.stack([true[first] - is_yes[first], false[first] - ~is_yes[first]])
    here = start[:, codes[first]] - so_far
    true, false = true + np.repeat(here[0], sizes), false + np.repeat(here[1], sizes)
    last = np.flatnonzero(np.diff(scores, append=np.nan) != 0)  # of equal scores: all or none
    values = label.value(true[last], false[last])
    none = float(label.value(0, 0))
    if not len(values) or none >= values.max() - _ROUNDING:
        return _Best(np.inf, label.said(none), label.standard_error(0, 0))
    at = int((values >= values.max() - _ROUNDING).argmax())  # the highest
    true_at, false_at = int(true[last][at]), int(false[last][at])
    error = label.standard_error(true_at, false_at)
    return _Best(float(scores[last][at]), label.said(float(values[at])), error)


def _codes(scores: Numbers) -> Indices:
    """Bins that rise with the scores, equal ones in one: the upper bits of a float32, in order."""
    codes = np.empty(len(scores), np.int64)
    for at in slices(len(scores), 1, IN_CACHE):
        with np.errstate(over="ignore"):
            plain = scores[at].astype(np.float32) + np.float32(0)  # -0.0 is 0.0
        bits = plain.view(np.int32)
        codes[at] = ((bits ^ ((bits >> 31) & 0x7FFFFFFF)) >> 16) + _BINS // 2
    return codes
