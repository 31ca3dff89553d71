"""A checkpoint on disk: tensors in a safetensors file, the rest in state.json. No pickle.

The tensors are written first, under a name of their own, then state.json, which names them, takes
the place of the one before in one go. Only then the tensors of the one before are removed: whenever
a run dies, the folder holds one checkpoint that is complete. All is on the disk before it counts.

Tensors that processes share are in a folder beside them, written before all else (shard_files.py);
state.json names it as "shards".
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from longtail.core.files import written_whole

_VERSION = 1
_STATE = "state.json"


class Checkpoint(NamedTuple):
    """What a folder holds: tensors by name, and plain values."""

    tensors: dict[str, Tensor]
    state: dict[str, Any]


def write_checkpoint(
    folder: Path, name: str, tensors: Mapping[str, Tensor], state: Mapping[str, Any]
) -> None:
    """Replace the checkpoint in the folder, or leave it as it was and raise an OSError."""
    kept = {key: tensor.detach().cpu().contiguous().clone() for key, tensor in tensors.items()}
    file = f"{name}.safetensors"
    text = msgspec.json.encode({"version": _VERSION, "tensors": file, **state})
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / file, save(kept))
        _write(folder / _STATE, msgspec.json.format(text, indent=1))
    except OSError as error:
        raise not_written(folder, name, error) from error
    sweep(folder)


def not_written(folder: Path, name: str, error: OSError) -> OSError:
    """What to say of a checkpoint that could not be written."""
    what = "the one before is intact" if (folder / _STATE).exists() else "there is none yet"
    return OSError(
        error.errno,
        f"the checkpoint {name} could not be written ({error.strerror or error}); {what}: make "
        "room and start again, and the run goes on from there",
        str(folder),
    )


def read_checkpoint(folder: Path) -> Checkpoint | None:
    """What `write_checkpoint` wrote last; None if it wrote nothing."""
    path = folder / _STATE
    if not path.exists():
        return None
    try:
        state = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
        version, file = state.pop("version"), state.pop("tensors")
    except (ValueError, KeyError, RecursionError) as error:
        raise ValueError(
            f"{path} is no checkpoint of longtail ({error}); remove {folder} to begin anew"
        ) from error
    if version != _VERSION:
        raise ValueError(
            f"{path} is of version {version} of the checkpoint format, this longtail reads "
            f"version {_VERSION}; use the longtail that wrote it, or remove {folder}"
        )
    try:
        return Checkpoint(load_file(folder / file), state)
    except (FileNotFoundError, SafetensorError) as error:
        raise ValueError(
            f"the tensors of the checkpoint, {folder / file}, are missing or damaged ({error}); "
            f"put a copy in their place, or remove {folder} to begin anew"
        ) from error


def sweep(folder: Path) -> None:
    """Remove what state.json does not name: older tensors, and what a run left when it died."""
    if not (folder / _STATE).exists():
        shutil.rmtree(folder, ignore_errors=True)
        return
    state = msgspec.json.decode((folder / _STATE).read_bytes(), type=dict[str, Any])
    kept = (_STATE, state["tensors"], state.get("shards", {}).get("folder"))
    for path in folder.iterdir():
        if path.name in kept:
            continue
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """New names in it are on the disk after."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write(path: Path, data: bytes) -> None:
    with written_whole(path) as part, part.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(path.parent)
