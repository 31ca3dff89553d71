"""What contract checks are made of, and the contract of adjusters, for anyone to run on theirs."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from longtail.core import Prior, Scores
from longtail.core.retarget import retarget
from longtail.core.tensors import as_tensor
from longtail.posthoc import Adjuster
from longtail.testing.world import FiniteWorld


class ContractError(AssertionError):
    """Something that every loss or adjuster must keep does not hold."""


def contract_targets(world: FiniteWorld) -> dict[str, Prior]:
    """Four targets to reach: uniform, train, reversed, and one without the last class."""
    falling_to_zero = torch.arange(world.num_classes, device="cpu").flip(0)
    return {
        "uniform": Prior.uniform(world.num_classes),
        "train": world.prior,
        "reversed": world.prior.tempered(-1),
        "last class absent": Prior.of(falling_to_zero, zeros="keep"),
    }


def require_carried(
    world: FiniteWorld, logits: Tensor, carried: Prior, label_smoothing: float = 0.0
) -> None:
    """Require that logits moved from there to any target are the posterior, of smoothed labels."""
    for name, target in contract_targets(world).items():
        posterior = torch.softmax(retarget(logits, carried, target), dim=1)
        error = float((posterior - world.posterior(target, label_smoothing)).abs().max())
        require(
            error < 1e-6,
            f"it says that its logits carry {carried!r}, but moved from there to the {name} prior "
            f"they are off the true posterior by {error:.2g}",
        )


def require(holds: bool, sentence: str) -> None:
    """Raise ContractError with the sentence unless it holds."""
    if not holds:
        raise ContractError(sentence)


def require_refusal(action: Callable[[], object], error: type[Exception], sentence: str) -> None:
    """Raise ContractError with the sentence unless the action raises this error."""
    try:
        action()
    except error:
        return
    raise ContractError(sentence)


def require_same(got: Tensor, expected: Tensor, what: str, tolerance: float = 1e-10) -> None:
    """Require equal shapes, and values up to a tolerance relative to the largest."""
    got, expected = got.detach(), expected.detach()
    require(
        got.shape == expected.shape
        and float((got - expected).abs().max()) <= tolerance * (1 + float(expected.abs().max())),
        f"{what} must be {expected.tolist()}, got {got.tolist()}",
    )


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
