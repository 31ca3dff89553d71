r"""Which samples to train on and which to hold out, in turn.

A class of two samples or more is dealt out so that every model knows it. A class of one sample is
in every model and therefore held out by none: it has no say in what is fitted on the scores.
"""

from numbers import Integral
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state

from longtail.data import stratified_folds
from longtail.integrations.sklearn.training_labels import TrainingLabels
from longtail.integrations.sklearn.training_set import TrainingSet

Positions: TypeAlias = npt.NDArray[np.intp]
Splits: TypeAlias = list[tuple[Positions, Positions]]


def splits_of(cv: Any, data: TrainingSet, seed: int | None) -> Splits:
    """What to train on and what to hold out; none at all if no class has two samples.

    Args:
        cv: A number of folds, or what scikit-learn takes for one: a splitter, or splits.
        data: The training set.
        seed: Of the shuffle into a number of folds.
    """
    if isinstance(cv, Integral):
        return _folds(int(cv), data.labels, seed)
    splitter = check_cv(cv, data.y, classifier=True)
    given = splitter.split(data.X, data.y, **data.metadata.split)
    return [(np.asarray(train), np.asarray(test)) for train, test in given]


def _folds(num_folds: int, labels: TrainingLabels, seed: int | None) -> Splits:
    if num_folds < 2:
        raise ValueError(f"cv must be two folds or more, or a splitter, got {num_folds}")
    single = labels.counts[labels.codes] == 1
    if single.all():
        return []
    if seed is None:  # by NumPy's global stream, as scikit-learn takes None
        seed = int(check_random_state(None).randint(2**31 - 1))
    folds = np.asarray(stratified_folds(labels.codes, min(num_folds, len(labels.codes)), seed))
    folds = np.where(single, -1, folds)
    return [
        (np.flatnonzero(folds != fold), np.flatnonzero(folds == fold))
        for fold in np.unique(folds[~single])
    ]
