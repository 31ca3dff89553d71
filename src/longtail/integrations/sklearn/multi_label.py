r"""2-D y: yes/no labels that a sample may have together, each with a classifier of its own.

Each label is a problem of two classes, no and yes, so each has an estimator that is fitted,
measured and moved by itself: logit + logit(target) − logit(carried). That is exact as long as
p(x|y_l) stays; labels that come together and change together break it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone

from longtail.core import LabelOdds, LabelScores, Prior
from longtail.core.arrays import Floats, Numbers
from longtail.core.label_matrix import check_label_matrix
from longtail.core.label_odds import check_same_labels

if TYPE_CHECKING:
    from longtail.integrations.sklearn.classifier import LogitAdjustedClassifier

# What is said of every label alike; other words and values are said of each, or refused.
_WORDS = {"target": ("uniform", "prior"), "carried": ("train", "measure")}


def is_label_matrix(y: Any) -> bool:
    """Whether y has several columns; a single one is a vector that was written down so."""
    shape = getattr(y, "shape", None)
    if shape is None and isinstance(y, list | tuple) and len(y) and np.ndim(y[0]) == 1:
        shape = (len(y), len(y[0]))
    return shape is not None and len(shape) == 2 and shape[1] > 1


def fit_labels(
    owner: LogitAdjustedClassifier, X: Any, y: Any, sample_weight: Any, fit_params: dict[str, Any]
) -> tuple[list[LogitAdjustedClassifier], Numbers]:
    """A copy of the classifier fitted on each label, and y as an array of 0 and 1."""
    if issparse(y):
        raise ValueError("y must be a dense matrix of 0 and 1, got a sparse one; pass y.toarray()")
    labels = np.asarray(y)
    matrix = check_label_matrix(labels)
    positives = matrix.sum(axis=0, dtype=np.int64)
    constant = np.flatnonzero((positives == 0) | (positives == len(matrix)))
    if len(constant):
        raise ValueError(
            f"every label must be yes for some samples and no for others, those of columns "
            f"{', '.join(map(str, constant[:10].tolist()))} of y are not; leave these out"
        )
    own = {name: _of_each(owner, name, matrix.shape[1]) for name in _WORDS}
    fitted = []
    for at, column in enumerate(labels.T):
        copy = clone(owner).set_params(**{name: values[at] for name, values in own.items()})
        fitted.append(copy.fit(X, column, sample_weight, **fit_params))
    return fitted, labels


def odds_of(priors: Sequence[Prior]) -> LabelOdds:
    """The odds of priors over no and yes."""
    return LabelOdds(np.array([prior.log[1] - prior.log[0] for prior in priors]))


def label_scores(
    classifiers: Sequence[LogitAdjustedClassifier], X: Any, y: Any = None
) -> LabelScores[Floats]:
    """The adjusted logits of yes of all labels, and what they carry."""
    scores = [each.to_scores(X) for each in classifiers]
    logits = np.stack([each.logits[:, 1] - each.logits[:, 0] for each in scores], axis=1)
    carried = [each.carried for each in scores]
    known = [prior for prior in carried if prior is not None]
    odds = odds_of(known) if len(known) == len(carried) else None
    counts = [int(each.class_count_[1]) for each in classifiers]
    return LabelScores(logits, y, odds, counts, _are_logits=True)


def _of_each(owner: LogitAdjustedClassifier, name: str, num_labels: int) -> list[Any]:
    """An option of each label: words are those of all, odds the prior of no and yes of each."""
    value = getattr(owner, name)
    if isinstance(value, str):
        if value not in _WORDS[name]:
            words = " or ".join(f'"{word}"' for word in _WORDS[name])
            raise ValueError(f"of several labels {name} must be {words}, or odds; got {value!r}")
        return [value] * num_labels
    odds = LabelOdds.of(value)
    check_same_labels(num_labels, odds, "y has", f"{name} has")
    return [[1 - share, share] for share in odds.probs.tolist()]
