r"""Scores of training samples by models that were not trained on them.

A class of two samples or more is dealt out so that every model knows it. A class of one sample is
in every model and therefore held out by none: it has no say in what is fitted on the scores. A
fold's model carries the prior of its own training part, which for a class of few samples is not
that of the whole. Its scores are moved to what the model of all samples carries. A class that the
model does not know, which only splits of a user's own can bring about, is ruled out by it, and the
samples of that class are left out.
"""

from numbers import Integral
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.parallel import Parallel, delayed

from longtail.core import Prior, retarget
from longtail.data import stratified_folds
from longtail.integrations.sklearn.carried import carried_by, class_logits
from longtail.integrations.sklearn.training_set import Positions, TrainingSet

Splits: TypeAlias = list[tuple[Positions, Positions]]


class OutOfFold(NamedTuple):
    """Logits of samples that the models did not see, and which samples of the set they are."""

    logits: npt.NDArray[np.float64]
    positions: Positions


def out_of_fold(
    estimator: Any, data: TrainingSet, splits: Splits, move_to: Prior | None, n_jobs: int | None
) -> OutOfFold:
    """Logits of the held-out samples of all splits, by copies of the estimator.

    They are moved to what the model of all samples carries, `move_to`; None leaves them alone.
    """
    parts = Parallel(n_jobs=n_jobs)(
        delayed(_score_fold)(estimator, data, train, test, move_to) for train, test in splits
    )
    logits, positions = zip(*parts, strict=True)
    return OutOfFold(np.concatenate(logits), np.concatenate(positions))


def splits_of(cv: Any, data: TrainingSet, seed: int | None) -> Splits:
    """What to train on and what to hold out; none at all if no class has two samples.

    `cv` is a number of folds, or what scikit-learn takes for one: a splitter, or splits.
    """
    if not isinstance(cv, Integral):
        splitter = check_cv(cv, data.y, classifier=True)
        splits = splitter.split(data.X, data.y, **data.metadata.split)
        return [(np.asarray(train), np.asarray(test)) for train, test in splits]
    if cv < 2:
        raise ValueError(f"cv must be two folds or more, or a splitter, got {cv}")
    codes = data.labels.codes
    single = data.labels.counts[codes] == 1
    if single.all():
        return []
    if seed is None:  # by NumPy's global stream, as scikit-learn takes None
        seed = int(check_random_state(None).randint(2**31 - 1))
    dealt = np.asarray(stratified_folds(codes, min(int(cv), len(codes)), seed))
    folds = np.where(single, -1, dealt)
    numbers = np.unique(folds[~single])
    return [(np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)) for fold in numbers]


def _score_fold(
    estimator: Any, data: TrainingSet, train: Positions, test: Positions, move_to: Prior | None
) -> OutOfFold:
    model = data.fit_part(estimator, train)
    columns = np.searchsorted(data.labels.classes, model.classes_)
    held = np.asarray(test)[np.isin(data.labels.codes[test], columns)]
    logits = np.full((len(held), len(data.labels.classes)), -np.inf)
    if len(held):
        own = class_logits(model, _safe_indexing(data.X, held))
        if move_to is not None:
            carried = carried_by(model, data.labels.part(train))
            own = retarget(own, carried, Prior.from_log(move_to.log[columns]))
        logits[:, columns] = own
    return OutOfFold(logits, held)
