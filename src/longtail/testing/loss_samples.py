"""The samples that the checks of a loss look at."""

import torch
from torch import Tensor

from longtail.core.prior import Prior
from longtail.losses import Loss


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


def loss_value(loss: Loss, logits: Tensor, labels: Tensor, features: Tensor) -> Tensor:
    """The loss, with the features if it asks for them."""
    value: Tensor = loss(logits, labels, features=features if loss.needs_features else None)
    return value
