"""Which samples a fit trains on and which it is judged by, and the unit they are measured in.

With a validation part, methods are fitted on the train part and judged by that. Without one, by
folds of the train part, each sample by what was fitted without it. The test part decides nothing.
Features are divided by one number, their spread about their means in the train part, since the
rates of the papers' recipes are for features of about that size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from longtail.core.arrays import Array, ArrayLike, as_numpy
from longtail.core.scores import Split
from longtail.core.tensors import as_tensor
from longtail.data import Features, stratified_folds
from longtail.data.tables.features import checked_features
from longtail.engine import FeatureRows

Labelled: TypeAlias = tuple[Array, ArrayLike]  # features of shape (N, D) and labels


@dataclass(frozen=True, eq=False)
class Samples:
    """Features and labels: those of an array, or some of them, copied only while they are in use.

    Attributes:
        all_features: Of shape (N, D).
        all_labels: Class indices.
        at: Positions in these; None for all.
    """

    all_features: Tensor
    all_labels: Tensor
    at: Tensor | None = None

    @property
    def features(self) -> Tensor:
        """The features of these samples."""
        return self.all_features if self.at is None else self.all_features[self.at]

    @property
    def labels(self) -> Tensor:
        """Their labels."""
        return self.all_labels if self.at is None else self.all_labels[self.at]


class Fold(NamedTuple):
    """Samples to fit on, and others to judge by."""

    train: Samples
    validation: Samples


class FitSamples(NamedTuple):
    """All samples of a fit, divided by the unit.

    Attributes:
        train: The train part, all of it.
        folds: The validation part against it, or the folds of it.
        test: The test part, if there is one.
        unit: What features were divided by.
    """

    train: Samples
    folds: list[Fold]
    test: Samples | None
    unit: float


def labelled_features(
    features: Features | Array,
    labels: ArrayLike | None,
    validation: Labelled | None,
    test: Labelled | None,
    classes: Sequence[str] | None,
) -> Features:
    """An opened feature file as it is, or arrays as one."""
    if isinstance(features, Features):
        if any(part is not None for part in (labels, validation, test, classes)):
            raise ValueError(
                "a feature file holds its own labels, parts and class names; give features alone, "
                "or arrays of features and labels"
            )
        return features
    if labels is None:
        raise ValueError("features that are an array need labels: fit(features, labels)")
    arrays: dict[Split, Labelled | None] = {
        "train": (features, labels),
        "validation": validation,
        "test": test,
    }
    parts = {
        split: (as_numpy(part[0]), as_numpy(part[1]))
        for split, part in arrays.items()
        if part is not None
    }
    return checked_features(parts, classes=classes)


def fit_samples(features: Features, folds: int, seed: int) -> FitSamples:
    """Read all parts, check them, and divide them by the unit."""
    _check_classes(features)
    train = _in_memory(features, "train")
    unit = _spread(train.features)
    others = {
        split: _in_memory(features, split)
        for split in ("validation", "test")
        if split in features.parts
    }
    for part in (train, *others.values()):
        part.all_features.div_(unit)
    if "validation" in others:
        pairs = [Fold(train, others["validation"])]
    else:
        number = fold_numbers(train.labels, folds, seed)
        pairs = [
            Fold(_where(train, number != fold), _where(train, number == fold))
            for fold in range(folds)
        ]
    return FitSamples(train, pairs, others.get("test"), unit)


def fold_numbers(labels: Tensor, folds: int, seed: int) -> Tensor:
    """The fold of each sample; -1 for the only sample of a class, which is always trained on."""
    number = as_tensor(stratified_folds(labels, folds, seed)).clone()
    number[torch.bincount(labels)[labels] == 1] = -1
    return number


def _where(samples: Samples, chosen: Tensor) -> Samples:
    return Samples(samples.all_features, samples.all_labels, chosen.nonzero().flatten())


def _in_memory(features: Features, split: Split) -> Samples:
    """A part in float32 or float64, copied."""
    part = features.part(split)
    FeatureRows(part.features).check_finite(f"features of {split}")
    wide = np.float64 if part.features.dtype == np.float64 else np.float32
    rows = torch.from_numpy(np.array(part.features, wide))
    return Samples(rows, torch.from_numpy(np.array(part.labels)))


def _spread(rows: Tensor) -> float:
    """The root of the mean variance of the numbers of a training sample."""
    spread = float(rows.double().var(dim=0, correction=0).mean().sqrt())
    if not spread > 1e-12 * float(rows.abs().max()):
        raise ValueError("the features of all training samples are the same: nothing to learn from")
    return spread


def _check_classes(features: Features) -> None:
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
            f"methods can only be compared on validation samples of two classes or more, and there "
            f"are such of {judged}; give more training samples or a validation part"
        )
