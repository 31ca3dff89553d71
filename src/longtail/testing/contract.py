"""What contract checks are made of: samples, exact targets, an error that says what is wrong."""

from collections.abc import Callable

import torch
from torch import Tensor

from longtail.core.prior import Prior
from longtail.core.retarget import retarget
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
