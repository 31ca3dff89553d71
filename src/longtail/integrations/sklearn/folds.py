r"""Scores of training samples by models that were not trained on them.

A fold's model carries the prior of its own training part, which for a class of few samples is not
that of the whole. Its scores are moved to what the model of all samples carries. A class that the
model does not know, which only splits of a user's own can bring about, is ruled out by it, and the
samples of that class are left out.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import Parallel, delayed

from longtail.core import Prior, Scores
from longtail.integrations.sklearn.carried import carried_by
from longtail.integrations.sklearn.logits import class_logits
from longtail.integrations.sklearn.splits import Positions, Splits
from longtail.integrations.sklearn.training_set import TrainingSet


class OutOfFold(NamedTuple):
    """Logits of samples that the models did not see, and which samples of the set they are."""

    logits: npt.NDArray[np.float64]
    positions: Positions


def out_of_fold(
    estimator: Any, data: TrainingSet, splits: Splits, move_to: Prior | None, n_jobs: int | None
) -> OutOfFold:
    """Logits of the held-out samples of all splits.

    Args:
        estimator: A copy of it is fitted for every split.
        data: The whole training set.
        splits: At least one.
        move_to: What the model of all samples carries; None leaves every fold's scores alone.
        n_jobs: How many splits are fitted at once.
    """
    parts = Parallel(n_jobs=n_jobs)(
        delayed(_score_fold)(estimator, data, train, test, move_to) for train, test in splits
    )
    logits, positions = zip(*parts, strict=True)
    return OutOfFold(np.concatenate(logits), np.concatenate(positions))


def _score_fold(
    estimator: Any, data: TrainingSet, train: Positions, test: Positions, move_to: Prior | None
) -> OutOfFold:
    model = data.fit_part(estimator, train)
    columns = np.searchsorted(data.labels.classes, model.classes_)
    held_out = np.asarray(test)[np.isin(data.labels.codes[test], columns)]
    logits = np.full((len(held_out), len(data.labels.classes)), -np.inf)
    if len(held_out):
        known = class_logits(model, _safe_indexing(data.X, held_out))
        if move_to is not None:
            scores = Scores(known, carried=carried_by(model, data.labels.part(train)))
            known = np.asarray(scores.under(Prior.from_log(move_to.log[columns])).logits)
        logits[:, columns] = known
    return OutOfFold(logits, held_out)
