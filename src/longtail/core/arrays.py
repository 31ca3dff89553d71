"""Array kinds at the door: NumPy, torch and JAX come in, the same kind goes out.

Torch and JAX are found in `sys.modules`, never imported: an array of theirs can only exist where
its library was imported. Elementwise work is done in the caller's kind, sums and fits in NumPy.
The class axis is axis 1, or axis 0 of a single sample.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeGuard, cast

import numpy as np
import numpy.typing as npt

from longtail.core.memory import check_memory

if TYPE_CHECKING:
    from torch import Tensor
    from typing_extensions import TypeVar


class Array(Protocol):
    """An array of any kind: NumPy's, torch's or JAX's."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Its lengths."""
        ...

    @property
    def dtype(self) -> Any:
        """The type of its numbers."""
        ...

    def __len__(self) -> int: ...

    def __getitem__(self, at: Any, /) -> Any: ...


class Table(Protocol):
    """A DataFrame of any library: numbers in named columns. It comes out as a NumPy array."""

    @property
    def columns(self) -> Any:
        """The names of its columns."""
        ...

    def to_numpy(self) -> npt.NDArray[Any]:
        """Its numbers."""
        ...


Floats: TypeAlias = npt.NDArray[np.float64]
Indices: TypeAlias = npt.NDArray[np.int64]
Numbers: TypeAlias = npt.NDArray[Any]  # of any type
_LONGEST_TEXT = 2**16  # characters
ArrayLike: TypeAlias = Array | Sequence[float]
RowsLike: TypeAlias = Array | Table | Sequence[Sequence[float]]
if TYPE_CHECKING:  # a plain `Scores` is one of any kind, which typing says from Python 3.13 on
    ArrayT = TypeVar("ArrayT", bound=Array, default=Any)
else:
    from typing import TypeVar

    ArrayT = TypeVar("ArrayT", bound=Array)


def is_torch(values: object) -> TypeGuard[Tensor]:
    """Whether this is a torch tensor."""
    if type(values) is np.ndarray:  # seen without a call, since single rows are asked so often
        return False
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(values, torch.Tensor)


def is_jax(values: object) -> bool:
    """Whether this is an array of JAX, or one that it traces."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(values, jax.Array)


def as_numpy(values: object) -> Numbers:
    """The values as a NumPy array, without a copy where none is needed, or a ValueError.

    Bfloat16, which NumPy does not have, is widened to float32.
    """
    if type(values) is np.ndarray and values.dtype.char in "dfl" and values.dtype.isnative:
        return values
    if is_torch(values):
        check_dense(values)
        wide = values.float() if str(values.dtype) == "torch.bfloat16" else values
        return cast("Numbers", _refuse_complex(wide.detach().cpu().resolve_neg()).numpy())
    refuse_lossy(values)
    if hasattr(values, "to_numpy") and not isinstance(values, np.ndarray):
        values = values.to_numpy()
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"expected an array of numbers, got a {type(values).__name__} that NumPy cannot read "
            f"as one ({error}); give rows of equal length, or an array"
        ) from error
    _refuse_complex(array)  # a list of complex numbers
    if array.dtype.name == "bfloat16":
        return array.astype(np.float32)
    if array.dtype.kind not in "biuf" or array.dtype.char == "g":
        raise ValueError(
            f"expected an array of numbers, got a {type(values).__name__} of type {array.dtype}; "
            "give a list of numbers, or an array of integers or float64"
        )
    # In this byte order, and of the C types that share a size the usual one.
    plain = np.dtype(f"{array.dtype.kind}{array.dtype.itemsize}")
    usual = array.dtype.isnative and array.dtype.char == plain.char
    return array if usual else array.astype(plain)


def text_array(texts: Sequence[str], what: str) -> Numbers:
    """Texts as NumPy has them, all as wide as the longest; a ValueError if that cannot be.

    NumPy drops NULs at the end, which would make different texts the same.
    """
    longest = max(map(len, texts), default=0)
    if longest > _LONGEST_TEXT:
        raise ValueError(
            f"{what} must be texts of {_LONGEST_TEXT:,} characters at the most, got one of "
            f"{longest:,}; give shorter ones"
        )
    check_memory(4 * longest * len(texts), what)
    if any(text.endswith("\0") for text in texts):
        raise ValueError(f"{what} must not end in the character NUL; leave it out")
    return np.array(texts, dtype=str)


def as_array(values: object) -> Any:
    """The values in their own kind: torch and JAX as they are, all else as a NumPy array."""
    if isinstance(values, np.ndarray):
        return as_numpy(values)
    if is_torch(values):
        check_dense(values)
        _refuse_complex(values)
        return values
    return values if is_jax(values) else as_numpy(values)


def to_kind(array: Numbers, example: object) -> Any:
    """A NumPy array as the kind of the example, and on its device; as it is for other examples."""
    if is_torch(example):
        return torch_of(array).to(example.device)
    if is_jax(example):
        return sys.modules["jax"].numpy.asarray(array)
    return array


def like(values: Numbers, example: ArrayT) -> ArrayT:
    """The values in the kind and dtype of the example, and on its device."""
    same_kind = to_kind(values, example)
    change = same_kind.to if is_torch(example) else same_kind.astype
    return cast(ArrayT, change(example.dtype))


def torch_of(array: Numbers) -> Tensor:
    """A NumPy array as a tensor; copied where it is not contiguous, or read-only: torch warns."""
    usable = np.require(array, requirements=["C", "W", "E"])
    return cast("Tensor", sys.modules["torch"].from_numpy(usable))


def class_axis(logits: Array) -> int:
    """Axis 1 of a batch, axis 0 of a single sample."""
    return 1 if len(logits.shape) > 1 else 0


def is_floating(array: Array) -> bool:
    """Whether its numbers are of a floating type."""
    kind = getattr(array.dtype, "kind", "")  # torch's types have none, that of bfloat16 is V
    if is_torch(array):
        return array.is_floating_point()
    return kind == "f" or (kind == "V" and array.dtype.name == "bfloat16")


def precision(array: Array) -> float:
    """The machine precision of its floating type."""
    if is_torch(array):
        return float(sys.modules["torch"].finfo(array.dtype).eps)
    return 2.0**-7 if array.dtype.name == "bfloat16" else float(np.finfo(array.dtype).eps)


def refuse_lossy(values: object) -> None:
    """Raise for what would lose something on its way: a mask, an imaginary part."""
    parts = values if isinstance(values, list | tuple) else [values]
    if any(isinstance(part, np.ma.MaskedArray) for part in parts):
        raise ValueError(
            "expected an array without a mask, which would be lost, got a masked array; "
            "pass its .compressed() values, or .filled(value)"
        )
    _refuse_complex(values)


def check_dense(tensor: Tensor) -> None:
    """A ValueError for tensors whose numbers are not all there, or not of a type to count with."""
    if tensor.is_nested or str(tensor.layout) != "torch.strided":
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


def _refuse_complex(values: Any) -> Any:
    dtype = getattr(values, "dtype", None)
    if getattr(dtype, "is_complex", False) or getattr(dtype, "kind", None) == "c":
        raise ValueError(
            "Complex data not supported: expected real numbers, got complex ones, whose imaginary "
            "part would be lost; pass .real, or the absolute values"
        )
    return values
