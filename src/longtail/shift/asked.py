"""What `estimate_prior` is asked for, checked; its arguments mean what they do there."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from longtail.core import Scores
from longtail.core.arrays import ArrayLike, Numbers, as_array, as_numpy
from longtail.core.numbers import check_choice, check_number
from longtail.core.score_checks import check_softmax
from longtail.shift.prepared import check_same_names

Method: TypeAlias = Literal["em", "bbse", "rlls"]


def check_asked(
    scores: Scores,
    method: str,
    validation: Scores | None,
    pseudo_count: float | None,
    learned: bool,
) -> None:
    """Raise unless an estimate can be made of these."""
    for given, name in ((scores, "scores"), (validation, "validation")):
        if given is not None and not isinstance(given, Scores):
            raise ValueError(
                f"{name} must be Scores, which say what they carry, got {type(given).__name__}: "
                "write Scores(logits, labels, carried=...)"
            )
    check_softmax(scores, "estimate_prior")
    if validation is not None:
        check_same_names(scores, validation)
    if not len(scores):
        raise ValueError("estimate_prior needs at least one sample, got none")
    check_choice(method, Method, "method")
    if method != "em" and validation is None:
        raise ValueError(
            f'method="{method}" compares predictions with those for labelled samples: give '
            'validation scores, for example cross-fitted ones of the training set, or use "em"'
        )
    if pseudo_count is not None:
        check_number(pseudo_count, "pseudo_count", least=0)
        if learned:
            raise ValueError(
                "with validation scores the strength of the trend is learned: leave pseudo_count "
                "out, or give shrink=False for plain EM"
            )


def check_used(method: str, is_validated: bool, calibrate: bool, shrink: bool, soft: bool) -> None:
    """Raise for an option that says something nobody would look at."""
    if soft and method == "em":
        raise ValueError(
            'soft=True is of a confusion matrix, and "em" has none: leave it out, or give '
            'method="bbse" or "rlls"'
        )
    if not shrink and (method != "em" or not is_validated):
        raise ValueError(
            'shrink=False is for method="em" with validation scores, and nothing else shrinks '
            "towards a trend: leave it out"
        )
    if not calibrate and not is_validated:
        raise ValueError(
            "calibrate=False is for validation scores, and without them nothing is calibrated: "
            "leave it out"
        )


def checked_features(
    scores: Scores,
    validation: Scores | None,
    features: ArrayLike | None,
    validation_features: ArrayLike | None,
) -> tuple[Numbers, Numbers] | None:
    """Of both, checked, or None if there are none."""
    if features is None and validation_features is None:
        return None
    assert validation is not None
    if features is None or validation_features is None:
        raise ValueError(
            "how much neighbours tell is found out on the validation samples: give both features "
            "and validation_features, or neither"
        )
    rows, checked = (as_numpy(as_array(each)) for each in (features, validation_features))
    for given, samples, name in (
        (rows, scores, "features"),
        (checked, validation, "validation_features"),
    ):
        if given.ndim != 2 or len(given) != len(samples) or not np.isfinite(given).all():
            raise ValueError(
                f"{name} must be finite numbers of shape ({len(samples)}, D), one row a sample, "
                f"got shape {given.shape}"
            )
    if rows.shape[1] != checked.shape[1]:
        raise ValueError(
            f"features have {rows.shape[1]} numbers a sample but validation_features "
            f"{checked.shape[1]}; both must be of the same network"
        )
    return rows, checked
