"""A head, or a fit that is under way, in one safetensors file with a JSON header. No pickle."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from safetensors import SafetensorError, safe_open
from torch import Tensor

import longtail.heads as heads
from longtail.core import Prior
from longtail.core.tensor_file import Format, Versioned, decode_header, save_tensors
from longtail.data.tables.errors import reading
from longtail.heads import Head

_HEAD, _FIT = "longtail_head", "longtail_fit"
_FORMAT = Format("head", "longtail.engine.save_head")


class HeadHeader(Versioned):
    """What the JSON header says of a head."""

    head: str
    made_with: dict[str, Any]
    about: dict[str, Any]


class StoredHead(NamedTuple):
    """A head, and what was said about it when it was saved."""

    head: Head
    about: dict[str, Any]


class FitState(msgspec.Struct):
    """What is not a tensor: `task` says of which fit this is the state."""

    task: str
    epoch: int
    best_error: float | None  # None: there is none yet
    since_best: int


def save_head(
    head: Head, path: str | os.PathLike[str], about: Mapping[str, Any] | None = None
) -> None:
    """Write a head of `longtail.heads`, what it carries, and anything about it that can be JSON.

    >>> import tempfile, pathlib, longtail as lt
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_head(lt.heads.Cosine(4, 3, scale=8.0), pathlib.Path(folder) / "head.safetensors")
    ...     load_head(pathlib.Path(folder) / "head.safetensors").head
    Cosine(dim=4, num_classes=3, carried=None)
    """
    name = type(head).__name__
    if getattr(heads, name, None) is not type(head):
        raise ValueError(
            f"only heads of longtail.heads can be loaded again by name, got {name}; "
            "save its state_dict instead"
        )
    made_with = {key: _plain(value) for key, value in head.made_with.items()}
    header = HeadHeader(_FORMAT.versions[-1], name, made_with, dict(about or {}))
    save_tensors(path, head.state_dict(), {_HEAD: msgspec.json.encode(header).decode()})


def load_head(path: str | os.PathLike[str]) -> StoredHead:
    """Read what `save_head` wrote, in evaluation mode."""
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"there is no file {file} to load a head from")
    text, state = read_state(file, _HEAD, f"save one by {_FORMAT.made_by}")
    header = decode_header(text, HeadHeader, file, _FORMAT)
    made = getattr(heads, header.head, None)
    if not (isinstance(made, type) and issubclass(made, Head)):
        raise ValueError(f"{file} is of a head {header.head!r} that is not known here")
    with reading(file, "a head of longtail"):
        head: Head = made(**header.made_with)
        example = state.get("weight", state.get("centers"))
        if isinstance(example, Tensor):
            head = head.to(example.dtype)
        head.load_state_dict(state)
    return StoredHead(head.train(False), header.about)


def save_checkpoint(
    path: str | os.PathLike[str], states: Mapping[str, Mapping[str, Tensor]], fit_state: FitState
) -> None:
    """Write the tensors of several states, each under its name."""
    tensors = {f"{name}.{key}": t for name, state in states.items() for key, t in state.items()}
    save_tensors(path, tensors, {_FIT: msgspec.json.encode(fit_state).decode()})


def load_checkpoint(
    path: str | os.PathLike[str], task: str
) -> tuple[dict[str, dict[str, Tensor]], FitState] | None:
    """What `save_checkpoint` wrote, None if there is no file, an error if it is of another fit."""
    file = Path(path)
    if not os.path.lexists(file):
        return None
    remedy = "remove it to begin anew, or give another name"
    if not file.is_file():
        raise ValueError(f"{file} is no plain file; {remedy}")
    text, tensors = read_state(file, _FIT, remedy)
    if text is None:
        raise ValueError(f"{file} holds no checkpoint of fit_head; {remedy}")
    with reading(file, "a checkpoint of fit_head"):
        fit_state = msgspec.json.decode(text, type=FitState)
    if fit_state.task != task:
        raise ValueError(
            f"the checkpoint {file} is of another fit: it was for\n  {fit_state.task}\n"
            f"and this is\n  {task}\n{remedy}"
        )
    states: dict[str, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        state, _, key = name.partition(".")
        states.setdefault(state, {})[key] = tensor
    return states, fit_state


def read_state(path: Path, key: str, remedy: str) -> tuple[str | None, dict[str, Tensor]]:
    """The header under `key`, if there is one, and the tensors of a safetensors file."""
    try:
        opened = safe_open(path, "pt")
    except SafetensorError as error:
        raise ValueError(f"{path} is damaged or no safetensors file ({error}); {remedy}") from error
    with opened as file:
        text = (file.metadata() or {}).get(key)
        return text, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


def _plain(value: Any) -> Any:
    """A constructor's argument as JSON knows it; buffers keep what is exact."""
    if isinstance(value, Prior):
        return (value.probs if value.counts is None else value.counts).tolist()
    return value.tolist() if hasattr(value, "tolist") else value
