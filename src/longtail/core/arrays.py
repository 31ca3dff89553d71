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
    """The values as a tensor, without a copy where none is needed, or a ValueError."""
    refuse_lossy(values)
    if isinstance(values, Tensor):
        _check_dense(values)
        return values
    array = _as_numbers(values)
    if array.ndim:  # of an array without axes it would make one with an axis
        array = np.ascontiguousarray(array)
    # torch warns of read-only memory, which memory-mapped and shared arrays have.
    return torch.from_numpy(array if array.flags.writeable else array.copy())


def as_rows(values: Any) -> Any:
    """Rows that may lie on the disk: tensors, arrays and memory maps as they are, others a tensor.

    For what is read in blocks: `as_tensor` would read all of it.
    """
    refuse_lossy(values)
    return values if hasattr(values, "shape") else as_tensor(values)


def refuse_lossy(values: object) -> None:
    """Raise for what would lose something on its way: a mask, an imaginary part."""
    parts = values if isinstance(values, list | tuple) else [values]
    if any(isinstance(part, np.ma.MaskedArray) for part in parts):
        raise ValueError(
            "expected an array without a mask, which would be lost, got a masked array; "
            "pass its .compressed() values, or .filled(value)"
        )
    if _is_complex(getattr(values, "dtype", None)):
        raise ValueError(
            "Complex data not supported: expected real numbers, got complex ones, whose imaginary "
            "part would be lost; pass .real, or the absolute values"
        )


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


def _check_dense(tensor: Tensor) -> None:
    """A ValueError for tensors whose numbers are not all there, or not of a type to count with."""
    if tensor.is_nested or tensor.layout != torch.strided:
        kind = "nested" if tensor.is_nested else "sparse"
        raise ValueError(
            f"expected a dense tensor, got a {kind} one; pass .to_padded_tensor(value) or "
            ".to_dense() of it"
        )
    if tensor.is_meta:
        raise ValueError("expected a tensor with numbers in it, got one on the device meta")
    if tensor.is_floating_point() and tensor.element_size() == 1:
        raise ValueError(
            f"expected numbers of 16 bits or more, got {tensor.dtype}; pass .float() of it"
        )


def _is_complex(dtype: object) -> bool:
    if isinstance(dtype, torch.dtype):
        return dtype.is_complex
    return isinstance(dtype, np.dtype) and dtype.kind == "c"


def _as_numbers(values: ArrayLike) -> npt.NDArray[Any]:
    """The values as a NumPy array of a type that torch has."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"expected an array of numbers, got a {type(values).__name__} that NumPy cannot read "
            f"as one ({error}); give rows of equal length, or an array"
        ) from error
    refuse_lossy(array)  # a list of complex numbers
    if array.dtype.kind not in "biuf" or array.dtype.char == "g":
        raise ValueError(
            f"expected an array of numbers, got a {type(values).__name__} of type {array.dtype}; "
            "give a list of numbers, or an array of integers or float64"
        )
    # In this byte order, and of the C types that share a size the one that torch knows.
    plain = np.dtype(f"{array.dtype.kind}{array.dtype.itemsize}")
    known = array.dtype.isnative and array.dtype.char == plain.char
    return array if known else array.astype(plain)


def as_numpy(values: object) -> npt.NDArray[Any]:
    """Until core has its own."""
    tensor = as_tensor(values).detach().cpu()  # type: ignore[arg-type]
    return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()


def to_kind(array: npt.NDArray[Any], example: object) -> Any:
    """Until core has its own."""
    if isinstance(example, Tensor):
        return torch.from_numpy(np.asarray(array)).to(example.device)
    return array
