r"""Averaging experts: each is moved to the target first, so that all speak about the same thing.

    log 1/E Σ_e p_t^e(y|x)    of their probabilities,    or    1/E Σ_e f_t^e(x)    of their logits

Experts trained under different priors disagree on p(y) before they disagree on x, and what such
experts say together, each on its own terms, carries no prior.

Carries: the target.
"""

from collections.abc import Sequence
from math import log
from typing import Any, Literal

import torch
from torch import Tensor

from longtail.core import Prior, PriorLike, Scores, UnknownPriorError
from longtail.core.tensors import as_kind_of, as_tensor, wide_dtype


def average(
    experts: Sequence[Scores], target: PriorLike, of: Literal["probs", "logits"] = "probs"
) -> Scores:
    """The experts' average under the target, of the kind and dtype of the first.

    Args:
        experts: Scores of the same samples in the same order, each with a known carried prior.
            Labels, counts, classes and split must agree wherever they are given.
        target: The prior that all are moved to: a Prior or class counts.
        of: "probs" mixes: a class is likely if some expert finds it so. "logits" multiplies: a
            class is likely if no expert finds it unlikely, and out if one of them rules it out.

    >>> experts = [Scores([[2.0, 0.0]], carried=[90, 10]), Scores([[1.0, 2.0]], carried=[50, 50])]
    >>> average(experts, target=[50, 50]).probs().tolist()
    [[0.360, 0.640]]
    """
    if of not in ("probs", "logits"):
        raise ValueError(f'of must be "probs" or "logits", got {of!r}')
    shared = _check_experts(experts)
    goal, example = Prior.of(target), experts[0].logits
    dtype, device = as_tensor(example).dtype, as_tensor(example).device
    total: Tensor | None = None
    for expert in experts:
        logits = as_tensor(expert.under(goal).logits).to(device, wide_dtype(dtype))
        if of == "probs":
            logits = torch.log_softmax(logits, dim=1)
            total = logits if total is None else torch.logaddexp(total, logits)
        else:
            total = logits if total is None else total + logits
    assert total is not None
    mean = total - log(len(experts)) if of == "probs" else total / len(experts)
    _check_class_left(mean)
    kept = as_kind_of(mean.to(dtype), example)
    return Scores(kept, carried=goal, **shared, _are_logits=True)


def _check_experts(experts: Sequence[Scores]) -> dict[str, Any]:
    """What the experts' scores have in common, or a ValueError."""
    if not experts:
        raise ValueError("average needs the scores of at least one expert, got none")
    shape = tuple(experts[0].logits.shape)
    for at, expert in enumerate(experts):
        if tuple(expert.logits.shape) != shape:
            raise ValueError(
                f"experts must score the same samples and classes: expert 0 has logits of shape "
                f"{shape}, expert {at} of {tuple(expert.logits.shape)}"
            )
        if expert.carried is None:
            raise UnknownPriorError(f"the scores of expert {at} carry no known prior")
    return {name: _agreed(experts, name) for name in ("labels", "counts", "classes", "split")}


def _agreed(experts: Sequence[Scores], name: str) -> Any:
    """The value that every expert has who has one, or a ValueError."""
    given = [(at, getattr(e, name)) for at, e in enumerate(experts) if getattr(e, name) is not None]
    for at, value in given[1:]:
        if not _same(value, given[0][1]):
            raise ValueError(
                f"experts must agree on {name}, but those of expert {given[0][0]} and expert {at} "
                "differ; average scores of the same samples, in the same order"
            )
    return given[0][1] if given else None


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, str | tuple):
        return bool(one == other)
    return torch.equal(as_tensor(one).cpu(), as_tensor(other).cpu())


def _check_class_left(logits: Tensor) -> None:
    empty = logits.isneginf().all(dim=1)
    if empty.any():
        raise ValueError(
            f"row {int(empty.nonzero()[0])} has no class left: together the experts rule out every "
            "one; average of='probs', in which only all experts together rule a class out"
        )
