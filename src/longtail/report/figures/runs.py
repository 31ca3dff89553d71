"""What figures of labelled scores are given: one set of scores, or several under their names."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from torch import Tensor

from longtail.core import Scores, shot_groups
from longtail.core.arrays import ArrayLike
from longtail.core.tensors import as_tensor, count_tensor

Runs: TypeAlias = Scores | Mapping[str, Scores]
Groups: TypeAlias = Mapping[str, ArrayLike]
Floats: TypeAlias = npt.NDArray[np.float64]


class LabelledRun(NamedTuple):
    """Scores that have labels, and the name the legend gives them."""

    name: str
    scores: Scores
    labels: Tensor


def labelled(runs: Runs) -> list[LabelledRun]:
    """The runs by name, or a ValueError if one has no labels or another number of classes."""
    named = {"model": runs} if isinstance(runs, Scores) else dict(runs)
    if not named:
        raise ValueError("a figure needs scores, got none; give Scores or a dict of them")
    found = []
    for name, scores in named.items():
        if scores.labels is None or not len(scores):
            raise ValueError(
                f"a figure compares scores with labels, but {name!r} has none; "
                "give them: Scores(logits, labels=labels, ...)"
            )
        found.append(LabelledRun(name, scores, as_tensor(scores.labels).cpu()))
    sizes = {run.name: run.scores.num_classes for run in found}
    if len(set(sizes.values())) > 1:
        raise ValueError(f"runs in one figure must have the same classes, got {sizes}")
    return found


def counts_for(runs: Sequence[LabelledRun], counts: ArrayLike | None) -> Tensor:
    """The training counts: those given, or those the scores know."""
    known = [run.scores.counts for run in runs if run.scores.counts is not None]
    if counts is None and not known:
        raise ValueError(
            "classes are ordered by their training counts, which the scores do not know; "
            "give counts, or Scores(logits, labels, counts=counts)"
        )
    chosen = known[0] if counts is None else counts
    return count_tensor(chosen, runs[0].scores.num_classes).cpu()


def names_of(runs: Sequence[LabelledRun]) -> tuple[str, ...] | None:
    """The names of the classes, if any run knows them."""
    return next((run.scores.classes for run in runs if run.scores.classes is not None), None)


def masks_of(groups: Groups | None, counts: Tensor) -> dict[str, Tensor]:
    """A boolean mask over the classes for each group: those given, or many, medium and few."""
    if groups is None:
        masks = {name: as_tensor(mask) for name, mask in shot_groups(counts).items()}
        return {name: mask for name, mask in masks.items() if mask.any()}
    given = {name: as_tensor(mask).cpu().bool() for name, mask in groups.items()}
    for name, mask in given.items():
        if mask.shape != counts.shape:
            raise ValueError(
                f"group {name!r} must be a mask over {len(counts)} classes, "
                f"got shape {tuple(mask.shape)}"
            )
    return given


def floats(values: ArrayLike) -> Floats:
    """Values as float64 NumPy numbers, for drawing."""
    found: Floats = as_tensor(values).detach().cpu().double().numpy()
    return found
