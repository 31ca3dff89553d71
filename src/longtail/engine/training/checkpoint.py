"""A checkpoint on disk, and the task it must agree with for a run to resume from it.

Tensors are in a safetensors file, the rest is in state.json. No pickle.

The tensors are written first, under a name of their own, then state.json, which names them, takes
the place of the one before in one go. Only then the tensors of the one before are removed: whenever
a run dies, the folder holds one checkpoint that is complete. All is on the disk before it counts.

Tensors that processes share are in a folder beside them, written before all else (sharding.py);
state.json names it as "shards".
"""

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import msgspec
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import OutOfMemoryError, Tensor, nn

from longtail.core.files import read_whole, written_whole
from longtail.core.nested import differences, flat
from longtail.engine.training.model import Model
from longtail.engine.training.options import TrainingOptions
from longtail.images import ClassSampler, LabelledImages

_VERSION = 1
STATE = "state.json"
# All that is ever written, half-written files among it, and so all that is ever removed.
_OWN = re.compile(r"(state\.json|epoch-\d+-step-\d+(\.safetensors)?)(\.[0-9a-f]{8}\.part)?")
_DAMAGE = (ValueError, LookupError, TypeError, AttributeError, RuntimeError, SafetensorError)
_FREE = ("num_workers", "compile", "parallel")  # may change from one start to the next
_OF_THIS_PROCESS = ("training", "num_replicas", "rank")
_PLAIN = (bool, int, float, str, type(None))
# What checkpoints did that are older than the option.
_WITHOUT: dict[str, Any] = {"label_smoothing": 0.0, "terms": []}


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
        _write(folder / STATE, msgspec.json.format(text, indent=1))
    except OSError as error:
        raise not_written(folder, name, error) from error
    sweep(folder)


def not_written(folder: Path, name: str, error: OSError) -> OSError:
    """What to say of a checkpoint that could not be written."""
    what = "the one before is intact" if (folder / STATE).exists() else "there is none yet"
    return OSError(
        error.errno,
        f"the checkpoint {name} could not be written ({error.strerror or error}); {what}: make "
        "room and start again, and the run goes on from there",
        str(folder),
    )


def read_checkpoint(folder: Path) -> Checkpoint | None:
    """What `write_checkpoint` wrote last; None if it wrote nothing."""
    if folder.is_symlink():
        raise ValueError(
            f"{folder} is a link, and the checkpoint in it would be removed where that leads to; "
            "move the folder here"
        )
    path = folder / STATE
    if not os.path.lexists(path):
        others = [name for name in _names_in(folder) if not _OWN.fullmatch(name)]
        if others:
            raise ValueError(
                f"{folder / others[0]} was not written by longtail, which keeps its checkpoint "
                "there; give another run folder, or move that file"
            )
        return None
    with undamaged(path, folder):
        state = msgspec.json.decode(read_whole(path), type=dict[str, Any])
        version, file = state.pop("version"), str(state.pop("tensors"))
    if version != _VERSION:
        raise ValueError(
            f"{path} is of version {version} of the checkpoint format, this longtail reads "
            f"version {_VERSION}; use the longtail that wrote it, or remove {folder}"
        )
    with undamaged(folder / file, folder):
        if not _OWN.fullmatch(file) or not (folder / file).is_file():
            raise ValueError("there is no such file")
        return Checkpoint(load_file(folder / file), state)


@contextmanager
def undamaged(path: Path, folder: Path) -> Iterator[None]:
    """Whatever goes wrong with a file of a checkpoint becomes a ValueError that says what to do."""
    try:
        yield
    except OutOfMemoryError:
        raise
    except _DAMAGE as error:
        reason = f"there is no {error}" if isinstance(error, KeyError) else error
        raise ValueError(
            f"{path} is no checkpoint of longtail, or damaged ({reason}); put a copy in its place, "
            f"or remove {folder} to begin anew"
        ) from error


def sweep(folder: Path) -> None:
    """Remove older tensors, and what a run left when it died: of its names what is not in use."""
    path, kept = folder / STATE, {STATE}
    if path.exists():
        state = msgspec.json.decode(read_whole(path), type=dict[str, Any])
        kept |= {state["tensors"], state.get("shards", {}).get("folder")}
    for name in _names_in(folder):
        left = folder / name
        if name in kept or not _OWN.fullmatch(name) or left.is_symlink():
            continue
        if left.is_dir():
            shutil.rmtree(left, ignore_errors=True)
        else:
            left.unlink(missing_ok=True)


def _names_in(folder: Path) -> list[str]:
    return os.listdir(folder) if folder.is_dir() else []


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


def task_of(
    model: Model,
    images: LabelledImages,
    sampler: ClassSampler,
    loss: nn.Module,
    options: TrainingOptions,
    augment: object,
    normalize: object,
    recipe: Mapping[str, Any],
    steps: int,
) -> dict[str, Any]:
    """The task as JSON has it; called before anything has learned or moved on."""
    settings = {field.name: _named(getattr(options, field.name)) for field in fields(options)}
    parameters = sum(p.numel() for p in model.parameters())
    task = {
        "options": {key: value for key, value in settings.items() if key not in _FREE},
        "model": f"{_kind(model.backbone)} and {_kind(model.head)}, {parameters} parameters",
        **data_in_task(images, normalize),
        "loss": {
            "kind": _kind(loss),
            "constants": _sum(*loss.state_dict().values()),
            "settings": {
                f"{name}.{key}".lstrip("."): setting
                for name, part in loss.named_modules()
                for key, setting in _settings(part).items()
            },
        },
        "sampler": {"kind": _kind(sampler), **_settings(sampler)},
        "steps": steps,
        "augment": _named(augment),
        "recipe": dict(recipe),
    }
    try:
        # There and back, so that what a file says of it later is the same.
        return msgspec.json.decode(msgspec.json.encode(task), type=dict[str, Any])
    except TypeError as error:
        raise ValueError(f"a recipe must be what JSON can hold, got {recipe}: {error}") from error


def data_in_task(images: LabelledImages, normalize: object) -> dict[str, Any]:
    """What a task says of the training images."""
    labels = f"{len(images)} of {images.num_classes} classes, {_sum(images.labels)}"
    return {"images": {"labels": labels, **_settings(images)}, "normalize": _named(normalize)}


def check_stored(folder: Path, now: Mapping[str, Any]) -> None:
    """As `check_task`, of what is known of a task without building all that is trained."""
    with undamaged(folder / STATE, folder):
        task = msgspec.json.decode(read_whole(folder / STATE), type=dict[str, Any])["task"]
        stored = {key: task[key] for key in now}
    check_task(stored, msgspec.json.decode(msgspec.json.encode(now)), folder)


def check_task(stored: Mapping[str, Any], now: Mapping[str, Any], folder: object) -> None:
    """A ValueError that names what differs, if anything does."""
    before, after = flat(stored), flat(now)
    for key in after.keys() - before.keys():
        before[key] = _WITHOUT.get(key.rpartition(".")[2])
    differing = differences(before, after)
    if differing:
        lines = [f"  {key}: it was {old!r}, now {new!r}" for key, (old, new) in differing.items()]
        raise ValueError(
            f"the checkpoint in {folder} is of another task:\n" + "\n".join(lines[:10]) + "\n"
            "remove the folder to begin anew, or give another one"
        )


def _named(value: object) -> Any:
    """Plain values as they are, frozen values by what they print, others by their type."""
    if isinstance(value, _PLAIN):
        return value
    return repr(value) if is_dataclass(value) else getattr(value, "__qualname__", _kind(value))


def _settings(value: object) -> dict[str, Any]:
    """Its public attributes that are plain: what it was made with."""
    return {
        name: setting
        for name, setting in vars(value).items()
        if isinstance(setting, _PLAIN) and not name.startswith("_") and name not in _OF_THIS_PROCESS
    }


def _kind(value: object) -> str:
    return type(value).__name__


def _sum(*tensors: Tensor) -> str:
    total = 0
    for tensor in tensors:
        total = crc32(tensor.detach().cpu().contiguous().numpy().tobytes(), total)
    return f"{total:08x}"
