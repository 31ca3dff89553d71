"""Files of runs: whose they say they are, and their numbers, checked as they are read."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import msgspec
import numpy as np

from longtail.core import Scores
from longtail.core.arrays import as_numpy
from longtail.core.files import read_whole
from longtail.core.tensor_file import map_tensor_file, open_tensor_file, save_tensors
from longtail.data.tables.errors import reading
from longtail.flows.file_names import MODEL

_SIGNS = ("run", "model")  # the name of the run, the digest of the model
_Row: TypeAlias = list[float | None]
_Trials: TypeAlias = dict[str, Annotated[list[float], msgspec.Meta(min_length=1)]]
# By the bars in its key: a measure of a model, the trials of a drawn problem's "HEAD|VARIANT",
# what is measured of a fitted method's "HEAD|VARIANT|TEST".
_KINDS: tuple[Any, ...] = (float | list[float | _Row | None] | None, _Trials, dict[str, float])


def sign(file: Path, whose: Mapping[str, str]) -> None:
    """Write into a file of tensors whose it is."""
    metadata, tensors = map_tensor_file(file)
    save_tensors(
        file, {name: np.array(each) for name, each in tensors.items()}, {**metadata, **whose}
    )


def check_signed(file: Path, whose: Mapping[str, str], must: bool = False) -> None:
    """A ValueError if a file says that it is another's, or says nothing where it must."""
    said = _json(file) if file.suffix == ".json" else open_tensor_file(file)[0]
    for key, expected in whose.items():
        found = said.get(key, "" if must else expected)
        if found != expected:
            raise ValueError(
                f"{file} is not of the {key} {expected} but of {found or 'none'}; move it away"
            )


def model_of(folder: Path) -> dict[str, str]:
    """What is made from the model of a run is signed with; nothing if it has none."""
    if not (folder / MODEL).is_file():
        return {}
    with (folder / MODEL).open("rb") as file:
        return {"model": hashlib.file_digest(file, "sha256").hexdigest()}


def read_numbers(file: Path) -> dict[str, Any]:
    """The numbers of a run, without whose they are."""
    stored = _json(file)
    with reading(file, "numbers of a run"):
        numbers = {
            key: msgspec.convert(value, _KINDS[key.count("|")])
            for key, value in stored.items()
            if key not in _SIGNS
        }
        for key in (each for each in numbers if "|" not in each):
            np.asarray(numbers[key], dtype=np.float64)  # of rows of one length
    return numbers


def read_scores(file: Path) -> Scores[Any]:
    """Scores of test samples, with their labels and the training counts."""
    with reading(file, "scores of a test part"):
        scores = Scores.load(file)
        if scores.labels is None or scores.counts is None:
            raise ValueError("it has no labels, or no training counts")
    return scores


def _json(file: Path) -> Mapping[str, Any]:
    with reading(file, "numbers of a run"):
        return msgspec.json.decode(read_whole(file), type=dict[str, Any])


def widened(scores: Scores[Any]) -> Scores[Any]:
    """In float32, as which they are computed with."""
    return replace(scores, logits=as_numpy(scores.logits).astype(np.float32))


def halved(scores: Scores[Any]) -> Scores[Any]:
    """In float16, as which they are kept."""
    return replace(scores, logits=as_numpy(scores.logits).astype(np.float16))
