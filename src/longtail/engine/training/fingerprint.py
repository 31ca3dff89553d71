"""What a checkpoint must agree with to be gone on from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any
from zlib import crc32

import msgspec
from torch import Tensor, nn

from longtail.core.nested import differences, flat
from longtail.engine.training.model import Model
from longtail.engine.training.options import TrainingOptions
from longtail.images import ClassSampler, LabelledImages

_FREE = ("num_workers", "compile", "parallel")  # may change from one start to the next
_OF_THIS_PROCESS = ("training", "num_replicas", "rank")


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
        "images": {
            "labels": f"{len(images)} of {images.num_classes} classes, {_sum(images.labels)}",
            **_settings(images),
        },
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
        "normalize": _named(normalize),
        "recipe": dict(recipe),
    }
    try:
        # There and back, so that what a file says of it later is the same.
        return msgspec.json.decode(msgspec.json.encode(task), type=dict[str, Any])
    except TypeError as error:
        raise ValueError(f"a recipe must be what JSON can hold, got {recipe}: {error}") from error


_WITHOUT = {"label_smoothing": 0.0}


def check_task(stored: Mapping[str, Any], now: Mapping[str, Any], folder: object) -> None:
    """A ValueError that names what differs, if anything does."""
    before, after = flat(stored), flat(now)
    # A checkpoint that was written before there was such an option did without it.
    before |= {
        key: _WITHOUT[name]
        for key in after.keys() - before.keys()
        if (name := key.rpartition(".")[2]) in _WITHOUT
    }
    differing = differences(before, after)
    if differing:
        lines = [f"  {key}: it was {old!r}, now {new!r}" for key, (old, new) in differing.items()]
        raise ValueError(
            f"the checkpoint in {folder} is of another task:\n" + "\n".join(lines[:10]) + "\n"
            "remove the folder to begin anew, or give another one"
        )


def _named(value: object) -> Any:
    """Plain values as they are, frozen values by what they print, others by their type."""
    if _is_plain(value):
        return value
    return repr(value) if is_dataclass(value) else getattr(value, "__qualname__", _kind(value))


def _settings(value: object) -> dict[str, Any]:
    """Its public attributes that are plain: what it was made with."""
    return {
        name: setting
        for name, setting in vars(value).items()
        if _is_plain(setting) and not name.startswith("_") and name not in _OF_THIS_PROCESS
    }


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, (bool, int, float, str))


def _kind(value: object) -> str:
    return type(value).__name__


def _sum(*tensors: Tensor) -> str:
    total = 0
    for tensor in tensors:
        total = crc32(tensor.detach().cpu().contiguous().numpy().tobytes(), total)
    return f"{total:08x}"
