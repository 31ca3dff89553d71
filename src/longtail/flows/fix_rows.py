"""A fix applied to rows of scores, in memory or a block at a time, and counted on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from longtail.core import GroupEdges, Prior, Scores
from longtail.core.arrays import as_numpy
from longtail.core.blocks import blocks
from longtail.core.minimise import UnsettledError
from longtail.core.softmax import widened
from longtail.data import Block, open_score_writer
from longtail.flows.samples import Integers
from longtail.flows.score_sources import Source, scores_in_memory
from longtail.metrics import Difference
from longtail.posthoc import Affine


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


def no_sums(
    source: Source, target: Prior | None, counts: Integers | None, edges: GroupEdges
) -> Difference:
    """The sums of labelled scores before and after, of which none is counted yet."""
    seen = np.bincount(as_numpy(source.labels), minlength=source.num_classes)
    return Difference(source.num_classes, target, counts, groups=edges, label_counts=seen)


def sums_by_fold(
    source: Source,
    steps: Sequence[Affine],
    folds: Integers,
    target: Prior,
    counts: Integers | None,
    edges: GroupEdges,
) -> Difference:
    """The sums of all rows before and after, each fold after adjusters of its own, in blocks."""
    sums = no_sums(source, target, counts, edges)
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
            sums.add(rows[own], after, labels[own], _are_logits=True)
    return sums


def adjust(
    source: Source,
    step: Affine,
    counts: Integers | None,
    comparison: Difference | None,
    path: Path | None,
    progress: Callable[[int], None],
    kept: Integers | None = None,
) -> tuple[Scores | Path, Scores]:
    """The adjusted scores, or the .safetensors file that has them: then in blocks, from a file.

    `step` is all adjusters as one, `comparison` the sums of before and after, which are filled. The
    second is what was adjusted: the rows at the positions `kept`, or all of them.
    """

    def count(before: npt.NDArray[Any], after: npt.NDArray[Any], labels: object) -> None:
        if comparison is not None and labels is not None:
            comparison.add(before, after, as_numpy(labels), _are_logits=True)
        progress(len(after))

    if isinstance(source, Scores) or path is None:
        scores = scores_in_memory(source, counts=counts)
        moved = adjusted(scores, step)
        count(as_numpy(scores.logits), as_numpy(moved.logits), scores.labels)
        if path is not None:
            moved.save(path)
        return moved, scores if kept is None else scores.take(kept)
    writing = open_score_writer(
        path,
        source.num_rows,
        source.num_classes,
        source.dtype,
        labels=source.labels,
        carried=step.carried,
        counts=counts,
        classes=source.classes,
        split=source.split,
        ids=source.ids,
    )
    with writing as writer, ThreadPoolExecutor(1) as pool:

        def written(block: Block) -> None:
            after = step(block.logits)
            done = pool.submit(writer.write, after)  # while they are counted
            count(block.logits, after, block.labels)
            done.result()

        return path, source.as_scores(counts=counts, rows=kept, each=written)
