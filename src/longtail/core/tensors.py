"""Torch tensors for the network half. Torch is there already where this is called.

Core itself never imports torch, so it is taken from `sys.modules`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from longtail.core import arrays
from longtail.core.labels import check_labels

if TYPE_CHECKING:
    import torch
    from torch import Tensor


def as_tensor(values: object) -> Tensor:
    """The values as a tensor, without a copy where none is needed, or a ValueError."""
    array = arrays.as_array(values)
    return array if arrays.is_torch(array) else arrays.torch_of(arrays.as_numpy(array))


def as_rows(values: Any) -> Any:
    """Rows that may lie on the disk: tensors, arrays and memory maps as they are, others a tensor.

    For what is read in blocks: `as_tensor` would read all of it.
    """
    arrays.refuse_lossy(values)
    return values if hasattr(values, "shape") else as_tensor(values)


def label_tensor(labels: object, num_classes: int) -> Tensor:
    """Checked class indices as int64, on the device they came on."""
    checked = arrays.torch_of(check_labels(labels, num_classes))
    return checked.to(labels.device) if arrays.is_torch(labels) else checked


def along_classes(per_class: Tensor, logits: Tensor) -> Tensor:
    """One number a class, shaped to broadcast over logits of shape (N, C) or (N, C, d, ...)."""
    trailing = logits.dim() - 1 - arrays.class_axis(logits)
    return per_class.view(-1, *(1,) * trailing) if trailing else per_class


def wide_dtype(dtype: torch.dtype) -> torch.dtype:
    """Where sums of exponentials are safe: float32 for the halves, else the dtype itself."""
    library = sys.modules["torch"]
    halves = (library.float16, library.bfloat16)
    return cast("torch.dtype", library.float32) if dtype in halves else dtype


def as_kind_of(tensor: Tensor, example: object) -> arrays.Array:
    """The tensor as a NumPy array if the example is one, else as it is."""
    return tensor.detach().cpu().numpy() if isinstance(example, np.ndarray) else tensor
