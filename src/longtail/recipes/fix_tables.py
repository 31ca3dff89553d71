"""Fixing files of scores: read a block, adjust it, count it, write it. Never the whole at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from torch import Tensor

from longtail.core import Prior, Scores
from longtail.core.tensors import as_kind_of, as_tensor, wide_dtype
from longtail.data.score_tables import ScoreTable, open_score_writer
from longtail.metrics import Difference
from longtail.posthoc import Affine
from longtail.recipes.fix import MOST_NUMBERS, rows_to_fit_on

Counts: TypeAlias = npt.NDArray[np.int64] | None


def scores_to_fit_on(table: ScoreTable, carried: Prior | None, counts: Counts, seed: int) -> Scores:
    """The labelled scores of the table; of a huge one a part, whole for the small classes."""
    if table.labels is None:
        raise ValueError(
            f"{table.path} has no labels, and a fix is fitted on labelled scores: give them with "
            "--labels, or apply a fix that was fitted before with --with"
        )
    chosen = rows_to_fit_on(as_tensor(table.labels), table.num_classes, seed)
    rows = None if chosen is None else chosen.numpy()
    return table.as_scores(carried=carried, counts=counts, rows=rows)


def scores_to_estimate_from(table: ScoreTable, carried: Prior | None, seed: int) -> Scores:
    """The scores of the table without their labels; of a huge one a part, drawn at random."""
    most, chosen = MOST_NUMBERS // table.num_classes, None
    if table.num_rows > most:
        drawn = np.random.default_rng(seed).choice(table.num_rows, most, replace=False)
        chosen = np.sort(drawn)
    scores = table.as_scores(carried=carried, rows=chosen)
    return replace(scores, labels=None, counts=None, split=None)


def adjusted(scores: Scores, step: Affine) -> Scores:
    """The scores after all adjusters as one, number for number as `write_fixed` compares them."""
    logits = as_kind_of(_moved(as_tensor(scores.logits), step), scores.logits)
    return replace(scores, logits=logits, carried=step.carried)


def _moved(rows: Tensor, step: Affine) -> Tensor:
    wide = wide_dtype(rows.dtype)
    return rows.to(wide) * step.scale.to(wide) + step.shift.to(wide)


def write_fixed(
    table: ScoreTable,
    step: Affine,
    place: Path,
    counts: Counts,
    compare_under: Prior | None,
    advance: Callable[[int], None],
    compare: bool = True,
) -> Difference | None:
    """Write the adjusted table, and compare before and after if it has labels.

    Args:
        table: The scores as the model gives them.
        step: All adjusters as one.
        place: The .safetensors file to write.
        counts: Training samples of each class, if known.
        compare_under: Where labels follow this prior; None for the samples as they are.
        advance: Called with the number of rows of each block that is done.
        compare: Whether to; what was fitted on the table itself should not be.
    """
    both = None
    if compare and table.labels is not None:
        seen = np.bincount(table.labels, minlength=table.num_classes)
        both = Difference(table.num_classes, compare_under, counts, label_counts=seen)
    with open_score_writer(
        place,
        table.num_rows,
        table.num_classes,
        table.dtype,
        labels=table.labels,
        carried=step.carried,
        counts=counts,
        classes=table.classes,
        split=table.split,
    ) as writer:
        for block in table.blocks():
            before = as_tensor(block.logits)
            after = _moved(before, step)
            writer.write(after)
            if both is not None and block.labels is not None:
                both.add(before, after, as_tensor(block.labels))
            advance(len(before))
    return both
