"""Which samples a fit trains on and which it is judged by, and the unit they are measured in.

With a validation part, methods are fitted on the train part and judged by that. Without one, by
folds of the train part, each sample by what was fitted without it. The test part decides nothing.
Features are divided by one number, their spread about their means in the train part, since the
rates of the papers' recipes are for features of about that size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from longtail.core.scores import Split
from longtail.core.tensors import as_tensor
from longtail.data import stratified_folds
from longtail.engine import FeatureRows, Features


@dataclass(frozen=True, eq=False)
class Pair:
    """Samples to fit on, and others to judge by: positions in the same rows, or rows of their own.

    Attributes:
        rows: What is fitted on is among these.
        known: Their labels.
        fitted: Positions to fit on; None for all.
        held_rows: What is judged by is among these.
        held_known: Their labels.
        held: Positions to judge by; None for all.
    """

    rows: Tensor
    known: Tensor
    fitted: Tensor | None
    held_rows: Tensor
    held_known: Tensor
    held: Tensor | None

    @property
    def features(self) -> Tensor:
        """What is fitted on: a copy, so that a fold takes no memory while it is not in use."""
        return self.rows if self.fitted is None else self.rows[self.fitted]

    @property
    def labels(self) -> Tensor:
        """Their labels."""
        return self.known if self.fitted is None else self.known[self.fitted]

    @property
    def held_features(self) -> Tensor:
        """What is judged by."""
        return self.held_rows if self.held is None else self.held_rows[self.held]

    @property
    def held_labels(self) -> Tensor:
        """Their labels."""
        return self.held_known if self.held is None else self.held_known[self.held]


def in_memory(features: Features, split: Split, unit: float = 1.0) -> tuple[Tensor, Tensor]:
    """Features of a part in float32 or float64, divided by the unit, and labels."""
    part = features.part(split)
    FeatureRows(part.features).check_finite(f"features of {split}")
    wide = np.float64 if part.features.dtype == np.float64 else np.float32
    rows = torch.from_numpy(np.array(part.features, wide))
    return rows.div_(unit), torch.from_numpy(np.array(part.labels))


def feature_unit(features: Features) -> float:
    """The root of the mean variance of the numbers of a training sample."""
    rows, _ = in_memory(features, "train")
    unit = float(rows.double().var(dim=0, correction=0).mean().sqrt())
    if not unit > 1e-12 * float(rows.abs().max()):
        raise ValueError("the features of all training samples are the same: nothing to learn from")
    return unit


def pairs(features: Features, folds: int, seed: int, unit: float = 1.0) -> list[Pair]:
    """The validation part against the train part, or the folds of the train part."""
    rows, labels = in_memory(features, "train", unit)
    if "validation" in features.parts:
        return [Pair(rows, labels, None, *in_memory(features, "validation", unit), None)]
    number = fold_numbers(labels, folds, seed)
    return [
        Pair(
            rows,
            labels,
            (number != fold).nonzero().flatten(),
            rows,
            labels,
            (number == fold).nonzero().flatten(),
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
        from_one = missing.tolist() == [0] and features.classes is None
        hint = "; classes count from 0: if your labels begin at 1, take 1 away" if from_one else ""
        raise ValueError(
            f"{len(missing)} of {features.num_classes} classes have no training samples "
            f"({', '.join(names)}{', ...' if len(missing) > 5 else ''}); leave them out, "
            f"since nothing can be learned about them{hint}"
        )
    if "validation" in features.parts:
        judged = len(np.unique(features.part("validation").labels))
    else:
        judged = int((features.counts > 1).sum())
    if judged < 2:
        raise ValueError(
            f"methods can only be compared on held-out samples of two classes or more, and there "
            f"are such of {judged}; give more training samples or a validation part"
        )
