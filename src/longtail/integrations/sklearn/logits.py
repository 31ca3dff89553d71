r"""What a fitted classifier says, as logits with one column for each of its classes.

    log predict_proba,    zeros floored as `core.probabilities` does

A classifier without `predict_proba` gives its decision values; of two classes, which share one
value d, they are -d/2 and d/2. Those are no logits of anything before they are calibrated.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from longtail.core.probabilities import floored_log


def gives_probs(estimator: Any) -> bool:
    """Whether it has probabilities, or else a ValueError unless it has decision values."""
    if hasattr(estimator, "predict_proba"):
        return True
    if hasattr(estimator, "decision_function"):
        return False
    raise ValueError(
        "LogitAdjustedClassifier adjusts a classifier with predict_proba or decision_function, "
        f"{type(estimator).__name__} has neither"
    )


def class_logits(estimator: Any, X: Any) -> npt.NDArray[np.float64]:
    """Shape (samples, classes), in the order of the estimator's `classes_`, float64."""
    if len(estimator.classes_) == 1:  # where boosting has two columns all the same
        return np.zeros((len(estimator.predict(X)), 1))
    if not gives_probs(estimator):
        values = np.asarray(estimator.decision_function(X), dtype=np.float64)
        return np.stack([-values / 2, values / 2], axis=1) if values.ndim == 1 else values
    probs = np.asarray(estimator.predict_proba(X))
    eps = float(np.finfo(probs.dtype if probs.dtype.kind == "f" else np.float64).eps)
    logs: npt.NDArray[np.float64] = floored_log(probs.astype(np.float64), eps)
    return logs
