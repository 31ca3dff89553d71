"""Scores at the door of everything that is fitted on them: labelled, and not the test set's."""

from dataclasses import dataclass

import torch
from torch import Tensor

from longtail.core import Prior, Scores
from longtail.core.tensors import as_tensor
from longtail.losses.minimise import for_autograd
from longtail.metrics.samples import weights_to


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Labelled samples that something may be fitted on.

    Attributes:
        logits: Shape (N, C), in the dtype they came in.
        labels: Class indices, int64.
        carried: The prior the logits carry, or None if that is not known.
        prior: The label prior of these samples themselves; it has zeros for absent classes.
        classes: What the classes are called, so that an error can name them.
    """

    logits: Tensor
    labels: Tensor
    carried: Prior | None
    prior: Prior
    classes: tuple[str, ...] | None = None

    def weights_to(self, target: Prior) -> Tensor:
        """What each sample counts where labels follow the target, float64, summing to one.

        Absent classes cannot count: the others share what the target gives to them.
        """
        weights = torch.from_numpy(weights_to(target, self.labels))
        return weights / weights.sum()


def held_out(scores: Scores, who: str) -> HeldOut:
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
    labels = for_autograd(as_tensor(scores.labels))
    return HeldOut(
        logits=for_autograd(as_tensor(scores.logits)),
        labels=labels.cpu(),
        carried=scores.carried,
        prior=Prior.from_labels(labels.cpu(), scores.num_classes, zeros="keep"),
        classes=scores.classes,
    )


def effective_samples(weights: Tensor) -> float:
    """(Σw)² / Σw²: how many equally weighted samples tell as much as these (Kish)."""
    return float(weights.sum().square() / weights.square().sum())
