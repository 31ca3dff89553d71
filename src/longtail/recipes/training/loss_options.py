"""The losses as a recipe names them: the class names of `longtail.losses` in lower case.

Their options are those of the classes; the prior comes from the data and the sampler. What needs a
number a class or a matrix (ConsistentMargin, PairwiseMargin) is for Python.
"""

from typing import Annotated, Literal, TypeAlias

import msgspec

from longtail.recipes.training.section import (
    Above,
    Named,
    NotBelow,
    Section,
    Share,
    ShareBelowOne,
    Whole,
)


class Smoothable(Named, frozen=True):
    """A loss that smooths labels, and its prior with them; terms on features see them as they are.

    Attributes:
        label_smoothing: ε: a label becomes (1−ε)·label + ε/C.
    """

    label_smoothing: ShareBelowOne = 0.0


class CrossEntropy(Smoothable, frozen=True, tag="cross_entropy"):
    """Plain cross-entropy (L1)."""


class Balanced(Smoothable, frozen=True, tag="balanced"):
    """Weights 1/π (L2)."""


class Adaptive(Smoothable, frozen=True, tag="adaptive"):
    """Margins π^(−1/4) (L3)."""


class Equalized(Smoothable, frozen=True, tag="equalized"):
    """Margins for the negatives alone, or rare negatives dropped at random (L4)."""

    tau: NotBelow | None = None
    threshold: Share | None = None
    drop_rate: Share | None = None


class LogitAdjusted(Smoothable, frozen=True, tag="logit_adjusted"):
    """Logit adjustment (L5)."""

    tau: float = 1.0


class LogitAdjustedAdaptive(Smoothable, frozen=True, tag="logit_adjusted_adaptive"):
    """Both margins (L6)."""


class TwoScale(Smoothable, frozen=True, tag="two_scale"):
    """Logit adjustment with two τ (L7)."""

    tau_pos: float = 1.0
    tau_neg: float = 1.0


class WeightedLogitAdjusted(Smoothable, frozen=True, tag="weighted_logit_adjusted"):
    """Weights and adjustment, consistent for every τ (L8)."""

    tau: float = 0.5


class BalancedSoftmax(Smoothable, frozen=True, tag="balanced_softmax"):
    """Logit adjustment at τ = 1 (L10)."""


class ClassBalanced(Smoothable, frozen=True, tag="class_balanced"):
    """Weights by the effective number, on cross-entropy or, with gamma, on focal (L11)."""

    beta: ShareBelowOne = 0.9999
    gamma: NotBelow | None = None


class Focal(Smoothable, frozen=True, tag="focal"):
    """Softmax focal (L12)."""

    gamma: NotBelow = 2.0


class SigmoidFocal(Smoothable, frozen=True, tag="sigmoid_focal"):
    """One-vs-rest focal (L12)."""

    gamma: NotBelow = 2.0


class LDAM(Smoothable, frozen=True, tag="ldam"):
    """Margins on cosines (L13), on a cosine head."""

    max_margin: NotBelow = 0.5
    scale: Above = 30.0
    scale_in: Literal["loss", "head"] = "loss"


class LADE(Named, frozen=True, tag="lade"):
    """Balanced softmax and LADER (L14)."""

    alpha: NotBelow = 0.1
    lam: NotBelow = 0.01
    variant: Literal["paper", "released"] = "paper"


class ELM(Smoothable, frozen=True, tag="elm"):
    """Logit adjustment and the pull term (L15)."""

    lam: NotBelow = 0.01
    margins: Literal["relative", "prior", "sqrt_prior", "sqrt_count"] = "relative"
    scale: Above = 1.0


class EstimatedOffset(Smoothable, frozen=True, tag="estimated_offset"):
    """The objective of EO (L21), on a head estimated_offset."""

    center_weight: NotBelow = 1.0
    uniform_weight: NotBelow = 1.0
    rate: Share = 0.5


class Experts(Smoothable, frozen=True, tag="experts"):
    """Logit adjustment with a τ for each expert, on a head experts."""

    taus: Annotated[tuple[float, ...], msgspec.Meta(min_length=1)] = (0.0, 1.0, 2.0)


class VS(Smoothable, frozen=True, tag="vs"):
    """Logits scaled and adjusted (L22)."""

    gamma: float = 0.3
    tau: float = 1.0


class CDT(Smoothable, frozen=True, tag="cdt"):
    """Logits scaled (L22)."""

    gamma: float = 0.3


class LabelAwareSmoothing(Smoothable, frozen=True, tag="label_aware_smoothing"):
    """More smoothing for larger classes (L22)."""

    head: ShareBelowOne = 0.4
    tail: ShareBelowOne = 0.1
    shape: Literal["linear", "sine"] = "linear"


Loss: TypeAlias = (
    CrossEntropy
    | Balanced
    | Adaptive
    | Equalized
    | LogitAdjusted
    | LogitAdjustedAdaptive
    | TwoScale
    | WeightedLogitAdjusted
    | BalancedSoftmax
    | ClassBalanced
    | Focal
    | SigmoidFocal
    | LDAM
    | LADE
    | ELM
    | EstimatedOffset
    | Experts
    | VS
    | CDT
    | LabelAwareSmoothing
)

# Terms on the whole batch or on features, which soft labels would make no sense for.
HARD_LABELS_ONLY = (LADE, ELM, EstimatedOffset)


class DeferredReweighting(Section, frozen=True):
    """DRW: class-balanced weights from epoch `start` on, counted from 0.

    Attributes:
        start: The first epoch with weights.
        beta: How much samples of one class repeat each other.
        resample: Whether to draw by the weights instead of weighing the loss (DRS).
    """

    start: Whole
    beta: ShareBelowOne = 0.9999
    resample: bool = False
