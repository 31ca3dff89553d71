"""Tensors in memory as one safetensors file, with the same bytes for the same content.

`safetensors.torch.save_file` writes metadata in the order of a hash map, which differs from run to
run, and gives the file to its owner alone. Here metadata are in the order of their names, and the
file is as open() makes it.
"""

import os
import struct
from collections.abc import Mapping
from typing import Any

import msgspec
import torch
from torch import Tensor

from longtail.core.files import written_whole

_CODES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.complex64: "C64",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}


def save_tensors(
    path: str | os.PathLike[str], tensors: Mapping[str, Tensor], metadata: Mapping[str, str]
) -> None:
    """Write the file, whole or not at all.

    Args:
        path: Where to.
        tensors: By name, wherever they are; those that share memory are written each.
        metadata: Goes into the header.
    """
    # As safetensors has it: by size of their numbers, so that all are aligned, then by name.
    order = sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))
    entries: dict[str, Any] = {"__metadata__": dict(sorted(metadata.items()))}
    end = 0
    for name in order:
        tensor = tensors[name]
        start, end = end, end + tensor.numel() * tensor.element_size()
        if tensor.dtype not in _CODES:
            raise ValueError(f"tensors of {tensor.dtype} cannot be stored, got one called {name}")
        entries[name] = {
            "dtype": _CODES[tensor.dtype],
            "shape": tuple(tensor.shape),
            "data_offsets": (start, end),
        }
    text = msgspec.json.encode(entries)
    text += b" " * (-len(text) % 8)
    with written_whole(path) as part, part.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name in order:
            flat = tensors[name].detach().cpu().contiguous().reshape(-1)
            file.write(flat.view(torch.uint8).numpy().data)
