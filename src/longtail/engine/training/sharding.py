"""FSDP2: parameters, their gradients and the state of the optimiser, shared out over the processes.

A block is put together from all processes when it computes, and let go of after. Blocks are the
head and the members of sequences and lists in the backbone, however deep these are; smaller ones,
and what is outside of them, are put together at once, for all of the model. Buffers are not shared
out.

The modules of torch are imported when they are needed: the first takes a second.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn

from longtail.engine.training.model import Model
from longtail.engine.training.process_group import current_processes
from longtail.losses import EstimatedOffset, Loss

LEAST = 100_000  # parameters of a block: fewer are not worth a message of their own
_IN_LINE = (nn.Sequential, nn.ModuleList)


def check_sharding(model: Model, losses: tuple[Loss, ...]) -> None:
    """A ValueError that says what cannot be shared out."""
    if any(isinstance(loss, EstimatedOffset) for loss in losses):
        raise ValueError(
            "the loss EstimatedOffset looks at the weights of the head, of which a process has "
            'only a part with parallel="fsdp"; take parallel="ddp"'
        )
    # By the parts they belong to, the same one as often as it is used.
    named = list(model.named_parameters(remove_duplicate=False))
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
    found = [*_in_line(model.backbone), model.head]
    return [part for part in found if sum(p.numel() for p in part.parameters()) >= LEAST]


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


def _in_line(module: nn.Module) -> Iterator[nn.Module]:
    for part in module.children():
        if isinstance(module, _IN_LINE) and not isinstance(part, _IN_LINE):
            yield part
        else:
            yield from _in_line(part)
