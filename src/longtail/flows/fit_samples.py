"""What a fit stands on: samples to train on and to judge by, their unit, and the weight decay.

With a validation part, methods are fitted on the train part and judged by that. Without one, by
folds of the train part, each sample by what was fitted without it. The test part decides nothing.
Features are divided by one number, their spread about their means in the train part, since the
rates of the papers' recipes are for features of about that size.

The weight decay is the one whose linear layer, trained by cross-entropy and moved to the target,
has the lowest log-loss on the validation samples: steadier than errors, of which rare classes have
few. It is looked for on a grid of factors 10^½, from the middle outwards as long as it gets better,
and then at the lowest point of the parabola through the best and its neighbours.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from longtail.core import Prior, Scores
from longtail.core.arrays import Array, ArrayLike, as_numpy
from longtail.core.scores import Split
from longtail.core.tensors import as_tensor
from longtail.data import Features, read_features, stratified_folds
from longtail.data.tables.features import SPLITS, checked_features
from longtail.engine import FeatureRows, fit_linear
from longtail.flows.samples import are_names
from longtail.losses import CrossEntropy
from longtail.metrics import evaluate

FeaturesLike: TypeAlias = Features | Array | str | os.PathLike[str]
Labelled: TypeAlias = tuple[Array, ArrayLike]  # features of shape (N, D) and labels

LOOKED_AT = 1000  # rows that tell whether samples are the same
_LEAST = 1e-150  # that features may vary by
_FACTOR = 10**0.5
_MIDDLE = 3e-3  # for features of unit spread
_MOST_STEPS = 8  # to either side
_TOLERANCE = 1e-5


@dataclass(frozen=True, eq=False)
class Samples:
    """Features and labels of an array, or some of them, copied only while they are in use."""

    all_features: Tensor
    all_labels: Tensor
    at: Tensor | None = None  # positions in these; None for all

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
    """All samples of a fit, divided by the unit."""

    train: Samples  # all of the train part
    folds: list[Fold]  # the validation part against it, or the folds of it
    test: Samples | None
    unit: float


class DecayChoice(NamedTuple):
    """The weight decay with the lowest log-loss, and each fold's layer with it."""

    decay: float
    layers: list[nn.Linear]
    losses: dict[float, float]  # log-loss of every weight decay that was tried


def labelled_features(
    features: FeaturesLike,
    labels: ArrayLike | None,
    validation: Labelled | None,
    test: Labelled | None,
    classes: Sequence[str] | None,
) -> Features:
    """A feature file, opened or by its path, as it is; or arrays as one."""
    if isinstance(features, str | os.PathLike):
        return labelled_features(read_features(features), labels, validation, test, classes)
    if isinstance(features, Features):
        if any(part is not None for part in (labels, validation, test, classes)):
            raise ValueError(
                "a feature file holds its own labels, parts and class names; give features alone, "
                "or arrays of features and labels"
            )
        return features
    if labels is None:
        raise ValueError("features that are an array need labels: fit(features, labels)")
    arrays = zip(SPLITS, ((features, labels), validation, test), strict=True)
    present = {split: part for split, part in arrays if part is not None}
    if classes is None and are_names(labels):
        each = (np.unique(np.asarray(truth)).astype(str) for _, truth in present.values())
        classes = np.unique(np.concatenate(list(each))).tolist()
    parts = {
        split: (as_numpy(rows), _indices(truth, classes))
        for split, (rows, truth) in present.items()
    }
    return checked_features(parts, classes=classes)


def _indices(labels: ArrayLike, classes: Sequence[str] | None) -> npt.NDArray[np.int64]:
    """Labels as class indices, also those that are names."""
    if classes is None or not are_names(labels):
        return as_numpy(labels)
    numbers = {name: number for number, name in enumerate(classes)}
    names = np.asarray(labels).astype(str).tolist()
    if unknown := set(names) - numbers.keys():
        raise ValueError(f"a label is {min(unknown)!r}, which is none of the classes")
    return np.array([numbers[name] for name in names])


def fit_samples(features: Features, folds: int, seed: int) -> FitSamples:
    """Read all parts, check them, and divide them by the unit."""
    _check_classes(features)
    _check_others(features)
    parts = {split: _in_memory(features, split) for split in features.parts}
    train, validation = parts["train"], parts.get("validation")
    unit = _unit(train.features)
    for part in parts.values():
        part.all_features.div_(unit)
    if validation is not None:
        return FitSamples(train, [Fold(train, validation)], parts.get("test"), unit)
    number = folds_but_single_samples(train.labels, folds, seed)

    def where(chosen: Tensor) -> Samples:
        return Samples(train.all_features, train.all_labels, chosen.nonzero().flatten())

    pairs = [Fold(where(number != fold), where(number == fold)) for fold in range(folds)]
    return FitSamples(train, pairs, parts.get("test"), unit)


def _unit(features: Tensor) -> float:
    """The root of the mean variance of the numbers of a sample."""
    # Of numbers up to two: squares of tiny and of huge ones are beyond what float64 holds.
    largest = float(features.abs().max())
    scale = math.ldexp(1.0, math.frexp(largest)[1] - 1)  # a power of two, which changes no digit
    unit = scale * float((features.double() / scale).var(dim=0, correction=0).mean().sqrt())
    if not unit > 1e-12 * largest:
        raise ValueError("the features of all training samples are the same: nothing to learn from")
    if not _LEAST < unit < 1 / _LEAST:  # so that a weight decay for them is a number
        raise ValueError(
            f"the features vary by {unit:.3g}, which is too {'little' if unit < 1 else 'much'} to "
            f"compute with; divide them all by {unit:.3g}"
        )
    return unit


def folds_but_single_samples(labels: Tensor, folds: int, seed: int) -> Tensor:
    """The fold of each sample; -1 for the only sample of a class, which is always trained on."""
    number = as_tensor(stratified_folds(labels, folds, seed)).clone()
    number[torch.bincount(labels)[labels] == 1] = -1
    return number


def choose_decay(
    folds: Sequence[Fold], target: Prior, progress: Callable[[], None] = lambda: None
) -> DecayChoice:
    """The best weight decay for linear layers of these folds; `progress` is called after each."""
    layers: dict[float, list[nn.Linear]] = {}  # by the step on the grid, 0 in the middle
    losses: dict[float, float] = {}

    def decay(step: float) -> float:
        return float(_MIDDLE * _FACTOR**step)

    def loss(step: float, near: float) -> float:
        """The log-loss at a step; layers start from those at another that is near."""
        if step not in losses:
            starts = layers.get(near, [None] * len(folds))
            layers[step] = [
                linear_layer(fold.train, target.num_classes, decay(step), start)
                for fold, start in zip(folds, starts, strict=True)
            ]
            losses[step] = _log_loss(layers[step], folds, target)
            progress()
        return losses[step]

    best = 0.0
    for step in (1, -1):
        while abs(best) < _MOST_STEPS:
            here = loss(best, best)
            if loss(best + step, best) >= here:
                break
            best += step
    if {best - 1, best + 1} <= losses.keys():
        low, middle, high = (losses[best + step] for step in (-1, 0, 1))
        bend = low - 2 * middle + high
        between = best + 0.5 * (low - high) / bend if bend > 0 else best
        if loss(between, best) < middle:
            best = between
    return DecayChoice(decay(best), layers[best], {decay(step): losses[step] for step in losses})


def linear_layer(
    samples: Samples,
    num_classes: int,
    decay: float,
    start: nn.Linear | None,
    tolerance: float = _TOLERANCE,
) -> nn.Linear:
    """A layer trained by cross-entropy, whose logits carry the prior of the labels."""
    features, labels = samples.features, samples.labels
    loss = CrossEntropy(Prior.from_labels(labels, num_classes))
    return fit_linear(features, labels, loss, weight_decay=decay, start=start, tolerance=tolerance)


def _log_loss(layers: Sequence[nn.Linear], folds: Sequence[Fold], target: Prior) -> float:
    """Of the validation parts of all folds together, moved to the target."""
    logits = []
    for layer, fold in zip(layers, folds, strict=True):
        carried = Prior.from_labels(fold.train.labels, target.num_classes)
        moved = Scores(layer(fold.validation.features), carried=carried).under(target)
        logits.append(as_tensor(moved.logits))
    labels = torch.cat([fold.validation.labels for fold in folds])
    scores = Scores(torch.cat(logits), labels, carried=target, split="validation")
    loss = evaluate(scores, target=target)["nll"]
    assert loss is not None  # there are samples
    return loss


def _in_memory(features: Features, split: Split) -> Samples:
    """A part in float32 or float64, copied."""
    part = features.part(split)
    FeatureRows(part.features).check_finite(f"features of {split}")
    wide = np.float64 if part.features.dtype == np.float64 else np.float32
    rows = torch.from_numpy(np.array(part.features, wide))
    return Samples(rows, torch.from_numpy(np.array(part.labels)))


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


def _check_others(features: Features) -> None:
    """Raise if one part has the samples of another: nothing may be judged on what it learned."""
    for (split, one), (other, two) in combinations(features.parts.items(), 2):
        mine, theirs = (np.asarray(part.features[:LOOKED_AT]) for part in (one, two))
        if np.array_equal(one.labels, two.labels) and np.array_equal(mine, theirs):
            raise ValueError(
                f"the {other} part has the samples of the {split} part, on which a model looks "
                "better than it is; give others, or leave it out"
            )
