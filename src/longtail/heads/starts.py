"""What heads start from: drawn from torch's own generator, or from one that the caller has.

Torch's own is one for all threads. Where a result is to follow from a seed alone, and whatever else
is drawn to stay as it is, a generator is named by `drawn_from`, for the thread that says so.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Generator, Tensor, nn

_generator: ContextVar[Generator | None] = ContextVar("generator", default=None)


@contextmanager
def drawn_from(generator: Generator) -> Iterator[None]:
    """What heads draw comes from this generator."""
    token = _generator.set(generator)
    try:
        yield
    finally:
        _generator.reset(token)


def fill_normal(tensor: Tensor, std: float) -> Tensor:
    """The tensor, filled with numbers of a normal distribution."""
    return nn.init.normal_(tensor, std=std, generator=_generator.get())


def random_rows(num_classes: int, dim: int, std: float) -> nn.Parameter:
    """A weight of normally distributed numbers."""
    return nn.Parameter(fill_normal(torch.empty(num_classes, dim), std))


def random_directions(number: int, dim: int) -> Tensor:
    """Orthogonal rows."""
    return nn.init.orthogonal_(torch.empty(number, dim), generator=_generator.get())


def random_layer(dim: int, num_classes: int, bias: bool) -> nn.Linear:
    """A layer as torch.nn.Linear starts."""
    bare = nn.Linear(dim, num_classes, bias=bias, device="meta")
    layer = bare.to_empty(device=torch.get_default_device())
    nn.init.kaiming_uniform_(layer.weight, a=math.sqrt(5), generator=_generator.get())
    if bias:
        bound = 1 / math.sqrt(dim)
        nn.init.uniform_(layer.bias, -bound, bound, generator=_generator.get())
    return layer
