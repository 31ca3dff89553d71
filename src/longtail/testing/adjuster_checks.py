"""The contract every adjuster keeps, as a check that anyone can run on one of their own."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from longtail.core import Prior, Scores
from longtail.core.tensors import as_tensor
from longtail.posthoc import Adjuster
from longtail.testing.contract import require, require_carried, require_same
from longtail.testing.world import FiniteWorld


def check_adjuster(make: Callable[[Prior], Adjuster], world: FiniteWorld | None = None) -> None:
    """What is carried afterwards is true, nothing else is lost, and NumPy stays NumPy.

    `make` makes the adjuster from the prior that the scores carry.

    >>> import longtail as lt
    >>> check_adjuster(lt.posthoc.LogitAdjustment)
    """
    world = world or FiniteWorld.long_tailed()
    exact = world.posterior(world.prior).log()
    scores = Scores(
        exact.clone(),
        labels=world.balanced_decisions(),
        carried=world.prior,
        counts=as_tensor(world.prior.counts),
        classes=[f"class {k}" for k in range(world.num_classes)],
        split="validation",
    )
    adjust = make(world.prior)
    adjusted = adjust(scores)
    unchanged = torch.equal(as_tensor(scores.logits), exact)
    require(unchanged, "an adjuster must not change what it is given")
    for name in ("labels", "counts", "classes", "split"):
        before, after = _plain(getattr(scores, name)), _plain(getattr(adjusted, name))
        lost = f"the adjusted scores must keep their {name}: they were {before}, now {after}"
        require(after == before, lost)
    if adjusted.carried is not None:
        require_carried(world, as_tensor(adjusted.logits), adjusted.carried)
    from_numpy = adjust(Scores(exact.numpy(), carried=world.prior)).logits
    require(isinstance(from_numpy, np.ndarray), "NumPy scores must stay NumPy")
    require_same(as_tensor(from_numpy), as_tensor(adjusted.logits), "the logits from NumPy")


def _plain(value: object) -> object:
    """Something that == compares at once."""
    return value.tolist() if isinstance(value, Tensor | np.ndarray) else value
