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

import torch
from torch import Tensor

from longtail.core.tensors import as_tensor
from longtail.posthoc.held_out import HeldOut
from longtail.shift.found import Found, drawn_again, full
from longtail.shift.nonnegative import solve_nonnegative

ConfusionMethod: TypeAlias = Literal["bbse", "rlls"]

_SINGULAR = 1e-9  # of J's own scale
_ROUNDS = 200
_CONFIDENCE = 0.05
_OF_THE_BOUND = 0.01


def by_confusion(
    uniform_logits: Tensor,
    held: HeldOut,
    method: ConfusionMethod,
    soft: bool,
    pseudo_count: float,
    resamples: int,
    generator: torch.Generator,
) -> Found:
    """The estimate from logits and held-out logits of one model, both under the uniform prior.

    The bootstrap draws both sets of samples again. Afterwards `pseudo_count` samples of each class
    are added, so that no class is ruled out.
    """
    predicted = predictions(uniform_logits, soft)
    known = predictions(held.logits, soft)
    added = pseudo_count / len(predicted)

    def estimate(weights: Tensor, known_weights: Tensor) -> tuple[Tensor, int, bool]:
        joint = joint_confusion(known, held.labels, known_weights)
        mean = weights @ predicted / weights.sum()
        if method == "bbse":
            ratio, rounds, settled = solve_bbse(joint, mean), 1, True
        else:
            ratio, rounds, settled = solve_rlls(joint, mean, len(known))
        target = ratio * joint.sum(dim=0)
        smoothed = target / target.sum() + added
        return smoothed / smoothed.sum(), rounds, settled

    once = torch.ones(len(predicted), dtype=torch.float64, device="cpu")
    known_once = torch.ones(len(known), dtype=torch.float64, device="cpu")
    probs, iterations, converged = estimate(once, known_once)
    spread = None
    if resamples:
        drawn = drawn_again(once, len(once), resamples, generator)
        known_drawn = drawn_again(known_once, len(known_once), resamples, generator)
        pairs = zip(drawn.T, known_drawn.T, strict=True)
        again = torch.stack([as_tensor(full(estimate(*pair)[0]).log) for pair in pairs])
        spread = again.std(dim=0)
    return Found(full(probs), spread, iterations, converged)


def predictions(logits: Tensor, soft: bool) -> Tensor:
    """Probabilities, or a one for the class decided on; shape (N, C), float64."""
    rows = logits.to("cpu", torch.float64)
    if soft:
        return torch.softmax(rows, dim=1)
    return torch.nn.functional.one_hot(rows.argmax(dim=1), rows.shape[1]).double()


def joint_confusion(predicted: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
    """J: rows are predicted classes, columns labels; its entries sum to one."""
    weighted = predicted * (weights / weights.sum())[:, None]
    size = predicted.shape[1]
    by_label = torch.zeros(size, size, dtype=torch.float64, device="cpu")
    return by_label.index_add_(0, labels, weighted).T


def solve_bbse(joint: Tensor, mean: Tensor) -> Tensor:
    """The w ≥ 0 that explains the mean prediction, the one nearest to 1 where several do."""
    return _solve(joint, mean, ridge=0.0)


def solve_rlls(joint: Tensor, mean: Tensor, num_validation: int) -> tuple[Tensor, int, bool]:
    """The w ≥ 0 that explains the mean prediction as far as leaving 1 is worth it.

    Also how many rounds that took, and whether it settled.
    """
    delta = _OF_THE_BOUND * confusion_bound(len(mean), num_validation)
    ratio, ridge = torch.ones_like(mean), delta
    for iteration in range(1, _ROUNDS + 1):
        moved = _solve(joint, mean, ridge)
        change = float((moved - ratio).abs().max())
        ratio = moved
        if change <= 1e-9:
            return ratio, iteration, True
        ridge = delta * float((joint @ ratio - mean).norm()) / float((ratio - 1).norm())
    return ratio, _ROUNDS, False


def confusion_bound(num_classes: int, num_validation: int) -> float:
    """How far J may be off in the worst of twenty cases, by a matrix Bernstein inequality."""
    unlikely = 2 * log(2 * num_classes / _CONFIDENCE) / num_validation
    return 3 * (unlikely / 3 + sqrt(unlikely))


def _solve(joint: Tensor, mean: Tensor, ridge: float) -> Tensor:
    """min_{w≥0} ‖Jw − m‖² + ridge · ‖w − 1‖², never quite singular."""
    gram = joint.T @ joint
    held = ridge + _SINGULAR * float(gram.diagonal().max())
    eye = torch.eye(len(mean), dtype=torch.float64, device="cpu")
    return solve_nonnegative(gram + held * eye, joint.T @ mean + held)
