r"""The target prior from a confusion matrix: BBSE (Lipton et al., 2018) and RLLS.

Whatever a classifier predicts, its mean prediction m over samples whose labels follow w·q is

    J w = m,        J_ky = the share of validation samples with label y, times their mean
                           prediction of k;  q their prior, w ≥ 0 the ratio of the two priors,

and no calibration is assumed. With few samples of a class J is close to singular, so neither
inverts it:

    BBSE    min_{w≥0}  ‖Jw − m‖² + ε ‖w − 1‖²          ε so small that it only picks one of several
    RLLS    min_{w≥0}  ‖Jw − m‖  + Δ ‖w − 1‖           Azizzadenesheli et al., 2019

Δ is a hundredth of their bound on ‖Ĵ − J‖, which holds for the worst case. The norm is majorised by
its square, so that each round is a problem like BBSE's with ε = Δ ‖Jw − m‖ / ‖w − 1‖.
"""

from math import log, sqrt
from typing import Literal, TypeAlias

import numpy as np

from longtail.core.arrays import Floats, Indices, Numbers
from longtail.core.draws import Draws
from longtail.core.softmax import softmax
from longtail.posthoc.validation import Validation
from longtail.shift.em import RawEstimate, drawn_again, full

ConfusionMethod: TypeAlias = Literal["bbse", "rlls"]

_SINGULAR = 1e-9  # of J's own scale
_ROUNDS = 200
_CONFIDENCE = 0.05
_OF_THE_BOUND = 0.01


def by_confusion(
    uniform_logits: Numbers,
    validation: Validation,
    method: ConfusionMethod,
    soft: bool,
    pseudo_count: float,
    resamples: int,
    random: Draws,
) -> RawEstimate:
    """The estimate from logits and validation logits of one model, both under the uniform prior.

    The bootstrap draws both sets of samples again. Afterwards `pseudo_count` samples of each class
    are added, so that no class is ruled out.
    """
    predicted, validated = predictions(uniform_logits, soft), predictions(validation.logits, soft)
    added = pseudo_count / len(predicted)

    def estimate(weights: Floats, validation_weights: Floats) -> tuple[Floats, int, bool]:
        joint = joint_confusion(validated, validation.labels, validation_weights)
        mean = weights @ predicted / weights.sum()
        if method == "bbse":
            ratio, rounds, settled = solve_bbse(joint, mean), 1, True
        else:
            ratio, rounds, settled = solve_rlls(joint, mean, len(validated))
        target = ratio * joint.sum(axis=0)
        smoothed = target / target.sum() + added
        return smoothed / smoothed.sum(), rounds, settled

    once, validation_once = np.ones(len(predicted)), np.ones(len(validated))
    probs, iterations, converged = estimate(once, validation_once)
    spread = None
    if resamples:
        times = drawn_again(random, once, len(once), resamples)
        validation_times = drawn_again(random, validation_once, len(validation_once), resamples)
        pairs = zip(times.T, validation_times.T, strict=True)
        again = np.stack([full(estimate(*pair)[0]).log for pair in pairs])
        spread = again.std(axis=0, ddof=1)
    return RawEstimate(full(probs), spread, iterations, converged)


def predictions(logits: Numbers, soft: bool) -> Floats:
    """Probabilities, or a one for the class decided on; shape (N, C)."""
    rows = logits.astype(np.float64, copy=False)
    return softmax(rows) if soft else np.eye(rows.shape[1])[rows.argmax(axis=1)]


def joint_confusion(predicted: Floats, labels: Indices, weights: Floats) -> Floats:
    """J: rows are predicted classes, columns labels; its entries sum to one."""
    by_label = np.zeros((predicted.shape[1],) * 2)
    np.add.at(by_label, labels, predicted * (weights / weights.sum())[:, None])
    return by_label.T


def solve_bbse(joint: Floats, mean: Floats, ridge: float = 0.0) -> Floats:
    """min_{w≥0} ‖Jw − m‖² + ridge · ‖w − 1‖²; without a ridge, the nearest to 1 of several."""
    from scipy.optimize import nnls

    weight = sqrt(ridge + _SINGULAR * np.square(joint).sum(axis=0).max())
    rows = np.vstack([joint, weight * np.eye(len(mean))])
    wanted = np.append(mean, np.full(len(mean), weight))
    return np.asarray(nnls(rows, wanted, maxiter=100 * len(mean))[0])


def solve_rlls(joint: Floats, mean: Floats, num_validation: int) -> tuple[Floats, int, bool]:
    """The w ≥ 0 of RLLS, how many rounds it took, and whether it settled."""
    delta = _OF_THE_BOUND * confusion_bound(len(mean), num_validation)
    ratio, ridge = np.ones_like(mean), delta
    for iteration in range(1, _ROUNDS + 1):
        moved = solve_bbse(joint, mean, ridge)
        change = np.abs(moved - ratio).max()
        ratio = moved
        if change <= 1e-9:
            return ratio, iteration, True
        ridge = delta * float(np.linalg.norm(joint @ ratio - mean) / np.linalg.norm(ratio - 1))
    return ratio, _ROUNDS, False


def confusion_bound(num_classes: int, num_validation: int) -> float:
    """How far J may be off in the worst of twenty cases, by a matrix Bernstein inequality."""
    unlikely = 2 * log(2 * num_classes / _CONFIDENCE) / num_validation
    return 3 * (unlikely / 3 + sqrt(unlikely))
