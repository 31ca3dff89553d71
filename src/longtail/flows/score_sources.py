"""Where scores come from and go to, in memory or in blocks, with counts and priors beside them."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, cast, get_args

import msgspec
import numpy as np
import numpy.typing as npt

from longtail.core import Prior, PriorLike, Scores, measure_carried
from longtail.core.arrays import ArrayLike, RowsLike, as_numpy
from longtail.core.files import read_whole
from longtail.core.prior import check_same_classes
from longtail.data import (
    ScoreTable,
    long_tailed_subset,
    open_score_table,
    open_score_writer,
    read_label_counts,
)
from longtail.data.tables.text import read_json
from longtail.flows.samples import Integers
from longtail.metrics import Difference
from longtail.posthoc import Affine

Source: TypeAlias = Scores | ScoreTable
# Whatever can be taken for scores: also a .safetensors file, logits, or logits with labels.
SourceLike: TypeAlias = Source | str | os.PathLike[str] | tuple[RowsLike, ArrayLike] | RowsLike

CarriedWord: TypeAlias = Literal["counts", "uniform", "measure"]

# Numbers that are fitted on at once: 512 MB in float64.
MOST_NUMBERS = 2**26


def as_source(scores: SourceLike) -> Source:
    """The scores in memory, or the table of their file."""
    match scores:
        case Scores() | ScoreTable():
            return scores
        case str() | os.PathLike():
            if Path(scores).suffix.lower() != ".safetensors":
                raise ValueError(
                    f"it is not known whether {scores} holds logits or probabilities; say it: "
                    "longtail.data.open_score_table(path, kind)"
                )
            return open_score_table(scores, "logits")
        case tuple() if len(scores) == 2:
            return Scores(*scores)
    return Scores(cast(RowsLike, scores))  # which refuses what is no array


def name_of(source: Source) -> str:
    """What errors and pages call the scores."""
    return str(source.path) if isinstance(source, ScoreTable) else "these scores"


def counts_of(train: PriorLike | None, source: Source) -> Integers | None:
    """Training samples of each class: those given, else those that come with the scores."""
    if train is None:
        return None if source.counts is None else as_numpy(source.counts)
    prior = Prior.of(train, zeros="keep", classes=source.classes)
    check_same_classes(source.num_classes, prior, f"{name_of(source)}: there are", "train")
    return prior.counts


def carried_by(
    source: Source,
    carried: PriorLike | CarriedWord | None,
    train: PriorLike | None,
    counts: Integers | None,
    zeros: Literal["error", "smooth"],
) -> Prior:
    """What the scores carry: what is given, else what they say, else the training prior."""
    word = carried if isinstance(carried, str) else None
    if word is not None and word not in get_args(CarriedWord):
        raise ValueError(f"carried must be one of {get_args(CarriedWord)} or a prior, got {word!r}")
    if word == "uniform":
        return Prior.uniform(source.num_classes)
    if word == "measure":
        labelled = scores_to_fit_on(source, None, counts, seed=0)
        return measure_carried(labelled.logits, as_numpy(labelled.labels), labelled.classes)
    if carried is not None and not isinstance(carried, str):
        return Prior.of(carried, classes=source.classes)
    if carried is None and source.carried is not None:
        return source.carried
    if isinstance(train, Prior):
        return train
    if counts is None:
        raise ValueError(
            f"it is not known what prior {name_of(source)} carries: give the training counts if "
            "the model was trained by cross-entropy (train=, --counts), or say it (carried=, "
            "--carried)"
        )
    return Prior.of(counts, zeros=zeros)


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


def scores_to_fit_on(
    source: Source, carried: Prior | None, counts: Integers | None, seed: int
) -> Scores:
    """The labelled scores; of a huge set a part, whole for the small classes."""
    if source.labels is None:
        raise ValueError(
            f"{name_of(source)} has no labels, and a fix is fitted on labelled scores: give them "
            "(--labels), or apply a fix that was fitted before (--with)"
        )
    rows = rows_to_fit_on(as_numpy(source.labels), source.num_classes, seed)
    return _scores(source, carried, counts, rows)


def scores_to_estimate_from(source: Source, carried: Prior | None, seed: int) -> Scores:
    """The scores without their labels; of a huge set a part, drawn at random."""
    size = source.num_rows if isinstance(source, ScoreTable) else len(source)
    rows = None
    if size > (most := MOST_NUMBERS // source.num_classes):
        rows = np.sort(np.random.default_rng(seed).choice(size, most, replace=False))
    return replace(_scores(source, carried, None, rows), labels=None, counts=None, split=None)


def rows_to_fit_on(labels: Integers, num_classes: int, seed: int = 0) -> Integers | None:
    """Positions of at most MOST_NUMBERS / C samples, or None for all of them.

    Large classes give up samples first. That changes the label prior of what is left, which fitting
    takes into account, and keeps every sample of the small ones.
    """
    most = max(MOST_NUMBERS // num_classes, num_classes)
    if len(labels) <= most:
        return None
    counts = np.bincount(labels, minlength=num_classes)
    # The cap of each class at which all of them together are just few enough.
    caps = range(1, int(counts.max()) + 1)
    cap = bisect_right(caps, most, key=lambda cap: int(np.minimum(counts, cap).sum()))
    return np.sort(as_numpy(long_tailed_subset(labels, np.minimum(counts, cap), seed)))


def _scores(
    source: Source, carried: Prior | None, counts: Integers | None, rows: Integers | None = None
) -> Scores:
    """The scores in memory, or some of their rows; what is not given is what they say."""
    if isinstance(source, ScoreTable):
        return source.as_scores(carried=carried, counts=counts, rows=rows)
    scores = source if rows is None else source.take(rows)
    counts = scores.counts if counts is None else counts
    return replace(scores, carried=carried or scores.carried, counts=counts)


def adjusted(scores: Scores, step: Affine) -> Scores:
    """The scores after all adjusters as one, number for number as `adjust` writes them."""
    return replace(scores, logits=step(scores.logits), carried=step.carried)


def comparison_of(source: Source, target: Prior | None, counts: Integers | None) -> Difference:
    """The sums of labelled scores before and after, for `adjust` to fill."""
    seen = np.bincount(as_numpy(source.labels), minlength=source.num_classes)
    return Difference(source.num_classes, target, counts, label_counts=seen)


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
            comparison.add(before, after, as_numpy(labels), _are_logits=True)
        progress(len(after))

    if isinstance(source, Scores) or path is None:
        scores = _scores(source, None, counts)
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


class ClassesOf(NamedTuple):
    """A file and its classes, in whose order values are put."""

    path: Path
    num_classes: int
    classes: tuple[str, ...] | None


def read_counts(path: Path, table: ClassesOf | ScoreTable) -> npt.NDArray[np.int64]:
    """Training samples of each class of the table, from a file of counts or of training labels."""
    parts = read_label_counts(path)
    train = next((parts[name] for name in ("train", "all") if name in parts), None)
    if train is None:
        raise ValueError(
            f"{path} has labels of {', '.join(parts)} only; the counts are those of the training "
            "set: give a file of them"
        )
    if not train.numbered:
        names = _names(path, table)
        if unknown := sorted(set(train.counts) - set(names)):
            raise ValueError(
                f"{path} has a class {unknown[0]!r} that {table.path} does not have; both must "
                "have the same classes"
            )
        return np.array([train.counts.get(name, 0) for name in names], dtype=np.int64)
    counts = {int(label): count for label, count in train.counts.items()}
    if max(counts) >= table.num_classes:
        raise ValueError(
            f"{path} has a class {max(counts)}, but {table.path} has {table.num_classes} "
            f"classes, 0 to {table.num_classes - 1}; both must have the same classes"
        )
    is_list = path.suffix.lower() == ".json" and read_whole(path).lstrip().startswith(b"[")
    if len(counts) < table.num_classes and is_list:  # labels may lack a class
        raise ValueError(
            f"{path} lists {len(counts)} counts, but {table.path} has {table.num_classes} "
            "classes; list one a class, in their order, or if one of its columns holds the "
            "labels or something else, say --label-column or --skip"
        )
    return np.array([counts.get(index, 0) for index in range(table.num_classes)])


def read_prior(path: Path, table: ClassesOf | ScoreTable) -> Prior:
    """A prior from JSON, a list or an object from class name to weight, or from a file of labels.

    Classes of weight zero cannot occur.
    """
    if path.suffix.lower() != ".json":
        return Prior.of(read_counts(path, table), zeros="keep")
    weights = read_json(
        path,
        msgspec.json.Decoder(list[float] | dict[str, float]),
        "a JSON list of weights, one a class, or an object from class name to weight",
    )
    names = _names(path, table) if isinstance(weights, dict) else None
    if names is None and len(weights) != table.num_classes:
        raise ValueError(
            f"{path} has {len(weights)} weights, but {table.path} has {table.num_classes} classes; "
            "give one weight a class, in the same order"
        )
    try:
        return Prior.of(weights, zeros="keep", classes=names)
    except ValueError as error:
        raise ValueError(f"in {path}: {error}") from error


def _names(path: Path, table: ClassesOf | ScoreTable) -> tuple[str, ...]:
    if table.classes is None:
        raise ValueError(
            f"{path} has its classes by name, but {table.path} does not name its classes; "
            "give a list in their order, or (fix and report) the names with --classes"
        )
    return table.classes
