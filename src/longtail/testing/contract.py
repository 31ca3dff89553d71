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
    """Require that the logits, moved from there to any target, are the exact posterior.

    If labels were smoothed, that of the smoothed labels.
    """
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


def sample_batch() -> tuple[Prior, Tensor, Tensor, Tensor]:
    """Twelve samples of four classes, each class present, in float64, with features."""
    generator = torch.Generator().manual_seed(0)
    logits = 2 * torch.randn(12, 4, generator=generator, dtype=torch.float64)
    return Prior.of([70, 20, 8, 2]), logits, torch.arange(12) % 4, sample_features(12)


def sample_features(samples: int) -> Tensor:
    """Features of three dimensions and norm one."""
    generator = torch.Generator().manual_seed(1)
    rows = torch.randn(samples, 3, generator=generator, dtype=torch.float64)
    return torch.nn.functional.normalize(rows, dim=1)


def as_grid(rows: Tensor) -> Tensor:
    """Twelve rows as three samples with two by two positions, shape (3, D, 2, 2)."""
    return rows.view(3, 2, 2, -1).movedim(-1, 1)
