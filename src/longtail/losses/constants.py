"""Modules whose constants stay exact: moved and saved with the model, but never made half."""

from typing import Any, Self

from torch import Tensor, nn

from longtail.core.tensors import wide_dtype
from longtail.losses.kernel import can_look


class ConstantsModule(nn.Module):
    """Keeps constants as float64 buffers, to be cast where they are used."""

    def __init__(self) -> None:
        super().__init__()
        self._casts: dict[str, tuple[Tensor, int, Tensor]] = {}

    def hold(self, name: str, values: Tensor | None) -> None:
        """Keep a copy as a buffer: loading a state writes into it."""
        self.register_buffer(name, None if values is None else values.clone())

    def cast(self, name: str, like: Tensor) -> Tensor:
        """The constants in the dtype and on the device that computations on `like` need.

        Kept from call to call while the buffer is the same and unchanged.
        """
        source = self.get_buffer(name)
        dtype, device = wide_dtype(like.dtype), like.device
        if not can_look(like):
            return source.to(device, dtype)
        held = self._casts.get(name)
        if held is None or held[0] is not source or held[1] != source._version:
            held = None
        if held is None or held[2].dtype != dtype or held[2].device != device:
            held = (source, source._version, source.to(device, dtype))
            self._casts[name] = held
        return held[2]

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        before = dict(self._buffers)
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        for name, old in before.items():
            new = self._buffers[name]
            if old is not None and new is not None and new.dtype != old.dtype:
                self._buffers[name] = old.to(new.device)
        return self
