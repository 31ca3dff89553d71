"""What an estimator is fitted on, whole or in part, and by which random numbers."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils import _safe_indexing, check_random_state

from longtail.integrations.sklearn.encoded_labels import fitted
from longtail.integrations.sklearn.metadata import Routed
from longtail.integrations.sklearn.training_labels import TrainingLabels


class TrainingSet(NamedTuple):
    """Samples, their labels as given and as codes, and what else goes to fit."""

    X: Any
    y: Any
    labels: TrainingLabels
    metadata: Routed

    def fit(self, estimator: Any) -> Any:
        """A copy of the estimator, fitted on all samples."""
        return fitted(estimator, self.X, self.y, self.metadata.fit)

    def fit_part(self, estimator: Any, at: npt.NDArray[np.intp]) -> Any:
        """A copy of the estimator, fitted on some of the samples."""
        keywords = self.metadata.fit_part(at, len(self.labels.codes))
        X, y = _safe_indexing(self.X, at), _safe_indexing(self.y, at)
        return fitted(estimator, X, y, keywords)


def drawn_seed(random_state: Any) -> int | None:
    """A seed from what scikit-learn calls a random state; None, not reproducible, of None."""
    if random_state is None:
        return None
    return int(check_random_state(random_state).randint(2**31 - 1))


def seeded(estimator: Any, seed: int | None) -> Any:
    """A copy of the estimator, with the seed for every random state in it that is not set."""
    copy = clone(estimator)
    if seed is not None:
        own = copy.get_params(deep=True)
        free = [name for name in own if name.split("__")[-1] == "random_state"]
        copy.set_params(**{name: seed for name in free if own[name] is None})
    return copy
