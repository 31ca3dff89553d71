r"""Thresholds of yes/no labels, the exact optimum of each: from which logit on the answer is yes.

With a positive mass P and a negative mass M, of the samples or of a target, TP(t) and FP(t) are the
masses of positives and negatives from t on. A threshold maximises

    F1                   2·TP / (TP + FP + P)
    balanced accuracy    ½·(TP/P + 1 − FP/M)
    recall               TP/P   among those with TP/(TP + FP) ≥ a
    precision            TP/(TP + FP)   among those with TP/P ≥ a

All of these rise with TP and fall with FP, so that the exact optimum is found without sorting all
scores (`threshold_search`). Standard errors are those of the criterion at the threshold, positives
and negatives drawn anew apart; that it was chosen on the same samples makes it look better than it
is.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Literal, cast

import msgspec
import numpy as np

from longtail.core.arrays import Floats
from longtail.core.files import read_whole, written_whole
from longtail.core.label_odds import LabelOdds, LabelOddsLike
from longtail.core.label_scores import LabelScores, check_sigmoid
from longtail.core.numbers import check_choice, check_number
from longtail.posthoc.threshold_search import Criterion, best_thresholds


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
            at: For the last two, the precision or the recall to keep, from 0 to 1.
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
        probs = None if target is None else cast(LabelOdds, moved.carried).probs
        found = best_thresholds(moved, criterion, kept, probs)
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
        sizes |= {len(each) for each in (stored.carried, stored.classes) if each is not None}
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
