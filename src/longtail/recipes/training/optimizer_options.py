"""How the weights move: the optimiser, its learning rate over the epochs, the second stage."""

from typing import Annotated, Literal, TypeAlias

import msgspec

from longtail.recipes.training.section import (
    Above,
    Named,
    NotBelow,
    Positive,
    Section,
    Share,
    ShareBelowOne,
    Whole,
)


class Optimizer(Section, frozen=True):
    """The optimiser.

    Attributes:
        name: "sgd" or "adamw", which without weight decay is Adam; momentum and nesterov are for
            SGD.
        lr: The rate that the schedule multiplies.
        head_lr: That of the head; None for the same.
        momentum: Of SGD.
        nesterov: Whether it is Nesterov's.
        weight_decay: On all weights.
        clip_norm: The largest norm of a gradient; None for any.
        accumulate: How many parts a batch is cut into.
    """

    name: Literal["sgd", "adamw"] = "sgd"
    lr: Above = 0.1
    head_lr: Above | None = None
    momentum: ShareBelowOne = 0.9
    nesterov: bool = False
    weight_decay: NotBelow = 0.0
    clip_norm: Above | None = None
    accumulate: Positive = 1


class ByEpochs(Named, frozen=True):
    """A curve over the epochs.

    Attributes:
        by_epoch: Whether the rate stays the same within an epoch, as in most published code.
    """

    by_epoch: bool = False


class Constant(ByEpochs, frozen=True, tag="constant"):
    """The same rate, after a warm-up in epochs."""

    warmup: Whole = 0
    warmup_start: Share = 0.0


class Steps(ByEpochs, frozen=True, kw_only=True, tag="steps"):
    """Times `decay` at each of the milestones, in epochs."""

    milestones: Annotated[tuple[Positive, ...], msgspec.Meta(min_length=1)]
    decay: Above = 0.1
    warmup: Whole = 0
    warmup_start: Share = 0.0

    def __post_init__(self) -> None:
        if list(self.milestones) != sorted(set(self.milestones)):
            raise ValueError(f"milestones must rise, got {list(self.milestones)}")
        if self.warmup > self.milestones[0]:
            raise ValueError(
                f"the warm-up of {self.warmup} epochs must be over by the first milestone, "
                f"{self.milestones[0]}"
            )


class Cosine(ByEpochs, frozen=True, tag="cosine"):
    """Half a cosine down to `end` of the rate, over all epochs."""

    end: Share = 0.0
    warmup: Whole = 0
    warmup_start: Share = 0.0


class OneCycle(ByEpochs, frozen=True, kw_only=True, tag="one_cycle"):
    """Up to the rate at `peak`, and down to `end` of it.

    A peak below 1 is a share of all epochs, from 1 on it is an epoch.
    """

    peak: NotBelow
    start: Share = 0.0
    end: Share = 0.0
    shape: Literal["linear", "cosine"] = "linear"


Schedule: TypeAlias = Constant | Steps | Cosine | OneCycle


class NearestClassMean(Named, frozen=True, tag="nearest_class_mean"):
    """Class means, nothing learned."""

    metric: Literal["euclidean", "cosine", "cl2n"] = "euclidean"


class LearnedNCM(Named, frozen=True, tag="learned_ncm"):
    """Class means that are learned; with τ they are told the counts (NCM eq. 9)."""

    tau: NotBelow = 0.0


class MultiNCM(Named, frozen=True, tag="multi_ncm"):
    """Learned means, then shared displacements of them."""

    tau: NotBelow = 0.0
    num_displacements: Positive = 20


class Retrained(Named, frozen=True, tag="crt"):
    """A new linear head on class-balanced batches (cRT)."""


class LearnableScale(Named, frozen=True, tag="lws"):
    """A scale for each row of the trained head (LWS)."""


SecondHead: TypeAlias = NearestClassMean | LearnedNCM | MultiNCM | Retrained | LearnableScale


class SecondStage(Section, frozen=True):
    """A head fitted on the features of the trained backbone.

    Attributes:
        heads: Which ones; each is measured.
        batch_norm: Whether the statistics stay those of training or are estimated anew (NCM A.4).
    """

    heads: Annotated[tuple[SecondHead, ...], msgspec.Meta(min_length=1)]
    batch_norm: Literal["keep", "reestimate"] = "keep"


class Target(Section, frozen=True):
    """Where the labels will follow another prior than in training.

    Attributes:
        prior: "uniform", "train", or a weight for each class.
        tau: How far to move there: 1 is all the way, "auto" is chosen on the validation part.
        criterion: What "auto" is chosen by.
    """

    prior: Literal["uniform", "train"] | tuple[NotBelow, ...] = "uniform"
    tau: float | Literal["auto"] = 1.0
    criterion: Literal["accuracy_under_target", "nll", "brier", "ece"] = "accuracy_under_target"

    def __post_init__(self) -> None:
        if self.tau != "auto" and self.criterion != "accuracy_under_target":
            raise ValueError("criterion is what tau is chosen by: set target.tau=auto too")
