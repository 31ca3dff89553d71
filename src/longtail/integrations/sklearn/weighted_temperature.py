r"""The temperature of `posthoc.Temperature`, fitted where samples weigh differently.

With v_i the weights, q the prior of the weighted labels, and the same belief in T near 1,

    min over log T   Σ_i v_i · −log softmax(f_i/T + log q − log c)[y_i]  +  (log T)² / 2.

A sample of weight two counts as two samples, one of weight zero as none, to the last digits: the
derivative's root is found by bracketing.
"""

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import softmax

from longtail.core import Prior, Scores
from longtail.core.retarget import prior_offset
from longtail.core.tensors import as_tensor
from longtail.posthoc import Temperature

_FARTHEST = 9.0  # log T beyond which a model says nothing, or everything


def fit_temperature(scores: Scores, weights: npt.NDArray[np.float64] | None) -> Temperature:
    """The temperature that suits labelled scores best; without weights all count the same."""
    logits, labels = np.asarray(scores.logits), np.asarray(scores.labels)
    counted = np.ones(len(labels)) if weights is None else weights
    prior = Prior.of(np.bincount(labels, counted, scores.num_classes), zeros="keep")
    offset = as_tensor(prior_offset(scores.carried, prior)).numpy()
    ruled_out = np.isneginf(logits)
    finite = np.where(ruled_out, 0.0, logits)
    own = finite[np.arange(len(labels)), labels]

    def slope(log_t: float) -> float:
        """Of the objective by log T."""
        inverse = np.exp(-log_t)
        probs = softmax(np.where(ruled_out, -np.inf, finite * inverse + offset), axis=1)
        return float(inverse * (counted @ (own - (probs * finite).sum(axis=1))) + log_t)

    worse_than_none = slope(_FARTHEST) <= 0
    log_t = _FARTHEST if worse_than_none else brentq(slope, -_FARTHEST, _FARTHEST, xtol=1e-12)
    return Temperature(float(np.exp(log_t)), scores.carried)
