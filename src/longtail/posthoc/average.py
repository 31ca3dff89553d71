r"""Averaging experts: each is moved to the target first, so that all speak about the same thing.

    log 1/E Σ_e p_t^e(y|x)    of their probabilities,    or    1/E Σ_e f_t^e(x)    of their logits

Experts trained under different priors disagree on p(y) before they disagree on x, and what such
experts say together, each on its own terms, carries no prior.

Carries: the target.
"""

from collections.abc import Sequence
from functools import reduce
from math import log
from typing import Any, Literal, TypeAlias

import numpy as np

from longtail.core import Prior, PriorLike, Scores, UnknownPriorError
from longtail.core.arrays import ArrayT, as_numpy
from longtail.core.numbers import check_choice
from longtail.core.softmax import log_softmax, widened
from longtail.posthoc.adjuster import like

Averaged: TypeAlias = Literal["probs", "logits"]


def average(
    experts: Sequence[Scores[ArrayT]], target: PriorLike, of: Averaged = "probs"
) -> Scores[ArrayT]:
    """The experts' average under the target, of the kind and dtype of the first.

    They score the same samples in the same order, each with a known carried prior, and must agree
    in labels, counts, classes, split and ids wherever they have them. "probs" mixes: a class is
    likely if some expert finds it so. "logits" multiplies: a class is likely if no expert finds it
    unlikely, and out if one of them rules it out.

    >>> experts = [Scores([[2.0, 0.0]], carried=[90, 10]), Scores([[1.0, 2.0]], carried=[50, 50])]
    >>> average(experts, target=[50, 50]).probs().tolist()
    [[0.360, 0.640]]
    """
    check_choice(of, Averaged, "of")
    if not experts:
        raise ValueError("average needs the scores of at least one expert, got none")
    shapes = [tuple(expert.logits.shape) for expert in experts]
    for at, expert in enumerate(experts):
        if shapes[at] != shapes[0]:
            raise ValueError(
                f"experts must score the same samples and classes: expert 0 has logits of shape "
                f"{shapes[0]}, expert {at} of {shapes[at]}"
            )
        if expert.carried is None:
            raise UnknownPriorError(f"the scores of expert {at} carry no known prior")
    shared = {n: _agreed(experts, n) for n in ("labels", "counts", "classes", "split", "ids")}
    goal = Prior.of(target)
    moved = (widened(as_numpy(expert.under(goal).logits)) for expert in experts)
    if of == "probs":
        mean = reduce(np.logaddexp, map(log_softmax, moved)) - log(len(experts))
    else:
        mean = reduce(np.add, moved) / len(experts)
    empty = np.isneginf(mean.max(axis=1))
    if empty.any():
        raise ValueError(
            f"row {int(empty.argmax())} has no class left: together the experts rule out every "
            "one; average of='probs', in which only all experts together rule a class out"
        )
    return Scores(like(mean, experts[0].logits), carried=goal, **shared, _are_logits=True)


def _agreed(experts: Sequence[Scores], name: str) -> Any:
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
