"""A head in one safetensors file: its weights, what it carries, and what made it. No pickle."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from safetensors import SafetensorError, safe_open
from torch import Tensor

import longtail.heads as heads
from longtail.core import Prior
from longtail.core.tensor_file import save_tensors
from longtail.data.tables.errors import reading
from longtail.heads import Head

_KEY, _VERSION = "longtail_head", 1


class HeadHeader(msgspec.Struct):
    """What the JSON header says."""

    version: int
    head: str
    made_with: dict[str, Any]
    about: dict[str, Any]


class StoredHead(NamedTuple):
    """A head, and what was said about it when it was saved."""

    head: Head
    about: dict[str, Any]


def save_head(
    head: Head, path: str | os.PathLike[str], about: Mapping[str, Any] | None = None
) -> None:
    """Write a head of `longtail.heads`.

    Args:
        head: What it carries is written with it.
        path: A .safetensors file.
        about: Anything that can be JSON: class names, counts, the command.

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
    header = HeadHeader(
        _VERSION, name, {k: _plain(v) for k, v in head.made_with.items()}, dict(about or {})
    )
    save_tensors(path, head.state_dict(), {_KEY: msgspec.json.encode(header).decode()})


def load_head(path: str | os.PathLike[str]) -> StoredHead:
    """Read what `save_head` wrote, in evaluation mode."""
    if not os.path.isfile(path):
        raise FileNotFoundError(f"there is no file {os.fspath(path)} to load a head from")
    try:
        opened = safe_open(path, "pt")
    except SafetensorError as error:
        raise ValueError(f"{os.fspath(path)} is no whole safetensors file ({error})") from error
    with opened as file:
        text = (file.metadata() or {}).get(_KEY)
        if text is None:
            raise ValueError(f"{os.fspath(path)} holds no head of longtail; save one by save_head")
        with reading(Path(path), "a head of longtail"):
            header = msgspec.json.decode(text, type=HeadHeader)
        if header.version != _VERSION:
            raise ValueError(
                f"{os.fspath(path)} is of version {header.version} of the head format, this "
                f"longtail reads version {_VERSION}; use the longtail that wrote it, or a newer one"
            )
        state = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    made = getattr(heads, header.head, None)
    if not (isinstance(made, type) and issubclass(made, Head)):
        raise ValueError(f"{os.fspath(path)} is of a head {header.head!r} that is not known here")
    with reading(Path(path), "a head of longtail"):
        head: Head = made(**header.made_with)
        example = state.get("weight", state.get("centers"))
        if isinstance(example, Tensor):
            head = head.to(example.dtype)
        head.load_state_dict(state)
    return StoredHead(head.train(False), header.about)


def _plain(value: Any) -> Any:
    """A constructor's argument as JSON knows it; buffers keep what is exact."""
    if isinstance(value, Prior):
        return (value.probs if value.counts is None else value.counts).tolist()
    return value.tolist() if hasattr(value, "tolist") else value
