r"""Scores of yes/no labels: what a model said about labels that a sample may have together.

One logit z a label stands for the pair [0, z], so σ(z) is the probability of yes under the odds
that z carries, and a move to other odds adds logit(target) − logit(carried), label by label.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self, TypeAlias, cast

import numpy as np

from longtail.core import arrays, score_checks, scores_file
from longtail.core.arrays import ArrayLike, ArrayT, Floats, Numbers, RowsLike, to_kind
from longtail.core.blocks import blocks
from longtail.core.label_matrix import check_label_matrix
from longtail.core.label_odds import LabelOdds, LabelOddsLike, check_same_labels
from longtail.core.labels import check_counts
from longtail.core.numbers import check_choice
from longtail.core.prior import PriorLike
from longtail.core.probabilities import NotLogitsError
from longtail.core.retarget import check_logits, label_offset, scaled_and_shifted
from longtail.core.scores import Family, Ids, Scores, Split
from longtail.core.softmax import sigmoid, widened
from longtail.core.tensor_file import save_tensors

_TELLING = 8  # numbers: so many logits do not lie between 0 and 1 by accident


class LabelThresholds(Protocol):
    """From which logit on each label is yes: what `posthoc.Thresholds` is."""

    @property
    def logits(self) -> Floats:
        """One a label, +inf where none is high enough."""
        ...

    @property
    def carried(self) -> LabelOdds | None:
        """What logits must carry to be compared with them."""
        ...

    @property
    def classes(self) -> tuple[str, ...] | None:
        """The names of the labels, if they are known."""
        ...


# Those, or probabilities: one for all labels, or one a label.
ThresholdsLike: TypeAlias = LabelThresholds | float | ArrayLike


@dataclass(frozen=True, eq=False, repr=False, init=False)
class LabelScores(Scores[ArrayT]):
    """Logits of N samples and L yes/no labels: `Scores(..., family="sigmoid")`.

    Labels are a matrix of 0 and 1, a column a label; of a single label logits and labels may be
    vectors. `counts` are the training samples that have each label. `classes` names the labels.

    >>> scores = LabelScores([[2.0, -1.0], [-2.0, 0.5]], carried=[0.1, 0.5])
    >>> scores.predict().tolist()
    [[1, 0], [0, 1]]
    >>> scores.under([0.5, 0.5]).logits.tolist()
    [[4.197, -1.0], [0.197, 0.5]]
    """

    carried: LabelOdds | None  # type: ignore[assignment]  # odds of labels, not a prior of classes

    family: ClassVar[Family] = "sigmoid"

    def __init__(
        self,
        logits: RowsLike,
        labels: object = None,
        carried: LabelOddsLike | None = None,
        counts: ArrayLike | None = None,
        classes: Sequence[str] | None = None,
        split: Split | None = None,
        ids: Ids | None = None,
        *,
        family: Family = "sigmoid",
        _are_logits: bool = False,
    ) -> None:
        if family != "sigmoid":
            raise ValueError(f'LabelScores are of family="sigmoid", got {family!r}; use Scores')
        rows = _check_rows(logits, "logits")
        if not _are_logits:
            _check_not_probs(rows)
        num_labels = rows.shape[1]
        names = score_checks.class_names(logits, classes, num_labels)
        odds = None if carried is None else LabelOdds.of(carried, names)
        if odds is not None:
            check_same_labels(num_labels, odds, "the logits have", "the carried odds have")
        if split is not None:
            check_choice(split, Split, "split")
        vars(self).update(
            logits=rows,
            labels=None if labels is None else _labels_of(rows, labels),
            carried=odds,
            counts=None if counts is None else to_kind(check_counts(counts, num_labels), rows),
            classes=names,
            split=split,
            ids=None if ids is None else score_checks.check_ids(ids, len(rows)),
        )

    @classmethod
    def from_probs(
        cls,
        probs: RowsLike,
        labels: object = None,
        carried: LabelOddsLike | PriorLike | None = None,
        counts: PriorLike | None = None,
        classes: Sequence[str] | None = None,
        split: Split | None = None,
        ids: Ids | None = None,
        *,
        family: Family = "sigmoid",
    ) -> Self:
        """From the probabilities of yes. Exactly 0 and 1 are taken for very near, with a warning.

        >>> LabelScores.from_probs([[0.9, 0.25]]).logits.tolist()
        [[2.197, -1.099]]
        """
        rows = _check_rows(probs, "probs")
        values = arrays.as_numpy(rows)
        if ((values < 0) | (values > 1)).any():
            raise ValueError(
                f"probabilities of yes must lie in 0 to 1, got {values.min():.3g} to "
                f"{values.max():.3g}; divide percentages by 100, and pass logits to Scores(logits, "
                'family="sigmoid")'
            )
        wide = widened(values)
        least = min(float(np.finfo(wide.dtype).eps), float(wide.min(initial=1, where=wide > 0)))
        if ((wide == 0) | (wide == 1)).any():
            warnings.warn(
                "probs has probabilities of exactly 0 or 1, as forests and rounding give: they are "
                "taken for very near, not for impossible or certain labels",
                stacklevel=2,
            )
        # 1 − p is exact from one half on, so no digits are lost where the label is likely.
        log_no = np.log(np.maximum(1 - wide, np.finfo(wide.dtype).eps))
        logits = np.log(np.maximum(wide, least)) - log_no
        made = to_kind(logits, rows)
        odds = cast("LabelOddsLike | None", carried)
        names = score_checks.class_names(probs, classes, rows.shape[1])
        counted = cast("ArrayLike | None", counts)
        return cls(made, labels, odds, counted, names, split, ids, _are_logits=True)

    @property
    def num_labels(self) -> int:
        """How many labels there are."""
        return int(self.logits.shape[1])

    def under(self, target: LabelOddsLike) -> Self:  # type: ignore[override]
        """Moved to the odds of a target; UnknownPriorError if it is not known what they carry.

        Exact as long as p(x|y_l) of each label stays the same: docs/multi-label.md.
        """
        goal = LabelOdds.of(target, self.classes)
        moved = scaled_and_shifted(self.logits, None, label_offset(self.carried, goal))
        return self._with(logits=moved, carried=goal)

    def probs(self) -> ArrayT:
        """The probabilities of yes under the carried odds."""
        return sigmoid(self.logits)

    def predict(self, thresholds: ThresholdsLike | None = None) -> ArrayT:
        """1 where the answer is yes, else 0: an integer a sample and label.

        By default where yes is the more likely; else from the thresholds on, which are those of
        `posthoc.Thresholds`, or probabilities: one for all labels, or one a label.

        >>> scores = LabelScores([[2.0, -1.0], [-2.0, 0.5]])
        >>> scores.predict(thresholds=[0.9, 0.2]).tolist()
        [[0, 1], [0, 1]]
        """
        logits: Any = self.logits
        if thresholds is None:
            is_yes = logits > 0
        else:
            from_on = to_kind(self._threshold_logits(thresholds), logits)
            is_yes = logits >= from_on
        return cast(ArrayT, is_yes.int() if arrays.is_torch(is_yes) else is_yes.astype(np.int32))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one safetensors file with everything; it replaces an existing one whole."""
        facts = self.carried, self.classes, self.split, self.ids
        tensors, metadata = scores_file.described(*facts, family="sigmoid")
        for name in ("logits", "labels", "counts"):
            if getattr(self, name) is not None:
                tensors[name] = arrays.as_numpy(getattr(self, name))
        save_tensors(path, tensors, metadata)

    def _threshold_logits(self, thresholds: ThresholdsLike) -> Floats:
        if hasattr(thresholds, "logits"):
            chosen = cast(LabelThresholds, thresholds)
            same = chosen.carried is self.carried or (
                chosen.carried is not None
                and self.carried is not None
                and chosen.carried.is_close(self.carried)
            )
            if not same:
                raise ValueError(
                    f"these thresholds are for logits that carry {chosen.carried!r}, but the "
                    f"scores carry {self.carried!r}; move them there first: .under(...)"
                )
            if chosen.classes and self.classes and chosen.classes != self.classes:
                raise ValueError(
                    f"these thresholds are for the labels {', '.join(chosen.classes):.80}, but "
                    f"those of the scores are {', '.join(self.classes):.80}: other names, or "
                    "another order; fit them on scores of this model"
                )
            values = np.asarray(chosen.logits, np.float64)
        else:
            number = np.ndim(cast(Any, thresholds)) == 0
            probs = np.asarray(thresholds if number else arrays.as_numpy(thresholds), np.float64)
            if not ((probs >= 0) & (probs <= 1)).all():
                raise ValueError(
                    f"thresholds are probabilities in 0 to 1, or those of posthoc.Thresholds, got "
                    f"{probs.min():g} to {probs.max():g}"
                )
            with np.errstate(divide="ignore"):
                values = np.log(probs) - np.log1p(-probs)
            values = np.broadcast_to(values, (self.num_labels,)) if number else values
        if values.shape != (self.num_labels,):
            raise ValueError(
                f"thresholds must be one number, or one for each of {self.num_labels} labels, got "
                f"shape {values.shape}"
            )
        return np.array(values)

    def __repr__(self) -> str:
        facts = [f"carried={self.carried!r}"]
        facts += [n for n in ("labels", "counts", "classes") if getattr(self, n) is not None]
        facts += [f"split={self.split!r}"] if self.split else []
        return f"LabelScores({len(self)} samples, {self.num_labels} labels, {', '.join(facts)})"


def check_sigmoid(scores: object, who: str) -> LabelScores[Any]:
    """The scores, or a ValueError unless they are of yes/no labels: `who` opens the sentence."""
    if not isinstance(scores, LabelScores):
        raise ValueError(
            f'{who} is for scores of yes/no labels, Scores(logits, ..., family="sigmoid"), got '
            f"{scores!r:.80}"
        )
    return scores


def _labels_of(rows: Any, labels: object) -> Any:
    matrix = check_label_matrix(labels, int(rows.shape[1]))
    if len(matrix) != rows.shape[0]:
        raise ValueError(f"got {rows.shape[0]} rows of logits but labels of {len(matrix)} samples")
    return to_kind(matrix, rows)


def _check_rows(values: RowsLike, name: str) -> Any:
    rows = arrays.as_array(values)
    if len(rows.shape) == 1:
        rows = rows[:, None]
    if len(rows.shape) != 2 or not rows.shape[1]:
        raise ValueError(
            f"{name} of yes/no labels must have shape (samples, labels), or (samples,) of a single "
            f"label, got {tuple(rows.shape)}"
        )
    check_logits(rows, rows.shape[1])
    first = 0
    for (block,) in blocks(rows):
        finite = np.isfinite(block)
        if not finite.all():
            row, column = (int(at[0]) for at in np.nonzero(~finite))
            raise ValueError(
                f"{name} must be finite, got {block[row, column]} in row {first + row}, label "
                f"{column}; the model that made them has diverged, or a value is missing"
            )
        first += len(block)
    return rows.detach() if arrays.is_torch(rows) else rows


def _check_not_probs(rows: Any) -> None:
    """Raise NotLogitsError if all numbers lie between 0 and 1, as those of logits do not."""
    values: Numbers = arrays.as_numpy(rows)
    if values.size < _TELLING or values[0].min() < 0 or values.min() < 0 or values.max() > 1:
        return
    if ((values > 0) & (values < 1)).any():
        raise NotLogitsError(
            "these look like probabilities, not logits: all lie between 0 and 1; pass them to "
            'Scores.from_probs(probs, ..., family="sigmoid")'
        )
