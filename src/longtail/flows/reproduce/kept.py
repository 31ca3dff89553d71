"""What is kept of a finished run: enough for every table, and small.

    NAME.safetensors           test scores as trained, float16: all ways to move them follow
    NAME.answers.safetensors   of each second-stage head and fitted method which test samples it got
                               right, a bit each, and where a table asks for probabilities of a
                               second-stage head how sure it was
    NAME.json                  numbers: norms of the head's weights, measures of features; of each
                               fitted method its log-loss and calibration, where a table asks

Each says of which run it is. A table reads nothing else, so it is the same from results/scores and
from the runs themselves.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from longtail.core import Prior, Scores
from longtail.core.arrays import Floats, Indices, as_numpy
from longtail.core.blocks import blocks
from longtail.core.files import read_whole
from longtail.core.labels import check_counts, check_labels
from longtail.core.softmax import softmax
from longtail.core.tensor_file import map_tensor_file, open_tensor_file, save_tensors
from longtail.data.tables.errors import reading
from longtail.flows.file_names import MODEL
from longtail.flows.reproduce.plan import KEPT
from longtail.flows.reproduce.ways import Way, moved, prior_of_test
from longtail.flows.results import write_json
from longtail.metrics import Accumulator
from longtail.metrics.terms import BINS, bin_of, block_sums

if TYPE_CHECKING:
    from longtail.flows.two_gaussians import TwoGaussians
    from longtail.flows.two_moons import TwoMoons

Numbers: TypeAlias = Mapping[str, Any]
WEIGHT_NORM = "weight_norm"
_MOST_NUMBERS = 2000  # what a picture alone is drawn of may have one for each training sample
_SURE = ("nll", "brier", "confidence", "classwise")
_SIGNS = ("run", "model")  # the name of the run, the digest of the model
_Row: TypeAlias = list[float | None]
_Trials: TypeAlias = dict[str, Annotated[list[float], msgspec.Meta(min_length=1)]]
# By the bars in its key: a measure of a model, the trials of a drawn problem's "HEAD|VARIANT",
# what is measured of a fitted method's "HEAD|VARIANT|TEST".
_KINDS: tuple[Any, ...] = (float | list[float | _Row | None] | None, _Trials, dict[str, float])


@dataclass(frozen=True, eq=False)
class Answers:
    """Which test samples were right, and how sure of each."""

    labels: Indices
    right: npt.NDArray[np.bool_]
    counts: Indices  # training samples of each class
    nll: Floats | None = None
    brier: Floats | None = None
    confidence: Floats | None = None
    classwise: Floats | None = None  # whose mean is the class-wise calibration error

    @classmethod
    def of(cls, scores: Scores[Any], with_probabilities: bool = True) -> Answers:
        """Of labelled scores that know the training counts."""
        labels = as_numpy(scores.labels).astype(np.int64)
        counts = as_numpy(scores.counts).astype(np.int64)
        if not with_probabilities:
            return cls(labels, as_numpy(scores.predict()) == labels, counts)
        rows = as_numpy(scores.logits)
        terms, predicted, gaps = block_sums(rows, labels, np.ones(len(labels)), BINS)
        sure = terms.nll, terms.brier, terms.confidence, _classwise(rows, labels, np.sign(gaps))
        return cls(labels, predicted == labels, counts, *sure)

    @cached_property
    def sums(self) -> Accumulator:
        """What every metric is a function of; NaN in what is not known."""
        return Accumulator.of_terms(
            self.labels,
            self.right,
            len(self.counts),
            confidence=self.confidence,
            nll=self.nll,
            brier=self.brier,
        )

    def prior(self, test: str) -> Prior:
        """Of a test set: uniform, or that of the shifted one of this name."""
        return prior_of_test(self.labels, self.counts, test)


def _classwise(rows: Any, labels: Indices, signs: Floats) -> Floats:
    """1/C Σ_c ±(1[y = c] − p(c|x)) of each sample, the sign of the gap of the bin of p(c|x)."""
    classes, parts = np.arange(rows.shape[1]), []
    for block, truth in blocks(rows, labels):
        probs = softmax(block.astype(np.float64))
        apart = (truth[:, None] == classes) - probs
        parts.append((signs[classes, bin_of(probs)] * apart).mean(axis=1))
    return np.concatenate(parts)


@dataclass(frozen=True, eq=False)
class Kept:
    """What is kept of one run of one seed."""

    scores: Scores[Any] | None = None
    answers: Mapping[str, Answers] | None = None
    numbers: Numbers | None = None
    gaussians: TwoGaussians | None = None  # of a drawn problem, for its picture
    moons: TwoMoons | None = None
    # Of ways to predict, whose answers many tables ask for.
    _made: dict[tuple[Way, bool], Answers | None] = field(default_factory=dict)

    def answered(self, way: Way, with_probabilities: bool = True) -> Answers | None:
        """The answers of a way to predict; None if they are not here."""
        stored = (self.answers or {}).get(way.key)
        if stored is not None or way.head or self.scores is None:
            return stored
        key = way, with_probabilities
        if key not in self._made:
            scores = self.moved(way)
            self._made[key] = None if scores is None else Answers.of(scores, with_probabilities)
        return self._made[key]

    def moved(self, way: Way) -> Scores[Any] | None:
        """The scores of a way to predict with the trained head."""
        if self.scores is None or way.head:
            return None
        return moved(self.scores, way, (self.numbers or {}).get(WEIGHT_NORM))

    @property
    def counts(self) -> Indices | None:
        """Training samples of each class, if they are known."""
        if self.scores is not None and self.scores.counts is not None:
            return as_numpy(self.scores.counts).astype(np.int64)
        return next((each.counts for each in (self.answers or {}).values()), None)

    def save(self, folder: Path, name: str) -> None:
        """Write its files in place of those that are kept of the run."""
        files = _files(folder, name)
        for file in filter(os.path.lexists, files):
            check_signed(file, {"run": name}, must=True)
        with TemporaryDirectory(dir=folder, prefix=f".{name}.") as aside:
            logits, answers, numbers = made = _files(Path(aside), name)
            if self.scores is not None:
                in_float16(self.scores).save(logits)
                sign(logits, {"run": name})
            if self.answers:
                save_tensors(answers, dict(_packed(self.answers)), {"run": name})
            if self.numbers:
                small = {k: v for k, v in self.numbers.items() if np.size(v) <= _MOST_NUMBERS}
                write_json(numbers, {"run": name} | dict(sorted(small.items())))
            for old, new in zip(files, made, strict=True):
                if new.is_file():
                    new.replace(old)
                else:
                    old.unlink(missing_ok=True)

    @classmethod
    def load(cls, folder: Path, name: str) -> Kept | None:
        """What is kept there under a name; None if nothing is."""
        files = _files(folder, name)
        for file in filter(Path.is_file, files):
            check_signed(file, {"run": name})
        logits, answers, numbers = (file if file.is_file() else None for file in files)
        if not (logits or answers or numbers):
            return None
        return cls(
            None if logits is None else in_float32(read_scores(logits)),
            None if answers is None else _unpacked(answers),
            None if numbers is None else read_numbers(numbers),
        )


def _files(folder: Path, name: str) -> list[Path]:
    return [folder / f"{name}.{end}" for end in KEPT]


def _packed(answers: Mapping[str, Answers]) -> Iterable[tuple[str, Any]]:
    first = next(iter(answers.values()))
    small = np.uint8 if len(first.counts) <= 256 else np.uint16
    yield from (("labels", first.labels.astype(small)), ("counts", first.counts))
    for key, each in sorted(answers.items()):
        yield f"{key}|right", np.packbits(each.right)
        for name in _SURE:
            if (values := getattr(each, name)) is not None:
                yield f"{key}|{name}", values.astype(np.float16)


def _unpacked(file: Path) -> dict[str, Answers]:
    made = {}
    with reading(file, "answers that were kept"):
        tensors = {name: np.array(each) for name, each in map_tensor_file(file)[1].items()}
        counts = check_counts(tensors.pop("counts"))
        labels = check_labels(tensors.pop("labels"), len(counts))
        size = len(labels)
        for name, values in tensors.items():
            is_right = name.endswith("|right")
            kind, shape = ("u1", ((size + 7) // 8,)) if is_right else ("f2", (size,))
            if values.dtype != kind or values.shape != shape:
                raise ValueError(f"{name} has {values.dtype} {values.shape} for {size} samples")
        wide = {name: each.astype(np.float64) for name, each in tensors.items()}
        for key in (name.removesuffix("|right") for name in tensors if name.endswith("|right")):
            sure = {each: wide.get(f"{key}|{each}") for each in _SURE}
            right = np.unpackbits(tensors[f"{key}|right"], count=size).astype(bool)
            made[key] = Answers(labels, right, counts, **sure)
    return made


def sign(file: Path, whose: Mapping[str, str]) -> None:
    """Write into a file of tensors whose it is."""
    metadata, tensors = map_tensor_file(file)
    save_tensors(
        file, {name: np.array(each) for name, each in tensors.items()}, {**metadata, **whose}
    )


def check_signed(file: Path, whose: Mapping[str, str], must: bool = False) -> None:
    """A ValueError if a file says that it is another's, or says nothing where it must."""
    signature = _json(file) if file.suffix == ".json" else open_tensor_file(file)[0]
    for key, expected in whose.items():
        own = signature.get(key, "" if must else expected)
        if own != expected:
            raise ValueError(
                f"{file} is not of the {key} {expected} but of {own or 'none'}; move it away"
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


def in_float32(scores: Scores[Any]) -> Scores[Any]:
    """In float32, as which they are computed with."""
    return replace(scores, logits=as_numpy(scores.logits).astype(np.float32))


def in_float16(scores: Scores[Any]) -> Scores[Any]:
    """In float16, as which they are kept."""
    return replace(scores, logits=as_numpy(scores.logits).astype(np.float16))
