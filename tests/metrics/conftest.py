"""Seeded long-tailed samples that the metrics are tried on."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

Draw = Callable[..., tuple[Tensor, Tensor]]


@pytest.fixture(scope="session")
def draw() -> Draw:
    """A function that draws float64 logits and labels; class 0 is the most frequent."""

    def draw(seed: int = 0, num_samples: int = 400, num_classes: int = 5) -> tuple[Tensor, Tensor]:
        generator = torch.Generator().manual_seed(seed)
        frequencies = 0.6 ** torch.arange(num_classes, dtype=torch.float64)
        labels = torch.multinomial(frequencies, num_samples, True, generator=generator)
        logits = torch.randn(num_samples, num_classes, generator=generator, dtype=torch.float64)
        logits[torch.arange(num_samples), labels] += 1.5
        return logits, labels

    return draw
