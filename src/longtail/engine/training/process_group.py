"""The processes of a run: opened from what torchrun says, or one process where it says nothing.

A worker that died is started again by torchrun, with all others, and meets a store that still holds
the addresses of the processes before it; to connect to those fails about every second time (pytorch
issue 135712). So the processes of one start first agree on a name that no other start has, and open
their group under it. torchrun counts restarts too, but each machine counts its own.
"""

import gc
import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch._C._distributed_c10d import PrefixStore, Store, TCPStore

from longtail.losses.processes import whole_batch

_PATIENCE = timedelta(minutes=10)


@dataclass(frozen=True)
class Processes:
    """Which of how many processes this is, and the device it computes on."""

    rank: int
    world_size: int
    device: torch.device

    @property
    def is_main(self) -> bool:
        """Whether this is the process that writes and speaks."""
        return self.rank == 0


@contextmanager
def processes() -> Iterator[Processes]:
    """Open the process group that torchrun asks for, and close it after; else there is one process.

    >>> with processes() as these:
    ...     these.world_size, these.is_main
    (1, True)
    """
    world_size = int(os.environ.get("WORLD_SIZE", "1"))
    if world_size == 1 or dist.is_initialized():
        yield current_processes()
        return
    rank, local = int(os.environ["RANK"]), int(os.environ.get("LOCAL_RANK", "0"))
    if torch.cuda.is_available():
        torch.cuda.set_device(local)
    # torchrun keeps the store itself; whoever sets the variables by hand leaves it to process 0.
    is_master = rank == 0 and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    store = TCPStore(address, port, world_size, is_master=is_master, timeout=_PATIENCE)
    name = agreed_name(store, rank, world_size)
    backend = "nccl" if torch.cuda.is_available() else "gloo"
    group = PrefixStore(f"start_{name}", store)
    dist.init_process_group(backend, store=group, rank=rank, world_size=world_size)
    try:
        yield current_processes()
    finally:
        close_group()


def close_group() -> None:
    """Close the process group, after everything that holds on to it is gone."""
    # If DDP is the last to hold it, Python waits with its lock held for a thread of gloo that may
    # be waiting for that lock, for ever (seen once in a few dozen runs).
    gc.collect()
    dist.destroy_process_group()


def current_processes() -> Processes:
    """Those of the group that is open; one if none is."""
    gpu = torch.cuda.is_available()
    device = torch.device("cuda", torch.cuda.current_device()) if gpu else torch.device("cpu")
    if not (dist.is_available() and dist.is_initialized()):
        return Processes(0, 1, device)
    return Processes(dist.get_rank(), dist.get_world_size(), device)


def mean_over_processes(value: float, device: torch.device) -> float:
    """The mean of what all processes have."""
    if current_processes().world_size == 1:
        return value
    total = torch.tensor(value, dtype=torch.float64, device=device)
    dist.all_reduce(total)
    return total.item() / dist.get_world_size()


def stacked_over_processes(value: Tensor, device: torch.device) -> Tensor:
    """The tensors of all processes, which have one shape, along a new first axis; on the CPU."""
    return whole_batch(value[None].to(device))[0].cpu()


def agree_on_buffers(model: nn.Module) -> None:
    """All processes take the buffers of the first, such as batch-norm statistics."""
    if current_processes().world_size == 1:
        return
    buffers = list(model.buffers())
    for dtype in dict.fromkeys(buffer.dtype for buffer in buffers):
        # One message for all of them.
        alike = [buffer for buffer in buffers if buffer.dtype == dtype]
        sizes = [buffer.numel() for buffer in alike]
        sent = torch.cat([buffer.flatten() for buffer in alike])
        dist.broadcast(sent, src=0)
        for buffer, part in zip(alike, torch.split(sent, sizes), strict=True):
            buffer.copy_(part.view_as(buffer))


def agreed_name(store: Store, rank: int, world_size: int) -> str:
    """The same new name on all processes of this start, whatever older ones left in the store."""
    # Each says hello with a token of its own, and process 0 answers each token with the name, until
    # all have said that they know it: a hello it finds may be that of a dead process.
    if rank:
        token = uuid.uuid4().hex
        store.set(f"hello_{rank}", token)
        answer: str = store.get(f"answer_{token}").decode()
        store.set(f"known_{answer}_{rank}", "yes")
        return answer
    name = uuid.uuid4().hex
    waiting = set(range(1, world_size))
    until = time.monotonic() + _PATIENCE.total_seconds()
    while waiting:
        for other in waiting:
            if store.check([f"hello_{other}"]):
                store.set(f"answer_{store.get(f'hello_{other}').decode()}", name)
        waiting = {other for other in waiting if not store.check([f"known_{name}_{other}"])}
        if time.monotonic() > until:
            raise TimeoutError(
                f"expected {world_size} processes, but {sorted(waiting)} did not come within "
                f"{_PATIENCE}; did torchrun start them?"
            )
        time.sleep(0.01)
    return name
