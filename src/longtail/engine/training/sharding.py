"""FSDP2: parameters, their gradients and the state of the optimiser, shared out over the processes.

A block is put together from all processes when it computes, and let go of after. Blocks are the
head and the members of sequences and lists in the backbone, however deep these are; smaller ones,
and what is outside of them, are put together at once, for all of the model. Buffers are not shared
out. The modules of torch are imported when they are needed: the first takes a second.

On disk they are files of torch.distributed.checkpoint, as safetensors: each process writes its own
parts to one file of a folder, whose name is new, so that nothing is written over. Read by another
number of processes, or by one, they are cut anew. No pickle.
"""

import shutil
import warnings
from collections.abc import Iterator, Mapping
from inspect import signature
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from longtail.engine.training.checkpoint import not_written, sync_folder
from longtail.engine.training.model import Model
from longtail.engine.training.process_group import current_processes
from longtail.losses import EstimatedOffset, Loss

LEAST = 100_000  # parameters of a block: fewer are not worth a message of their own
_IN_LINE = (nn.Sequential, nn.ModuleList)


def check_sharding(model: Model, losses: tuple[Loss, ...]) -> None:
    """A ValueError that says what cannot be shared out."""
    if any(isinstance(part, EstimatedOffset) for loss in losses for part in loss.modules()):
        raise ValueError(
            "the loss EstimatedOffset looks at the weights of the head, of which a process has "
            'only a part with parallel="fsdp"; take parallel="ddp"'
        )
    named = list(model.named_parameters(remove_duplicate=False))  # by the parts that use them
    single = [name for name, parameter in named if not parameter.dim()]
    if single:
        raise ValueError(
            f"{', '.join(single)}: a single number, which FSDP does not share out; take "
            'parallel="ddp", or make it a tensor of one number'
        )
    if len(named) != len(list(model.parameters())):
        raise ValueError(
            "parts of the model share parameters, which FSDP would share out twice; take "
            'parallel="ddp"'
        )


def shard(model: Model) -> None:
    """Share out the parameters of a model, in place. It cannot be undone, nor copied after."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    device = next(model.parameters()).device
    mesh = init_device_mesh(device.type, (current_processes().world_size,))
    for part in (*blocks(model), model):
        # True: torch would keep the last part whole, and a look at its weights find no shards.
        fully_shard(part, mesh=mesh, reshard_after_forward=True)


def blocks(model: Model) -> list[nn.Module]:
    """The parts of a model that are put together one by one."""
    parts = [*_in_line(model.backbone), model.head]
    return [part for part in parts if sum(p.numel() for p in part.parameters()) >= LEAST]


def _in_line(module: nn.Module) -> Iterator[nn.Module]:
    for part in module.children():
        if isinstance(module, _IN_LINE) and not isinstance(part, _IN_LINE):
            yield part
        else:
            yield from _in_line(part)


def gather(sharded: nn.Module, into: nn.Module) -> None:
    """Write the weights of a model that is shared out to one that is not. All must call it."""
    state: dict[str, Any] = sharded.state_dict()
    into.load_state_dict(
        {key: value.full_tensor() if is_shard(value) else value for key, value in state.items()}
    )


def is_shard(tensor: Tensor) -> bool:
    """Whether this process has only a part of it."""
    from torch.distributed.tensor import DTensor

    return isinstance(tensor, DTensor)


def shared_out_like(whole: Tensor, like: Any) -> Tensor:
    """This process's part of a tensor that all processes have, cut as the other one is."""
    from torch.distributed.tensor import distribute_tensor

    placed = whole.to(like.device)
    part: Tensor = distribute_tensor(placed, like.device_mesh, like.placements, src_data_rank=None)
    return part


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
    """Write them to a new folder, or remove it and raise an OSError. Every process must call it."""
    from torch.distributed.checkpoint.api import CheckpointException
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageWriter
    from torch.distributed.checkpoint.state_dict_saver import save

    shard_folder, is_main = folder / name, current_processes().is_main
    try:
        # It waits for all processes, and tells all of them who failed; files are on the disk.
        save(
            {key: tensor.detach() for key, tensor in tensors.items()},
            storage_writer=HuggingFaceStorageWriter(str(shard_folder), save_distributed=True),
        )
        if is_main:
            sync_folder(shard_folder)
    except CheckpointException as failed:
        if is_main:
            shutil.rmtree(shard_folder, ignore_errors=True)
        for error, _ in failed.failures.values():
            if isinstance(error, OSError):
                raise not_written(folder, name, error) from error
        raise
    except OSError as error:
        raise not_written(folder, name, error) from error


def read_shards(folder: Path, like: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """What was written there: whole, or cut as those in `like` are. All must call it."""
    from torch.distributed.checkpoint.api import CheckpointException
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader
    from torch.distributed.checkpoint.state_dict_loader import load

    tensors = {key: torch.empty_like(tensor.detach()) for key, tensor in like.items()}
    try:
        with warnings.catch_warnings():
            # One process may read what several wrote, which torch warns of.
            warnings.filterwarnings("ignore", "torch.distributed is disabled", UserWarning)
            load(tensors, storage_reader=HuggingFaceStorageReader(str(folder)))
    except (CheckpointException, OSError, SafetensorError, ValueError, RuntimeError) as error:
        # In one line: what torch says of several processes has their tracebacks in it.
        reason = next((failed for failed, _ in getattr(error, "failures", {}).values()), error)
        raise ValueError(f"the tensors in {folder} are missing or damaged: {reason}") from error
    return tensors
