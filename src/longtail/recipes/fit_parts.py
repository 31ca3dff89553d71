"""Which samples a fit trains on and which it is judged by.

With a validation part, methods are fitted on the train part and judged by that. Without one, by
folds of the train part, each sample by what was fitted without it. The test part decides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from longtail.core.arrays import as_tensor
from longtail.data import stratified_folds
from longtail.engine import Features, Part


@dataclass(frozen=True, eq=False)
class Pair:
    """Samples to fit on, and others to judge by."""

    features: Tensor
    labels: Tensor
    held_features: Tensor
    held_labels: Tensor


def in_memory(part: Part) -> tuple[Tensor, Tensor]:
    """Features in float32 or float64, and labels."""
    wide = np.float64 if part.features.dtype == np.float64 else np.float32
    return torch.from_numpy(np.array(part.features, wide)), torch.from_numpy(np.array(part.labels))


def pairs(features: Features, folds: int, seed: int) -> list[Pair]:
    """The validation part against the train part, or the folds of the train part."""
    rows, labels = in_memory(features.part("train"))
    if "validation" in features.parts:
        return [Pair(rows, labels, *in_memory(features.part("validation")))]
    number = fold_numbers(labels, folds, seed)
    return [
        Pair(
            rows[number != fold],
            labels[number != fold],
            rows[number == fold],
            labels[number == fold],
        )
        for fold in range(folds)
    ]


def fold_numbers(labels: Tensor, folds: int, seed: int) -> Tensor:
    """The fold of each sample; -1 for the only sample of a class, which is always trained on."""
    number = as_tensor(stratified_folds(labels, folds, seed)).clone()
    number[torch.bincount(labels)[labels] == 1] = -1
    return number


def check_parts(features: Features) -> None:
    """Raise unless there is something to fit on and something to judge by."""
    missing = np.flatnonzero(features.counts == 0)
    if len(missing):
        names = [features.classes[k] if features.classes else str(k) for k in missing[:5]]
        raise ValueError(
            f"{len(missing)} of {features.num_classes} classes have no training samples "
            f"({', '.join(names)}{', ...' if len(missing) > 5 else ''}); leave them out, "
            "since nothing can be learned about them"
        )
    if "validation" not in features.parts and not (features.counts > 1).any():
        raise ValueError(
            "every class has a single training sample, so none can be held out to choose by; "
            "give a validation part"
        )
