"""Where scores come from and go to, in memory or in blocks, with counts and priors beside them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal, NoReturn, TypeAlias, cast, get_args

import numpy as np

from longtail.core import Prior, PriorLike, Scores, measure_carried
from longtail.core.arrays import ArrayLike, RowsLike, as_numpy
from longtail.core.prior import check_same_classes
from longtail.core.score_checks import check_softmax
from longtail.core.softmax import log_softmax, widened
from longtail.data import ScoreTable, open_score_table
from longtail.data.subsets import capped_subset
from longtail.flows.file_names import are_one_file
from longtail.flows.prior_files import ClassesOf, read_counts
from longtail.flows.samples import Integers, are_names, places_by_id

Source: TypeAlias = Scores | ScoreTable
# Whatever can be taken for scores: also a .safetensors file, logits, or logits with labels.
SourceLike: TypeAlias = Source | str | os.PathLike[str] | tuple[RowsLike, ArrayLike] | RowsLike

TrainLike: TypeAlias = PriorLike | str | os.PathLike[str]  # counts, or a file of them
CarriedWord: TypeAlias = Literal["counts", "uniform", "measure"]

# Numbers that are fitted on at once: 512 MB in float64.
MOST_NUMBERS = 2**26
# And those that a page on scores is drawn from, beside sums of all of them.
MOST_SHOWN = 2**23
# Rows that tell whether samples are the same, and how alike their scores must be.
_LOOKED_AT, _DIGITS = 1000, 0.01


class CarriedError(ValueError):
    """What the caller says does not settle what scores carry."""


def as_source(scores: SourceLike) -> Source:
    """The scores in memory, or the table of their file."""
    match scores:
        case Scores():
            check_softmax(scores, "this", "use longtail.fix_labels, or metrics.evaluate")
            return scores
        case ScoreTable():
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


def paths_of(*inputs: object) -> Iterator[Path]:
    """The files that inputs are read from."""
    for each in inputs:
        if isinstance(each, ScoreTable):
            yield each.path
        elif isinstance(each, str | os.PathLike):
            yield Path(each)


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
        if train is not None and not isinstance(train, str | os.PathLike):
            return Prior.of(train, zeros=zeros, classes=source.classes)
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
    """Raise: it is not known what the scores carry."""
    raise CarriedError(
        f"it is not known what prior {name_of(source)} carries: give the training counts if the "
        "model was trained by cross-entropy (train=, --counts FILE), or say it (carried=, "
        "--carried)"
    )


def before_and_after(
    table: ScoreTable,
    other: ScoreTable | None,
    carried: CarriedWord | Prior | None,
    counts: Integers | None,
    zeros: Literal["error", "smooth"],
) -> tuple[Scores, Scores | None]:
    """The scores of a file with the prior that they carry, and those of the same samples after."""
    prior = carried_by(table, carried, None, counts, zeros)
    before = table.as_scores(carried=prior, counts=counts)
    if before.labels is None:
        raise ValueError(
            f"{name_of(table)} has no labels, and a report is on what scores get right; give "
            "--labels FILE"
        )
    if other is None:
        return before, None
    check_alike(other, table, None)
    return before, other.as_scores()


def target_of(target: str | Prior, num_classes: int) -> Prior:
    """A prior, or the uniform one if it is called by its name."""
    return Prior.uniform(num_classes) if isinstance(target, str) else target


def check_alike(other: Source, source: Source, carried: Prior | None) -> None:
    """Raise unless both have the same classes, and if they are of one model the same prior."""
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
    if other is source or carried is None or other.carried is None:
        return
    if not carried.is_close(other.carried):
        raise ValueError(
            f"{name_of(other)} says that it carries {other.carried!r}, but what is fitted starts "
            f"from {carried!r}: the scores were adjusted already, or another model made them"
        )


def are_same_samples(one: Source, other: Source) -> bool:
    """Whether both are scores of the same labelled samples, in one file or in two."""
    paths = list(paths_of(one, other))
    if one is other or (len(paths) == 2 and are_one_file(*paths)):
        return True
    places = places_by_id(one.ids, other.ids)
    if places is None or one.labels is None or other.labels is None:
        return False
    labels = as_numpy(one.labels)
    if not np.array_equal(labels, as_numpy(other.labels)[places]):
        return False
    # Labels may be alike, scores are not; but other files have them with fewer digits.
    there = np.arange(len(labels))[places][:_LOOKED_AT]
    order = np.argsort(there)
    rows = scores_in_memory(one, rows=np.arange(len(there))).take(order)
    others = scores_in_memory(other, rows=there[order])
    mine, theirs = (log_softmax(widened(as_numpy(each.logits))) for each in (rows, others))
    return np.allclose(mine, theirs, rtol=_DIGITS, atol=_DIGITS)


def rows_to_fit_on(source: Source, seed: int = 0, numbers: int | None = None) -> Integers | None:
    """Positions of at most numbers / C labelled samples, or None for all; MOST_NUMBERS by default.

    Large classes give up samples first. That changes the label prior of what is left, which fitting
    takes into account.
    """
    if source.labels is None:
        raise ValueError(
            f"{name_of(source)} has no labels, and a fix is fitted on labelled scores: give them "
            "(--labels), or apply a fix that was fitted before (--with)"
        )
    most = (numbers or MOST_NUMBERS) // source.num_classes
    return capped_subset(as_numpy(source.labels), source.num_classes, most, seed)


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
    scores = scores_in_memory(source, carried, rows=rows_to_estimate_from(source, seed))
    return replace(scores, labels=None, counts=None, split=None)


def rows_to_estimate_from(source: Source, seed: int, numbers: int | None = None) -> Integers | None:
    """Positions of samples drawn at random from a huge set, or None for all of another."""
    size = source.num_rows if isinstance(source, ScoreTable) else len(source)
    if size <= (most := (numbers or MOST_NUMBERS) // source.num_classes):
        return None
    return np.sort(np.random.default_rng(seed).choice(size, most, replace=False))
