"""Where scores come from and go to, in memory or in blocks, with counts and priors beside them."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeAlias, cast, get_args

import numpy as np
import numpy.typing as npt

from longtail.core import Prior, PriorLike, Scores, measure_carried
from longtail.core.arrays import ArrayLike, RowsLike, as_numpy
from longtail.core.blocks import blocks
from longtail.core.minimise import UnsettledError
from longtail.core.prior import check_same_classes
from longtail.core.softmax import widened
from longtail.data import (
    ScoreTable,
    long_tailed_subset,
    open_score_table,
    open_score_writer,
)
from longtail.flows.prior_files import ClassesOf, read_counts
from longtail.flows.samples import Integers, are_names
from longtail.metrics import Difference
from longtail.posthoc import Affine

Source: TypeAlias = Scores | ScoreTable
# Whatever can be taken for scores: also a .safetensors file, logits, or logits with labels.
SourceLike: TypeAlias = Source | str | os.PathLike[str] | tuple[RowsLike, ArrayLike] | RowsLike

TrainLike: TypeAlias = PriorLike | str | os.PathLike[str]  # counts, or a file of them
CarriedWord: TypeAlias = Literal["counts", "uniform", "measure"]

# Numbers that are fitted on at once: 512 MB in float64.
MOST_NUMBERS = 2**26


class CarriedError(ValueError):
    """It cannot be told what scores carry by what the caller says of it."""


def as_source(scores: SourceLike) -> Source:
    """The scores in memory, or the table of their file."""
    match scores:
        case Scores() | ScoreTable():
            return scores
        case str() | os.PathLike():
            path = os.fspath(scores)
            if os.path.isfile(path) and not path.lower().endswith(".safetensors"):
                raise ValueError(
                    f"it is not known whether {path} holds logits or probabilities; say it: "
                    f'longtail.data.open_score_table("{path}", "logits") or (..., "probs")'
                )
            return open_score_table(path, "logits")
        case tuple() if len(scores) == 2:
            if are_names(scores[1]):
                raise ValueError(
                    "labels that are names do not say which column of the logits is whose; give "
                    "the column of each: [classes.index(name) for name in labels]"
                )
            return Scores(*scores)
    return Scores(cast(RowsLike, scores))  # which refuses what is no array


def name_of(source: Source) -> str:
    """What errors and pages call the scores."""
    return str(source.path) if isinstance(source, ScoreTable) else "these scores"


def counts_of(train: TrainLike | None, source: Source) -> Integers | None:
    """Training samples of each class: those of `train`, else those that come with the scores."""
    if train is None:
        return None if source.counts is None else as_numpy(source.counts)
    if isinstance(train, str | os.PathLike):
        return read_counts(
            Path(train), ClassesOf(name_of(source), source.num_classes, source.classes)
        )
    prior = Prior.of(train, zeros="keep", classes=source.classes)
    check_same_classes(source.num_classes, prior, f"{name_of(source)}: there are", "train")
    return prior.counts


def carried_by(
    source: Source,
    carried: PriorLike | CarriedWord | None,
    train: TrainLike | None,
    counts: Integers | None,
    zeros: Literal["error", "smooth"],
) -> Prior | None:
    """What the scores carry: `carried`, else what they say, else the training prior, else None."""
    word = carried if isinstance(carried, str) else None
    if word is not None and word not in get_args(CarriedWord):
        words = ", ".join(get_args(CarriedWord))
        raise CarriedError(f"carried must be one of {words}, or a prior; got {word!r}")
    if word == "uniform":
        return Prior.uniform(source.num_classes)
    if word == "measure":
        labelled = scores_in_memory(source, None, counts, rows_to_fit_on(source))
        return measure_carried(labelled.logits, as_numpy(labelled.labels), labelled.classes)
    if carried is not None and not isinstance(carried, str):
        return Prior.of(carried, classes=source.classes)
    if carried is None and source.carried is not None:
        return source.carried
    if counts is None:
        if isinstance(train, Prior):
            return Prior.of(train, zeros=zeros)
        if word == "counts":
            raise CarriedError(
                "to carry the prior of the training counts they must be known: give them (train=, "
                "--counts FILE)"
            )
        return None
    if zeros == "error" and not counts.all():
        names = source.classes or range(source.num_classes)
        absent = [names[at] for at in np.flatnonzero(counts == 0)]
        shown = ", ".join(map(str, absent[:5])) + (", ..." if len(absent) > 5 else "")
        raise CarriedError(
            f"{name_of(source)} has columns {shown}, of which there are no training samples: if "
            "one holds the labels, say --label-column NAME; if something else, --skip NAME; if "
            "these are classes, zeros='smooth' (--zeros smooth), which adds one half to every count"
        )
    return Prior.of(counts, zeros=zeros)


def unknown_carried(source: Source) -> NoReturn:
    """Raise: nobody says what the scores carry."""
    raise CarriedError(
        f"it is not known what prior {name_of(source)} carries: give the training counts if the "
        "model was trained by cross-entropy (train=, --counts FILE), or say it (carried=, "
        "--carried)"
    )


def check_alike(other: Source, source: Source, carried: Prior) -> None:
    """Raise unless both are of one model: the same classes, the same carried prior."""
    one, two = source.classes, other.classes
    if one and two and one != two and sorted(one) == sorted(two):
        at = next(at for at, pair in enumerate(zip(one, two, strict=True)) if len(set(pair)) > 1)
        raise ValueError(
            f"{name_of(other)} has the classes of {name_of(source)} in another order: column {at} "
            f"is {two[at]!r} there and {one[at]!r} here; put its columns in the same order"
        )
    if other.num_classes != source.num_classes or (one and two and one != two):
        raise ValueError(
            f"{name_of(other)} has {other.num_classes} classes and {name_of(source)} "
            f"{source.num_classes}, or they name them differently; both must be scores of the same "
            "model"
        )
    if other is not source and other.carried and not carried.is_close(other.carried):
        raise ValueError(
            f"{name_of(other)} says that it carries {other.carried!r}, but what is fitted starts "
            f"from {carried!r}: the scores were adjusted already, or another model made them"
        )


def rows_to_fit_on(source: Source, seed: int = 0) -> Integers | None:
    """Positions of at most MOST_NUMBERS / C labelled samples, or None for all of them.

    Large classes give up samples first. That changes the label prior of what is left, which fitting
    takes into account, and keeps every sample of the small ones.
    """
    if source.labels is None:
        raise ValueError(
            f"{name_of(source)} has no labels, and a fix is fitted on labelled scores: give them "
            "(--labels), or apply a fix that was fitted before (--with)"
        )
    labels, num_classes = as_numpy(source.labels), source.num_classes
    most = max(MOST_NUMBERS // num_classes, num_classes)
    if len(labels) <= most:
        return None
    counts = np.bincount(labels, minlength=num_classes)
    # The cap of each class at which all of them together are just few enough.
    caps = range(1, int(counts.max()) + 1)
    cap = bisect_right(caps, most, key=lambda cap: int(np.minimum(counts, cap).sum()))
    return np.sort(as_numpy(long_tailed_subset(labels, np.minimum(counts, cap), seed)))


def scores_in_memory(
    source: Source,
    carried: Prior | None = None,
    counts: Integers | None = None,
    rows: Integers | None = None,
) -> Scores:
    """The scores in memory, or some of their rows; what is not given is what they say."""
    if isinstance(source, ScoreTable):
        return source.as_scores(carried=carried, counts=counts, rows=rows)
    scores = source if rows is None else source.take(rows)
    counts = scores.counts if counts is None else counts
    return replace(scores, carried=carried or scores.carried, counts=counts)


def scores_to_estimate_from(source: Source, carried: Prior | None, seed: int) -> Scores:
    """The scores without their labels; of a huge set a part, drawn at random."""
    size = source.num_rows if isinstance(source, ScoreTable) else len(source)
    rows = None
    if size > (most := MOST_NUMBERS // source.num_classes):
        rows = np.sort(np.random.default_rng(seed).choice(size, most, replace=False))
    scores = scores_in_memory(source, carried, rows=rows)
    return replace(scores, labels=None, counts=None, split=None)


@contextmanager
def in_range() -> Iterator[None]:
    """An UnsettledError if logits leave the range of numbers here."""
    try:
        with np.errstate(over="raise"):
            yield
    except FloatingPointError:
        raise UnsettledError(
            "what fits most of the samples takes the logits of others beyond the range of "
            "numbers; leave out logits that are huge"
        ) from None


def adjusted(scores: Scores, step: Affine) -> Scores:
    """The scores after all adjusters as one, number for number as `adjust` writes them."""
    return replace(scores, logits=step(scores.logits), carried=step.carried)


def adjusted_by_fold(scores: Scores, steps: Sequence[Affine], folds: Integers) -> Scores:
    """The scores, each fold after adjusters of its own."""
    before = widened(as_numpy(scores.logits))
    after = np.empty_like(before)
    with in_range():
        for fold, step in enumerate(steps):
            after[folds == fold] = step(before[folds == fold])
    same = all(step.carried == steps[0].carried for step in steps)
    return replace(scores, logits=after, carried=steps[0].carried if same else None)


def no_sums(source: Source, target: Prior | None, counts: Integers | None) -> Difference:
    """The sums of labelled scores before and after, of which none is counted yet."""
    seen = np.bincount(as_numpy(source.labels), minlength=source.num_classes)
    return Difference(source.num_classes, target, counts, label_counts=seen)


def sums_by_fold(
    source: Source,
    steps: Sequence[Affine],
    folds: Integers,
    target: Prior,
    counts: Integers | None,
) -> Difference:
    """The sums of all rows before and after, each fold after adjusters of its own, in blocks."""
    sums = no_sums(source, target, counts)
    parts: Iterable[tuple[npt.NDArray[Any], ...]]
    if isinstance(source, Scores):
        parts = blocks(source.logits, as_numpy(source.labels), folds)
    else:
        parts = (
            (rows, as_numpy(labels), folds[start : start + len(rows)])
            for start, rows, labels in source.blocks()
        )
    for rows, labels, numbers in parts:
        for fold in np.unique(numbers):
            own = numbers == fold
            with in_range():
                after = steps[fold](widened(rows[own]))
            sums.add(rows[own], after, labels[own])
    return sums


def adjust(
    source: Source,
    step: Affine,
    counts: Integers | None,
    comparison: Difference | None,
    path: Path | None,
    progress: Callable[[int], None],
) -> Scores | Path:
    """The adjusted scores, or the .safetensors file that has them: then in blocks, from a file.

    `step` is all adjusters as one, `comparison` the sums of before and after, which are filled.
    """

    def count(before: npt.NDArray[Any], after: npt.NDArray[Any], labels: object) -> None:
        if comparison is not None and labels is not None:
            comparison.add(before, after, as_numpy(labels))
        progress(len(after))

    if isinstance(source, Scores) or path is None:
        scores = scores_in_memory(source, counts=counts)
        moved = adjusted(scores, step)
        count(as_numpy(scores.logits), as_numpy(moved.logits), scores.labels)
        if path is not None:
            moved.save(path)
        return moved
    with open_score_writer(
        path,
        source.num_rows,
        source.num_classes,
        source.dtype,
        labels=source.labels,
        carried=step.carried,
        counts=counts,
        classes=source.classes,
        split=source.split,
    ) as writer:
        for block in source.blocks():
            after = step(block.logits)
            writer.write(after)
            count(block.logits, after, block.labels)
    return path
