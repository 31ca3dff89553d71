"""Adjusters in a file: JSON that a person can read, with a version. No pickle.

It lists the adjusters in the order in which they are applied, each with its kind and its parameters
by name, and where known what scores carry before the first and the names of the classes. Numbers
come back to the last bit; a prior is normalised anew, as every prior is.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import numpy as np

from longtail.core import Prior, PriorLike, Scores
from longtail.core.arrays import ArrayT
from longtail.core.files import read_whole, written_whole
from longtail.core.tensor_file import Format, Versioned, decode_header
from longtail.plain_text import plain_json
from longtail.posthoc.adjuster import Adjuster, AffineAdjuster
from longtail.posthoc.adjusters import LogitAdjustment, PCSoftmax, WeightNormalization
from longtail.posthoc.calibrators import BiasCorrectedTemperature, Temperature, VectorScaling
from longtail.posthoc.matching import MarginalMatching
from longtail.posthoc.tau import TauChoice

_FORMAT = Format("adjuster", "longtail.posthoc.save_adjusters", versions=(1, 2))
_MOST_BYTES = 2**28  # several numbers for each of a million classes


class _Prior(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A prior: log-probabilities, null for a class that cannot occur, and counts where known."""

    log_probs: list[float | None]
    counts: list[int] | None = None

    @classmethod
    def of(cls, prior: Prior) -> _Prior:
        logs = [None if value == -inf else value for value in prior.log.tolist()]
        return cls(logs, None if prior.counts is None else prior.counts.tolist())

    def prior(self) -> Prior:
        logs = [-inf if value is None else value for value in self.log_probs]
        return Prior(np.array(logs), None if self.counts is None else np.array(self.counts))


class _Entry(msgspec.Struct, tag_field="kind", forbid_unknown_fields=True, omit_defaults=True):
    """An adjuster. The fields of each kind are the arguments that make it again."""


class _LogitAdjustment(_Entry, tag="logit_adjustment"):
    prior: _Prior
    tau: float
    target: _Prior | None = None
    choice: TauChoice | None = None


class _PCSoftmax(_Entry, tag="pc_softmax"):
    target: _Prior


class _WeightNormalization(_Entry, tag="weight_normalization"):
    nu: list[float]
    tau: float
    choice: TauChoice | None = None


class _Temperature(_Entry, tag="temperature"):
    temperature: float
    source: _Prior | None = None


class _BiasCorrectedTemperature(_Entry, tag="bias_corrected_temperature"):
    temperature: float
    bias: list[float] | None = None
    source: _Prior | None = None
    carried: _Prior | None = None


class _VectorScaling(_Entry, tag="vector_scaling"):
    scale: list[float] | None = None
    bias: list[float] | None = None
    source: _Prior | None = None
    carried: _Prior | None = None


class _MarginalMatching(_Entry, tag="marginal_matching"):
    bias: list[float]
    carried: _Prior
    source: _Prior | None = None
    spread: list[float] | None = None


_Moves: TypeAlias = _LogitAdjustment | _PCSoftmax | _WeightNormalization | _MarginalMatching
_AnyEntry: TypeAlias = _Moves | _Temperature | _BiasCorrectedTemperature | _VectorScaling

_ENTRIES: dict[type[AffineAdjuster], type[_AnyEntry]] = {
    LogitAdjustment: _LogitAdjustment,
    PCSoftmax: _PCSoftmax,
    WeightNormalization: _WeightNormalization,
    Temperature: _Temperature,
    BiasCorrectedTemperature: _BiasCorrectedTemperature,
    VectorScaling: _VectorScaling,
    MarginalMatching: _MarginalMatching,
}
_ADJUSTERS = {entry: adjuster for adjuster, entry in _ENTRIES.items()}


class _Content(Versioned, forbid_unknown_fields=True, omit_defaults=True):
    adjusters: list[_AnyEntry]
    carried: _Prior | None = None
    classes: list[str] | None = None


@dataclass(frozen=True, eq=False)
class StoredAdjusters:
    """What an adjuster file holds; itself an adjuster, which applies them all."""

    adjusters: tuple[AffineAdjuster, ...]  # in the order in which they are applied
    carried: Prior | None  # by scores before the first, or None if the file does not say
    classes: tuple[str, ...] | None  # their names, or None if the file does not say

    def __call__(self, scores: Scores[ArrayT]) -> Scores[ArrayT]:
        """The adjusted scores, of these classes; a ValueError if theirs have other names."""
        if self.classes and not scores.classes and scores.num_classes == len(self.classes):
            scores = scores._with(classes=self.classes)
        elif self.classes and self.classes != scores.classes:
            theirs = ", ".join(scores.classes or [f"{scores.num_classes} without names"])
            raise ValueError(
                f"these adjusters are for the classes {', '.join(self.classes):.200}, but the "
                f"scores are of {theirs:.200}; both must have the same classes in the same order"
            )
        for adjuster in self.adjusters:
            scores = adjuster(scores)
        return scores


def save_adjusters(
    path: str | os.PathLike[str],
    adjusters: Sequence[Adjuster],
    carried: PriorLike | None = None,
    classes: Sequence[str] | None = None,
) -> None:
    """Write one JSON file; it replaces an existing one whole.

    The adjusters are those of longtail.posthoc, in the order in which they are applied; `carried`
    is what scores carry before the first. Scores of other `classes` will be refused.

    >>> import tempfile
    >>> from longtail.posthoc import PCSoftmax, Temperature
    >>> path = Path(tempfile.mkdtemp()) / "adjusters.json"
    >>> save_adjusters(path, [Temperature(2.0), PCSoftmax([20, 80])])
    >>> load_adjusters(path)(Scores([[2.0, 2.0]], carried=[50, 50])).probs().tolist()
    [[0.200, 0.800]]
    """
    content = _Content(
        version=_FORMAT.versions[-1],
        adjusters=[_entry_of(adjuster) for adjuster in adjusters],
        carried=None if carried is None else _Prior.of(Prior.of(carried)),
        classes=None if classes is None else [str(name) for name in classes],
    )
    _check_sizes(content)
    text = written_out(content) + "\n"
    with written_whole(path) as part:
        part.write_text(text, encoding="utf-8")


def load_adjusters(path: str | os.PathLike[str]) -> StoredAdjusters:
    """Read what `save_adjusters` wrote, or raise a ValueError that says what is wrong with it."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no adjuster file at {path}")
    content = _decode(read_whole(path, _MOST_BYTES), path)
    try:
        _check_sizes(content)
        return StoredAdjusters(
            tuple(_adjuster_of(entry) for entry in content.adjusters),
            None if content.carried is None else content.carried.prior(),
            None if content.classes is None else tuple(content.classes),
        )
    except ValueError as error:
        raise ValueError(f"{path} holds values that cannot be: {error}") from error


def _decode(text: bytes, path: Path) -> _Content:
    version = decode_header(text, Versioned, path, _FORMAT).version
    try:
        if version == 1:
            return msgspec.convert(_from_version_1(msgspec.json.decode(text)), _Content)
        return msgspec.json.decode(text, type=_Content)
    except ValueError as error:  # of JSON, or of the text in it
        raise ValueError(
            f"{path} holds what this longtail does not know ({error}); "
            "it was damaged, or written by a newer longtail"
        ) from error


def _from_version_1(content: dict[str, Any]) -> dict[str, Any]:
    """The same as version 2 has it: τ was the optimum, and accuracy was told by its error."""
    entries = content.get("adjusters")
    for entry in entries if isinstance(entries, list) else []:
        choice = entry.get("choice") if isinstance(entry, dict) else None
        if not isinstance(choice, dict):
            continue
        choice |= {"optimum": choice.get("tau"), "trust": 1.0}
        if choice.get("criterion") == "balanced_error" and isinstance(choice.get("value"), float):
            choice |= {"criterion": "accuracy_under_target", "value": 1 - choice["value"]}
    return content


def _check_sizes(content: _Content) -> None:
    """Raise unless everything that has one value a class has as many."""
    parts: list[object] = [content.carried, content.classes]
    for entry in content.adjusters:
        parts += [getattr(entry, name) for name in entry.__struct_fields__]
    lists = [part.log_probs if isinstance(part, _Prior) else part for part in parts]
    sizes = sorted({len(values) for values in lists if isinstance(values, list)})
    if len(sizes) > 1:
        raise ValueError(
            f"adjusters in one file must be for the same classes, these are for "
            f"{', '.join(map(str, sizes))} classes"
        )


def written_out(content: Versioned) -> str:
    """A file's content as JSON, each list of numbers on one line."""
    plain = msgspec.to_builtins(content)
    try:
        text = json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False)
    except ValueError as error:
        raise ValueError(
            "what is written holds a number that is not finite, which no JSON file can; "
            "what it was fitted on does not determine it"
        ) from error
    # Lists of numbers or names on one line; no string in JSON has a line break to lose.
    flat = r"\[\n\s*([^][{}]*?)\n\s*\]"
    lined = re.sub(flat, lambda lines: "[" + re.sub(r"\n\s*", " ", lines[1]) + "]", text)
    return plain_json(lined)


def _entry_of(adjuster: Adjuster) -> _AnyEntry:
    """What the file says of an adjuster, or a ValueError if it is none of ours."""
    entry = _ENTRIES.get(type(adjuster)) if isinstance(adjuster, AffineAdjuster) else None
    if entry is None:
        raise ValueError(
            f"an adjuster file holds adjusters of longtail.posthoc, got a {type(adjuster).__name__}"
        )
    return entry(**{name: _plain(getattr(adjuster, name)) for name in entry.__struct_fields__})


def _adjuster_of(entry: _AnyEntry) -> AffineAdjuster:
    """The adjuster again, or a ValueError by its own checks."""
    values = {name: getattr(entry, name) for name in entry.__struct_fields__}
    priors = {n: v.prior() for n, v in values.items() if isinstance(v, _Prior)}
    made: AffineAdjuster = _ADJUSTERS[type(entry)](**values | priors)
    return made


def _plain(value: Any) -> Any:
    if isinstance(value, Prior):
        return _Prior.of(value)
    return value.tolist() if isinstance(value, np.ndarray) else value
