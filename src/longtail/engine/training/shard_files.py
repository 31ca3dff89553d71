"""The tensors that processes share, on disk: torch.distributed.checkpoint, as safetensors files.

Each process writes its own parts to one file of a folder; the name of the folder is new, so that
nothing is written over. Read by another number of processes, or by one, they are cut anew. No
pickle.
"""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Mapping
from inspect import signature
from pathlib import Path

import torch
from safetensors import SafetensorError
from torch import Tensor

from longtail.engine.training.checkpoint_folder import not_written, sync_folder
from longtail.engine.training.process_group import current_processes


def check_torch() -> None:
    """A ValueError if this torch does not write such files."""
    try:
        from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageWriter

        writes = "save_distributed" in signature(HuggingFaceStorageWriter).parameters
    except ImportError:
        writes = False
    if not writes:
        raise ValueError(
            f"torch {torch.__version__} does not write parts of tensors as safetensors, which "
            'parallel="fsdp" needs; take a newer torch, or parallel="ddp"'
        )


def write_shards(folder: Path, name: str, tensors: Mapping[str, Tensor]) -> None:
    """Write them to a new folder in this one, or remove it and raise an OSError on all processes.

    Every process must call it.

    Args:
        folder: That of the checkpoint; made if it is not there.
        name: Of the new one.
        tensors: All shared out.
    """
    from torch.distributed.checkpoint.api import CheckpointException
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageWriter
    from torch.distributed.checkpoint.state_dict_saver import save

    place, is_main = folder / name, current_processes().is_main
    try:
        # It waits for all processes, and tells all of them who failed; files are on the disk.
        save(
            {key: tensor.detach() for key, tensor in tensors.items()},
            storage_writer=HuggingFaceStorageWriter(str(place), save_distributed=True),
        )
        if is_main:
            sync_folder(place)
    except CheckpointException as failed:
        if is_main:
            shutil.rmtree(place, ignore_errors=True)
        for error, _ in failed.failures.values():
            if isinstance(error, OSError):
                raise not_written(folder, name, error) from error
        raise
    except OSError as error:
        raise not_written(folder, name, error) from error


def read_shards(place: Path, like: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """What was written there: whole, or cut as those are that it is to be like.

    Every process must call it.

    Args:
        place: The folder.
        like: By their names.
    """
    from torch.distributed.checkpoint.api import CheckpointException
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader
    from torch.distributed.checkpoint.state_dict_loader import load

    tensors = {key: torch.empty_like(tensor.detach()) for key, tensor in like.items()}
    try:
        with warnings.catch_warnings():
            # One process may read what several wrote, which torch warns of.
            warnings.filterwarnings("ignore", "torch.distributed is disabled", UserWarning)
            load(tensors, storage_reader=HuggingFaceStorageReader(str(place)))
    except (CheckpointException, OSError, SafetensorError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"the tensors of the checkpoint in {place} are missing or damaged ({_reason(error)}); "
            f"put a copy in their place, or remove {place.parent} to begin anew"
        ) from error
    return tensors


def _reason(error: BaseException) -> str:
    """In one line; what torch says of several processes has their tracebacks in it."""
    failures = getattr(error, "failures", {})
    return str(next((failure for failure, _ in failures.values()), error))
