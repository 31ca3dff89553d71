"""Scores in .safetensors files: those of `Scores.save`, and others with named tensors."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from torch import Tensor

from longtail.core import Prior
from longtail.core.scores_file import decode_header
from longtail.data.files.errors import reading
from longtail.data.files.label_codes import LabelCodes
from longtail.data.score_tables.contents import (
    LABEL_NAMES,
    Contents,
    Kind,
    Layout,
    Matrix,
    check_shape,
    floating,
    optional_name,
    scores_name,
)


def read_safetensors(path: Path, kind: Kind, layout: Layout) -> Contents:
    """Named tensors: the scores, and where they are there labels, counts and what is carried."""
    with _opened(path) as file:
        names = list(file.keys())
        said = (file.metadata() or {}).get("longtail")
    chosen = scores_name(names, kind, layout.scores, path)
    labels = optional_name(names, LABEL_NAMES, layout.labels, path)
    with _opened(path) as file:
        stored = file.get_slice(chosen).get_shape()
    shape = check_shape(stored, path)
    with _opened(path) as file:
        first = _as_numpy(file.get_slice(chosen)[:1])
        wanted = {labels, "counts", "carried", "carried_counts"}
        small = {name: file.get_tensor(name) for name in names if name in wanted}
    header = None if said is None else decode_header(said, path)
    # Of a foreign file nobody knows what it means by a tensor of that name.
    log = small.get("carried") if header else None
    with reading(path, "scores that longtail wrote"):
        carried = None if log is None else Prior(log, small.get("carried_counts"))

    def read(rows: int) -> Iterator[Matrix]:
        for start in range(0, shape[0], rows):
            # Opened anew: what was read through a memory map stays while it is open.
            with _opened(path) as file:
                block = file.get_slice(chosen)[start : start + rows].clone()
            yield _as_numpy(block)

    return Contents(
        shape,
        floating(first.dtype, path),
        read,
        labels=_labels(small.get(labels or ""), f"{labels!r} of {path}"),
        classes=header.classes if header else None,
        counts=small["counts"].numpy() if "counts" in small else None,
        carried=carried,
        split=header.split if header else None,
        array=chosen,
        by_longtail=header is not None,
    )


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Opening checks the header, and that the file is as long as it says."""
    with reading(path, "a safetensors file"), safe_open(path, framework="pt") as file:
        yield file


def _as_numpy(tensor: Tensor) -> Any:
    """As NumPy, which has no bfloat16; float32 holds all of its numbers."""
    return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()


def _labels(stored: Tensor | None, where: str) -> LabelCodes | None:
    return None if stored is None else LabelCodes.of_array(np.asarray(stored.numpy()), where)
