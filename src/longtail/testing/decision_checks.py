"""Contracts of what is decided: by costs, and by sets, in worlds that are known in full."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from longtail.core import Prior, PriorLike, Scores
from longtail.core.arrays import Floats, as_numpy
from longtail.testing.contract import contract_targets, require
from longtail.testing.world import FiniteWorld

_ROUNDING = 1e-9
_ERRORS = 3.5  # standard errors of a mean over draws that are no doubt yet


def check_decisions(
    decide: Callable[[Scores[Any], Any, Prior, float | None], Any] = Scores.decide,
    world: FiniteWorld | None = None,
) -> None:
    """No decisions of the world's points have a lower expected cost, under any target.

    Costs are one a class, a matrix, and a matrix in which right decisions cost something, too; each
    with and without a way out. `decide` takes scores, costs, target and abstain.

    >>> check_decisions()
    """
    world = world or FiniteWorld.long_tailed()
    scores = Scores(world.posterior(world.prior).log().numpy(), carried=world.prior)
    size = world.num_classes
    random = np.random.default_rng(0)
    per_class = random.uniform(0.5, 4, size)
    matrix = random.uniform(0.5, 4, (size, size)) * (1 - np.eye(size))
    for costs in (per_class, matrix, matrix + random.uniform(0, 0.4, size) * np.eye(size)):
        full = costs if costs.ndim == 2 else costs[:, None] * (1 - np.eye(size))
        for name, target in contract_targets(world).items():
            joint = _likelihood(world) * target.probs
            for abstain in (None, 0.3):
                decided = as_numpy(decide(scores, costs, target, abstain))
                each = joint @ full
                if abstain is not None:  # the last column, which -1 finds
                    each = np.column_stack([each, abstain * joint.sum(axis=1)])
                got = float(each[np.arange(len(each)), decided].sum())
                least = float(each.min(axis=1).sum())
                require(
                    got <= least + _ROUNDING,
                    f"under the {name} prior the decisions {decided.tolist()} cost {got:.6g} on "
                    f"average, others {least:.6g}",
                )


def check_sets(
    fit: Callable[[Scores[Any]], Callable[[Scores[Any]], Any]],
    coverage: float,
    target: PriorLike | None = None,
    *,
    each_class: bool = False,
    exact: bool = False,
    world: FiniteWorld | None = None,
    samples: int = 15,
    draws: int = 300,
) -> None:
    """Sets that are fitted to samples of the world hold the true class as often as asked.

    So many samples of each class are drawn again and again, and how often the sets then hold the
    true class is summed over the whole world: on average not less than `coverage`, beyond chance.

    Args:
        fit: Fits sets on labelled scores; they are called with scores.
        coverage: What was asked for.
        target: Where labels follow this prior; uniform by default.
        each_class: Whether every class is to be covered so often.
        exact: Whether it must not be more, either.
        world: Where samples are from; by default one of many points.
        samples: Of each class.
        draws: How often.

    >>> from longtail.posthoc import ConformalSets
    >>> check_sets(lambda scores: ConformalSets.fit(scores, 0.8, "class"), 0.8, each_class=True)
    """
    world = world or FiniteWorld.drawn(0, points=200, classes=4)
    likelihood, random = _likelihood(world), np.random.default_rng(0)
    size = world.num_classes
    goal = Prior.uniform(size) if target is None else Prior.of(target)
    points = Scores(world.posterior(world.prior).log().numpy(), carried=world.prior)
    labels = np.repeat(np.arange(size), samples)
    covered = np.empty((draws, size))
    for draw in range(draws):
        at = [random.choice(len(points), samples, p=likelihood[:, y]) for y in range(size)]
        drawn = points.take(np.concatenate(at))
        sets = fit(Scores(drawn.logits, labels, drawn.carried, split="validation"))
        covered[draw] = (as_numpy(sets(points)) * likelihood).sum(axis=0)
    for name, shares in _asked(covered, goal, each_class).items():
        mean, error = float(shares.mean()), float(shares.std() / draws**0.5)
        too_much = exact and mean > coverage + _ERRORS * error
        require(
            mean >= coverage - _ERRORS * error - _ROUNDING and not too_much,
            f"sets that are to hold {name} with {coverage:g} hold it with {mean:.4f} ± {error:.4f}",
        )


def _asked(covered: Floats, goal: Prior, each_class: bool) -> dict[str, Floats]:
    if each_class:
        return {f"class {y}": shares for y, shares in enumerate(covered.T)}
    return {"the true class": covered @ goal.probs}


def _likelihood(world: FiniteWorld) -> Floats:
    """The share of each class's samples that are at each point, p(x|y)."""
    table = world.table.double().numpy()
    return np.asarray(table / table.sum(axis=0))
