"""The states of all random generators as tensors of a fixed shape, which a file can hold."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor


def mixed_seed(seed: int, *numbers: int) -> int:
    """A seed for each choice of numbers: neighbouring ones must not share a stream."""
    for number in numbers:
        keys = torch.randint(2**62, (2,), generator=Generator().manual_seed(seed))
        seed = (int(keys[0]) + int(keys[1]) * (number + 1)) % 2**63
    return seed


def random_state(generator: Generator) -> dict[str, Tensor]:
    """Of this generator, and of the global ones of torch, NumPy and Python."""
    _, words, gauss = random.getstate()
    legacy: Any = np.random.get_state()  # noqa: NPY002
    kind, keys, place, has_gauss, cached = legacy
    if kind != "MT19937":
        raise ValueError(f"NumPy's global generator must be an MT19937, got a {kind}")
    state = {
        "augment": generator.get_state(),
        "torch": torch.get_rng_state(),
        "python": torch.tensor(words),
        "python_gauss": _optional(gauss),
        "numpy": torch.tensor([*keys.tolist(), place]),
        "numpy_gauss": _optional(cached if has_gauss else None),
    }
    if torch.cuda.is_available():
        state["cuda"] = torch.cuda.get_rng_state()
    return state


def set_random_state(generator: Generator, state: dict[str, Tensor]) -> None:
    """Go on as when the state was taken."""
    # Copies, since torch reads a state from where its storage begins, which a row of many is not.
    generator.set_state(state["augment"].clone())
    torch.set_rng_state(state["torch"].clone())
    random.setstate((3, tuple(state["python"].tolist()), _value(state["python_gauss"])))
    *keys, place = state["numpy"].tolist()
    cached = _value(state["numpy_gauss"])
    words = np.array(keys, dtype=np.uint32)
    np.random.set_state(  # noqa: NPY002
        ("MT19937", words, place, int(cached is not None), cached or 0.0)
    )
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state(state["cuda"].clone())


def _optional(value: float | None) -> Tensor:
    return torch.tensor([value is not None, value or 0.0], dtype=torch.float64)


def _value(stored: Tensor) -> float | None:
    return stored[1].item() if stored[0] else None
