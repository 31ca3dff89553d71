"""Scores at the door of everything that is fitted on them: labelled, and not the test set's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from longtail.core import Prior, Scores
from longtail.core.arrays import ArrayLike, as_numpy

Rows: TypeAlias = npt.NDArray[Any]
Floats: TypeAlias = npt.NDArray[np.float64]
Indices: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Validation:
    """Labelled samples that something may be fitted on.

    Attributes:
        logits: Shape (N, C), in the dtype they came in; bfloat16 as float32.
        labels: Class indices.
        carried: The prior the logits carry, or None if that is not known.
        prior: The label prior of these samples themselves; it has zeros for absent classes.
        classes: What the classes are called, so that an error can name them.
    """

    logits: Rows
    labels: Indices
    carried: Prior | None
    prior: Prior
    classes: tuple[str, ...] | None = None

    def weights_to(self, target: Prior) -> Floats:
        """What each sample counts where labels follow the target, summing to one."""
        counts = np.bincount(self.labels, minlength=target.num_classes)
        return weights_to(target, self.labels, 1 / counts[self.labels])

    def first_ruled_out(self) -> int | None:
        """The first sample whose logits rule its own label out; None if there is none."""
        own = self.logits[np.arange(len(self.labels)), self.labels]
        return int(np.isneginf(own).argmax()) if np.isneginf(own).any() else None


def check_validation(scores: Scores, who: str) -> Validation:
    """The samples, or a ValueError that says why `who` must not be fitted on them."""
    if scores.split == "test":
        raise ValueError(
            f"{who} must not be fitted on split='test': what is chosen on the test set makes its "
            "results look better than they are; fit on held-out samples of the training data"
        )
    if scores.labels is None:
        raise ValueError(f"{who} is fitted on labelled scores, but these have no labels")
    if not len(scores):
        raise ValueError(f"{who} needs samples to be fitted on, got none")
    labels = as_numpy(scores.labels)
    return Validation(
        logits=as_numpy(scores.logits),
        labels=labels,
        carried=scores.carried,
        prior=Prior.from_labels(labels, scores.num_classes, zeros="keep"),
        classes=scores.classes,
    )


def check_weights(weights: ArrayLike, num_samples: int) -> Floats:
    """One finite number a sample, none negative, or a ValueError."""
    checked = as_numpy(weights).astype(np.float64)
    if checked.shape != (num_samples,) or not (np.isfinite(checked) & (checked >= 0)).all():
        raise ValueError(
            f"weights must be finite numbers, none negative, one for each of {num_samples} "
            f"samples, got an array of shape {checked.shape}: {checked.ravel()[:10].tolist()}"
        )
    return checked


def weights_to(target: Prior, labels: Indices, shares: Floats) -> Floats:
    """The shares times what the target gives to each class, summing to one.

    Absent classes cannot count: the others share what the target gives to them.
    """
    weights = target.probs[labels] * shares
    total = weights.sum()
    if not total > 0:
        raise ValueError(
            "no sample counts: the target prior gives all to classes that have no samples here; "
            "use another target, or samples of its classes"
        )
    return np.asarray(weights / total)


def effective_samples(weights: Floats) -> float:
    """(Σw)² / Σw²: how many equally weighted samples tell as much as these (Kish)."""
    return float(weights.sum() ** 2 / np.square(weights).sum())
