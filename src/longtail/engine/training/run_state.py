"""How far a run is, and all that it takes to go on from there."""

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from platform import python_version
from typing import Annotated, Any, TypeAlias

import msgspec
import numpy as np
import torch
from torch import Generator, Tensor

from longtail.engine.training.learner import Learner
from longtail.engine.training.process_group import (
    current_processes,
    mean_over_processes,
    stacked_over_processes,
)
from longtail.engine.training.sharding import is_shard, read_shards, shared_out_like
from longtail.images.samplers import mixed_seed

Row: TypeAlias = dict[str, float | None]


class Shards(msgspec.Struct):
    """Where the tensors are that processes share, and what they are called."""

    folder: Annotated[str, msgspec.Meta(pattern=r"^epoch-\d+-step-\d+$")]
    names: list[str]


@dataclass
class RunState:
    """How far a run is."""

    epoch: int = 0  # how many are done
    step: int = 0  # how many of the epoch that is under way are done
    loss_sum: float = 0.0  # of those steps
    seconds: float = 0.0  # spent in them
    history: list[Row] = field(default_factory=list)  # a row for each epoch that is done


class StoredRun(msgspec.Struct):
    """What of state.json a run goes on from, in the types that it was written in."""

    task: dict[str, Any]
    epoch: Annotated[int, msgspec.Meta(ge=0)]
    step: Annotated[int, msgspec.Meta(ge=0)]
    loss_sum: float
    seconds: float
    history: list[dict[str, int | float | None]]  # whole numbers stay such
    scaler: dict[str, int | float]
    world_size: Annotated[int, msgspec.Meta(ge=1)]
    shards: Shards | None = None


def tensors_of(learner: Learner, generator: Generator) -> dict[str, Tensor]:
    """All tensors that a run goes on from. Every process must call it."""
    states: dict[str, Mapping[str, Tensor]] = {
        "model": learner.model.state_dict(),
        "loss": learner.loss.state_dict(),
        "average": {} if learner.average is None else learner.average.state_dict(),
    }
    tensors = {f"{name}.{key}": t for name, state in states.items() for key, t in state.items()}
    for index, parameter in enumerate(learner.trained):
        for key, value in learner.optimizer.state[parameter].items():
            if value is not None:
                tensors[f"optimizer.{index}.{key}"] = torch.as_tensor(value)
    for key, value in random_state(generator).items():
        tensors[f"random.{key}"] = stacked_over_processes(value, learner.device)
    return tensors


def values_of(learner: Learner, state: RunState) -> dict[str, Any]:
    """All else that a run goes on from, as JSON has it. Every process must call it."""
    return {
        **vars(state),
        "loss_sum": mean_over_processes(state.loss_sum, learner.device),
        "scaler": learner.scaler.state_dict(),
        "world_size": current_processes().world_size,
        "versions": {
            "longtail": version("longtail"),
            "torch": str(torch.__version__),
            "numpy": np.__version__,
            "python": python_version(),
        },
    }


def restore(
    tensors: Mapping[str, Tensor],
    stored: StoredRun,
    learner: Learner,
    generator: Generator,
    folder: Path,
) -> RunState:
    """Put everything back; where the run was. The task is known to be the same."""
    tensors = _shared_as(learner, tensors, stored.shards, folder)
    learner.model.load_state_dict(_part(tensors, "model"))
    learner.loss.load_state_dict(_part(tensors, "loss"))
    if learner.average is not None:
        learner.average.load_state_dict(_part(tensors, "average"))
    _restore_optimizer(learner, _part(tensors, "optimizer"))
    if stored.scaler:
        learner.scaler.load_state_dict(stored.scaler)
    rank = current_processes().rank
    if rank < stored.world_size:  # a process that is new keeps the seed it has
        drawn = {key: value[rank] for key, value in _part(tensors, "random").items()}
        set_random_state(generator, drawn)
    return RunState(**{name: getattr(stored, name) for name in vars(RunState())})


def _shared_as(
    learner: Learner, tensors: Mapping[str, Tensor], shards: Shards | None, folder: Path
) -> Mapping[str, Tensor]:
    """The tensors of a checkpoint, shared out or whole as those of the learner are."""
    if shards is not None:
        own = _counterparts(learner, shards.names)
        tensors = {**tensors, **read_shards(folder / shards.folder, own)}
    if not learner.sharded:
        return tensors
    return {**tensors} | {
        name: shared_out_like(tensors[name], own)
        for name, own in _counterparts(learner, tensors).items()
        if is_shard(own) and not is_shard(tensors[name]) and tensors[name].shape == own.shape
    }


def _counterparts(learner: Learner, names: Iterable[str]) -> dict[str, Tensor]:
    """What the learner has under these names; of what its optimiser will have, the parameters."""
    states = {"model": learner.model.state_dict()}
    if learner.average is not None:
        states["average"] = learner.average.state_dict()
    counterparts = {}
    for name in names:
        part, _, key = name.partition(".")
        if part == "optimizer":
            counterparts[name] = learner.trained[int(key.partition(".")[0])]
        elif part in states:
            counterparts[name] = states[part][key]
    return counterparts


def _restore_optimizer(learner: Learner, tensors: dict[str, Tensor]) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        index, _, key = name.partition(".")
        like = learner.trained[int(index)].detach()
        # Laid out in memory as the weights are: sums in another order may differ in the last bit.
        laid_out = torch.empty_like(like).copy_(value) if value.shape == like.shape else value
        state.setdefault(int(index), {})[key] = laid_out
    groups = learner.optimizer.state_dict()["param_groups"]
    learner.optimizer.load_state_dict({"state": state, "param_groups": groups})


def _part(tensors: Mapping[str, Tensor], name: str) -> dict[str, Tensor]:
    prefix = f"{name}."
    return {k.removeprefix(prefix): value for k, value in tensors.items() if k.startswith(prefix)}


def seed_of(seed: int, *numbers: int) -> int:
    """A seed for each choice of numbers: neighbouring ones must not share a stream."""
    for number in numbers:
        seed = mixed_seed(seed, number + 1)
    return seed


def random_state(generator: Generator) -> dict[str, Tensor]:
    """Of this generator, and of the global ones of torch, NumPy and Python."""
    _, words, gauss = random.getstate()
    legacy: Any = np.random.get_state()  # noqa: NPY002
    kind, keys, position, has_gauss, cached = legacy
    if kind != "MT19937":
        raise ValueError(f"NumPy's global generator must be an MT19937, got a {kind}")
    state = {
        "augment": generator.get_state(),
        "torch": torch.get_rng_state(),
        "python": torch.tensor(words),
        "python_gauss": _optional(gauss),
        "numpy": torch.tensor([*keys.tolist(), position]),
        "numpy_gauss": _optional(cached if has_gauss else None),
    }
    if torch.cuda.is_available():
        state["cuda"] = torch.cuda.get_rng_state()
    return state


def set_random_state(generator: Generator, state: dict[str, Tensor]) -> None:
    """Go on as when the state was taken."""
    # Copies, since torch reads a state from where its storage begins, which a row of many is not.
    generator.set_state(state["augment"].clone())
    torch.set_rng_state(state["torch"].clone())
    random.setstate((3, tuple(state["python"].tolist()), _value(state["python_gauss"])))
    *keys, position = state["numpy"].tolist()
    cached = _value(state["numpy_gauss"])
    words, has_gauss = np.array(keys, dtype=np.uint32), int(cached is not None)
    np.random.set_state(("MT19937", words, position, has_gauss, cached or 0.0))  # noqa: NPY002
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state(state["cuda"].clone())


def _optional(value: float | None) -> Tensor:
    return torch.tensor([value is not None, value or 0.0], dtype=torch.float64)


def _value(stored: Tensor) -> float | None:
    return stored[1].item() if stored[0] else None
