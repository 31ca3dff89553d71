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

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from longtail.core import Prior, Scores, UnknownPriorError
from longtail.core.arrays import Floats, Indices, as_numpy
from longtail.core.blocks import blocks
from longtail.core.labels import check_counts, check_labels
from longtail.core.softmax import softmax
from longtail.core.tensor_file import map_tensor_file, save_tensors
from longtail.data import shifted_subset
from longtail.data.subsets import Direction
from longtail.data.tables.errors import reading
from longtail.flows.folds import by_best_tau
from longtail.flows.reproduce import stored
from longtail.flows.reproduce.experiment import Cell, Column, Experiment, Run, Variant
from longtail.flows.reproduce.plan import KEPT, head_name, settled
from longtail.flows.results import write_json
from longtail.flows.score_measures import DRAWN_OF, SCORE_MEASURES
from longtail.metrics import Accumulator
from longtail.metrics.terms import BINS, bin_of, block_sums
from longtail.posthoc import LogitAdjustment, WeightNormalization
from longtail.posthoc.tau.curve import tau_curve, weight_norm_curve

if TYPE_CHECKING:
    from longtail.flows.two_gaussians import TwoGaussians
    from longtail.flows.two_moons import TwoMoons

Numbers: TypeAlias = Mapping[str, Any]
BALANCED = "balanced"
PROBABILITIES = ("ece", "classwise_ece", "brier", "nll")  # measures that more than answers decide
OF_ANSWERS = ("accuracy", "balanced_error", "error", "geometric_mean", *PROBABILITIES)
WEIGHT_NORM = "weight_norm"
RELIABILITY = "reliability"  # drawn of answers
_MOST_NUMBERS = 2000  # what a picture alone is drawn of may have one for each training sample
_SURE = ("nll", "brier", "confidence", "classwise")


class Way(NamedTuple):
    """One way to predict with a run, and the test set it is for."""

    head: str  # as its file is called; "" for the trained one
    variant: Variant
    test: str

    @classmethod
    def of(cls, cell: Cell, column: Column) -> Way:
        """That of a cell, in a column."""
        # What is not moved answers the same on every test set.
        test = BALANCED if cell.variant == "as trained" else column.test
        return cls(head_name(cell.head, cell.batch_norm), cell.variant, test)

    @property
    def key(self) -> str:
        """As files name it."""
        return "|".join(self)


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
            stored.check_signed(file, {"run": name}, must=True)
        with TemporaryDirectory(dir=folder, prefix=f".{name}.") as aside:
            logits, answers, numbers = made = _files(Path(aside), name)
            if self.scores is not None:
                stored.halved(self.scores).save(logits)
                stored.sign(logits, {"run": name})
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
            stored.check_signed(file, {"run": name})
        logits, answers, numbers = (file if file.is_file() else None for file in files)
        if not (logits or answers or numbers):
            return None
        return cls(
            None if logits is None else stored.widened(stored.read_scores(logits)),
            None if answers is None else _unpacked(answers),
            None if numbers is None else stored.read_numbers(numbers),
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


def prior_of_test(labels: Indices, counts: Indices, test: str) -> Prior:
    """The prior of a test set: "balanced", or "forward-50" for the shifted one (LADE §4.3)."""
    if test == BALANCED:
        return Prior.uniform(len(counts))
    direction, _, ratio = test.partition("-")
    way: Direction = "forward" if direction == "forward" else "backward"
    at = as_numpy(shifted_subset(labels, counts, float(ratio), way))
    return Prior.of(np.bincount(labels[at], minlength=len(counts)))


def moved(scores: Scores[Any], way: Way, norms: Iterable[float] | None) -> Scores[Any] | None:
    """The scores as a variant predicts; None if what it takes is not known."""
    labels = as_numpy(scores.labels).astype(np.int64)
    target = prior_of_test(labels, as_numpy(scores.counts), way.test)
    try:
        if way.variant == "under the target":
            return scores.under(target)
        if way.variant == "from uniform":
            uniform = Prior.uniform(scores.num_classes)
            return replace(scores, carried=uniform).under(target)
        if way.variant == "best tau":
            if (carried := scores.carried) is None:
                return None
            return by_best_tau(
                scores,
                lambda rows, truth: tau_curve(rows, truth, carried, target),
                lambda tau: LogitAdjustment(carried, tau, target),
            )
        if way.variant == "best weight norm":
            if norms is None:
                return None
            lengths = np.asarray(list(norms), dtype=np.float64)
            return by_best_tau(
                scores,
                lambda rows, truth: weight_norm_curve(rows, truth, lengths, target),
                lambda tau: WeightNormalization(lengths, tau),
            )
    except UnknownPriorError:
        return None
    return scores


def asked(experiments: Iterable[Experiment]) -> dict[Run, dict[Way, bool]]:
    """Of every run the ways to predict that some table asks for, and whether for probabilities."""
    ways: dict[Run, dict[Way, bool]] = {}
    for experiment in experiments:
        for quick in (False, True):
            for cell in settled(experiment, quick).cells:
                for column in experiment.columns:
                    if column.data == cell.data:
                        of_run, way = ways.setdefault(cell.run, {}), Way.of(cell, column)
                        of_run[way] = of_run.get(way, False) or column.measure in PROBABILITIES
    return ways


def measures_asked(experiments: Iterable[Experiment]) -> dict[Run, tuple[str, ...]]:
    """Of every run what some figure measures or draws of its features and head."""
    known = {*OF_ANSWERS, *SCORE_MEASURES, RELIABILITY, "setting", "statistic", "property"}
    measures: dict[Run, dict[str, None]] = {}
    for experiment in experiments:
        for quick in (False, True):
            for cell in settled(experiment, quick).cells:
                for column in experiment.columns:
                    if column.data != cell.data:
                        continue
                    drawn_of = (*DRAWN_OF.get(column.measure, ()), *experiment.draws)
                    for name in (column.measure, *drawn_of):
                        if name not in known:
                            measures.setdefault(cell.run, {})[name] = None
    return {run: tuple(names) for run, names in measures.items()}
