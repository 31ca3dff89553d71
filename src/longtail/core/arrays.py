"""Arrays at the door: torch tensors or NumPy arrays come in, the same kind goes out.

Inside the package everything is a tensor. The class axis is axis 1, or axis 0 of a single sample.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Array: TypeAlias = Tensor | npt.NDArray[Any]
ArrayLike: TypeAlias = Array | Sequence[float]
ArrayT = TypeVar("ArrayT", bound=Tensor | npt.NDArray[Any])


def as_tensor(values: ArrayLike) -> Tensor:
    """The values as a tensor, without a copy where none is needed."""
    if isinstance(values, Tensor):
        return values
    array = np.ascontiguousarray(values) if np.ndim(values) else np.asarray(values)
    # torch warns of read-only memory, which memory-mapped and shared arrays have.
    return torch.from_numpy(array if array.flags.writeable else array.copy())


def as_kind_of(tensor: Tensor, example: object) -> Array:
    """The tensor as a NumPy array if the example is one, else as it is."""
    if isinstance(example, np.ndarray):
        return tensor.detach().cpu().numpy()
    return tensor


def class_axis(logits: Tensor) -> int:
    """Axis 1 of a batch, axis 0 of a single sample."""
    return 1 if logits.dim() > 1 else 0


def along_classes(per_class: Tensor, logits: Tensor) -> Tensor:
    """One number a class, shaped to broadcast over logits of shape (N, C) or (N, C, d, ...)."""
    trailing = logits.dim() - 1 - class_axis(logits)
    return per_class.view(-1, *(1,) * trailing) if trailing else per_class


def wide_dtype(dtype: torch.dtype) -> torch.dtype:
    """Where sums of exponentials are safe: float32 for the halves, else the dtype itself."""
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype
