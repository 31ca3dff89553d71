r"""Averaging experts: each is moved to the target first, so that all speak about the same thing.

    log Σ_e w_e p_t^e(y|x)    of their probabilities,    or    Σ_e w_e f_t^e(x)    of their logits

Experts trained under different priors disagree on p(y) before they disagree on x, and what such
experts say together, each on its own terms, carries no prior. The weights w are at least 0 and sum
to 1: all alike, or those of the least log-loss on validation samples, each counted as the target
says. That is convex in w: −log of a sum that is linear in w, or Σ_e w_e f^e and its log Σ exp.

Carries: the target, whatever the weights.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from math import log
from typing import Any, Literal, TypeAlias

import numpy as np

from longtail.core import Prior, PriorLike, Scores, UnknownPriorError
from longtail.core.arrays import ArrayLike, ArrayT, Floats, Indices, as_numpy, like
from longtail.core.minimise import UnsettledError, minimise
from longtail.core.numbers import check_choice
from longtail.core.score_checks import check_softmax
from longtail.core.softmax import log_softmax, logsumexp, softmax, widened
from longtail.posthoc.validation import check_validation

Averaged: TypeAlias = Literal["probs", "logits"]
_LogLoss: TypeAlias = Callable[[Floats], tuple[float, Floats]]  # of log w, and its slope
_RULED_OUT = -1e300  # a logit that is finite, and below all others whatever its expert weighs
_NOTHING = 1e-6  # a weight that stands for zero, which descent only comes near


def average(
    experts: Sequence[Scores[ArrayT]],
    target: PriorLike,
    of: Averaged = "probs",
    weights: ArrayLike | None = None,
) -> Scores[ArrayT]:
    """The experts' average under the target, of the kind and dtype of the first.

    They score the same samples in the same order, each with a known carried prior, and must agree
    in labels, counts, classes, split and ids wherever they have them. "probs" mixes: a class is
    likely if some expert finds it so. "logits" multiplies: a class is likely if no expert finds it
    unlikely, and out if one of them rules it out. Without weights, such as `expert_weights` gives,
    all count alike; an expert of weight 0 is left out.

    >>> experts = [Scores([[2.0, 0.0]], carried=[90, 10]), Scores([[1.0, 2.0]], carried=[50, 50])]
    >>> average(experts, target=[50, 50]).probs().tolist()
    [[0.360, 0.640]]
    """
    shared, goal = _agreed(experts, of), Prior.of(target)
    shares = _shares(weights, len(experts)).tolist()
    moved = (
        (widened(as_numpy(expert.under(goal).logits)), share)
        for expert, share in zip(experts, shares, strict=True)
        if share > 0
    )
    if of == "probs":
        mean = reduce(np.logaddexp, (log_softmax(each) + log(share) for each, share in moved))
    else:
        mean = reduce(np.add, (each * share for each, share in moved))
    empty = np.isneginf(mean.max(axis=1))
    if empty.any():
        raise ValueError(
            f"row {int(empty.argmax())} has no class left: together the experts rule out every "
            "one; average of='probs', in which only all experts together rule a class out"
        )
    return Scores(like(mean, experts[0].logits), carried=goal, **shared, _are_logits=True)


def expert_weights(experts: Sequence[Scores], target: PriorLike, of: Averaged = "probs") -> Floats:
    """The weights for `average` of the least log-loss under the target on validation samples.

    The experts are as `average` takes them, with labels, and not of the test set. The target says
    what each sample counts. Experts that always agree weigh alike.

    >>> right, wrong = [[4.0, 0.0], [0.0, 4.0]], [[0.0, 2.0], [2.0, 0.0]]
    >>> experts = [Scores(logits, labels=[0, 1], carried=[50, 50]) for logits in (right, wrong)]
    >>> expert_weights(experts, target=[50, 50]).tolist()
    [1.0, 0.0]
    """
    shared, goal = _agreed(experts, of), Prior.of(target)
    first = Scores(experts[0].logits, carried=goal, **shared, _are_logits=True)
    samples = check_validation(first, "the weights of experts")
    counted = samples.weights_to(goal)
    at = np.flatnonzero(counted)
    moved = np.stack(
        [as_numpy(expert.under(goal).logits)[at].astype(np.float64) for expert in experts]
    )
    log_loss = (_of_probs if of == "probs" else _of_logits)(moved, samples.labels[at], counted[at])

    def by_theta(theta: Floats) -> tuple[float, Floats]:
        log_weights = theta - logsumexp(theta, axis=0)
        value, slope = log_loss(log_weights)
        return value, slope - np.exp(log_weights) * slope.sum()

    # With w = softmax(θ) no step leaves the simplex, and nothing but the minimum is flat.
    theta, slope = minimise(by_theta, np.zeros(len(experts)), max_iter=1000, tolerance=1e-10)
    if not slope < 1e-6:
        raise UnsettledError(
            f"the weights of the experts did not settle (the gradient is still {slope:.2g}); use "
            "logits on a smaller scale"
        )
    weights = softmax(theta, axis=0)
    return _shares(np.where(weights < _NOTHING, 0.0, weights), len(experts))


def _of_probs(logits: Floats, labels: Indices, counted: Floats) -> _LogLoss:
    """The log-loss of the mean of probabilities; logits have the shape (K, N, C)."""
    own = np.stack([log_softmax(each)[np.arange(len(labels)), labels] for each in logits])
    _check_possible(bool(np.isneginf(own).all(axis=0).any()), "all experts rule")

    def log_loss(log_weights: Floats) -> tuple[float, Floats]:
        each = own + log_weights[:, None]
        mean = logsumexp(each, axis=0)
        return -float(counted @ mean), -(np.exp(each - mean) @ counted)

    return log_loss


def _of_logits(logits: Floats, labels: Indices, counted: Floats) -> _LogLoss:
    """The log-loss of the mean of logits, which have the shape (K, N, C)."""
    own = logits[:, np.arange(len(labels)), labels]
    _check_possible(bool(np.isneginf(own).any()), "an expert rules")
    finite = np.maximum(logits, _RULED_OUT)  # 0 · -inf would be no number

    def log_loss(log_weights: Floats) -> tuple[float, Floats]:
        weights = np.exp(log_weights)
        mean = np.tensordot(weights, finite, axes=1)
        expected = np.einsum("nc,knc->kn", softmax(mean), finite)
        value = float(counted @ (logsumexp(mean) - weights @ own))
        return value, weights * ((expected - own) @ counted)

    return log_loss


def _check_possible(is_infinite: bool, who: str) -> None:
    if is_infinite:
        raise ValueError(
            f"{who} out the label of a validation sample, whose log-loss is then infinite; give "
            "probabilities to Scores.from_probs, which floors zeros"
        )


def _shares(weights: ArrayLike | None, number: int) -> Floats:
    """The weights of so many experts, which sum to one."""
    shares = np.ones(number) if weights is None else as_numpy(weights).astype(np.float64)
    if shares.shape != (number,) or not (np.isfinite(shares) & (shares >= 0)).all():
        raise ValueError(
            f"weights must be a number for each of {number} experts, none negative, got {weights!r}"
        )
    if not shares.sum() > 0:
        raise ValueError("weights are all zero; an expert at least must weigh something")
    return np.asarray(shares / shares.sum())


def _agreed(experts: Sequence[Scores], of: Averaged) -> dict[str, Any]:
    """What all experts say who say it, or an error if they cannot be averaged."""
    check_choice(of, Averaged, "of")
    if not experts:
        raise ValueError("average needs the scores of at least one expert, got none")
    shapes = [tuple(expert.logits.shape) for expert in experts]
    for at, expert in enumerate(experts):
        check_softmax(expert, "average")
        if shapes[at] != shapes[0]:
            raise ValueError(
                f"experts must score the same samples and classes: expert 0 has logits of shape "
                f"{shapes[0]}, expert {at} of {shapes[at]}"
            )
        if expert.carried is None:
            raise UnknownPriorError(f"the scores of expert {at} carry no known prior")
    names = ("labels", "counts", "classes", "split", "ids")
    return {name: _agreed_on(experts, name) for name in names}


def _agreed_on(experts: Sequence[Scores], name: str) -> Any:
    """The value that every expert has who has one, or a ValueError."""
    values = [(at, getattr(expert, name)) for at, expert in enumerate(experts)]
    values = [(at, value) for at, value in values if value is not None]
    for at, value in values[1:]:
        if not _same(value, values[0][1]):
            raise ValueError(
                f"experts must agree on {name}, but those of expert {values[0][0]} and expert {at} "
                "differ; average scores of the same samples, in the same order"
            )
    return values[0][1] if values else None


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, str | tuple):
        return bool(one == other)
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return np.array_equal(one, other)  # ids may be text
    return np.array_equal(as_numpy(one), as_numpy(other))
