"""What is handed on to the classifier inside: sample weights, fit parameters, groups."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn import get_config
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.validation import has_fit_parameter

from longtail.core.arrays import refuse_lossy


class Routed(NamedTuple):
    """Where metadata goes.

    Attributes:
        fit: Keywords of the inner estimator's fit.
        split: Keywords of the splitter's split.
        weights: The sample weights that the inner estimator is trained with, if any.
    """

    fit: dict[str, Any]
    split: dict[str, Any]
    weights: npt.NDArray[np.float64] | None

    def fit_part(self, positions: npt.NDArray[np.intp], num_samples: int) -> dict[str, Any]:
        """The keywords of fit for some of the samples: what has one entry a sample is cut."""
        return {
            name: _safe_indexing(value, positions) if _length(value) == num_samples else value
            for name, value in self.fit.items()
        }


def routed(owner: Any, sample_weight: Any, fit_params: dict[str, Any]) -> Routed:
    """By scikit-learn's metadata routing where that is on; else all goes to the inner estimator."""
    weighted = {} if sample_weight is None else {"sample_weight": sample_weight}
    if get_config()["enable_metadata_routing"]:
        sent = process_routing(owner, "fit", **weighted, **fit_params)
        return _with_weights(dict(sent["estimator"]["fit"]), dict(sent["splitter"]["split"]))
    if weighted:
        weighted = {_weight_name(owner.estimator): sample_weight}
    return _with_weights({**fit_params, **weighted}, {})


def _with_weights(fit: dict[str, Any], split: dict[str, Any]) -> Routed:
    weights = None
    for name in fit:
        if name.split("__")[-1] == "sample_weight" and fit[name] is not None:
            refuse_lossy(fit[name])
            # Whatever can be read as an array; as one it can be cut.
            weights = fit[name] = np.asarray(fit[name], dtype=np.float64)
    return Routed(fit, split, weights)


def _weight_name(estimator: Any) -> str:
    """The keyword by which fit takes sample weights: in a pipeline, that of its last step."""
    if has_fit_parameter(estimator, "sample_weight"):
        return "sample_weight"
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        return f"{name}__{_weight_name(last)}"
    raise ValueError(
        f"sample_weight was given, but {type(estimator).__name__}.fit does not take it; "
        "leave it out, or use an estimator that does"
    )


def _length(value: Any) -> int | None:
    """How many samples an array, a frame or a list has; None of anything else."""
    if hasattr(value, "shape"):
        return int(value.shape[0]) if len(value.shape) else None
    return len(value) if isinstance(value, list | tuple) else None
