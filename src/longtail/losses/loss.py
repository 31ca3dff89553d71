r"""What every loss has in common: what it declares, what it accepts, how it reduces.

    ℓ(q, f) = Σ_y q_y · α_y · w_y · ℓ(y, f)

for soft labels q; a hard label is the q with a single one. α are the paper's class weights, w the
user's. In a mean, α divides by the number of samples; w divides by Σ w as in torch (for soft
labels torch divides by the number of samples, and so do we).

With label smoothing ε, labels and prior change together, to (1−ε)·q + ε/C and π̃ = (1−ε)·π + ε/C:
wherever a formula has the train prior π, the loss has π̃, and what it carries is said of the
smoothed labels. Σ_y of the smoothed label needs no array of labels:

    ℓ̃(q, f) = (1−ε)·ℓ(q, f) + ε · mean_y α_y · w_y · ℓ(y, f)
"""

from abc import ABC, abstractmethod
from typing import Literal, TypedDict, Unpack

import torch
from torch import Tensor

from longtail.core.arrays import ArrayLike
from longtail.core.numbers import check_number, check_whole
from longtail.core.prior import Prior, PriorLike, full_prior
from longtail.core.tensors import (
    along_classes,
    as_tensor,
    label_tensor,
    per_class_tensor,
    wide_dtype,
)
from longtail.losses.class_axis import ClassAxis
from longtail.losses.constants import ConstantsModule
from longtail.losses.kernel import Share, can_look, weighted


class LossOptions(TypedDict, total=False):
    """The options that every loss takes, named as in torch.nn.CrossEntropyLoss; and class_dim."""

    weight: ArrayLike | None
    ignore_index: int
    reduction: Literal["mean", "sum", "none"]
    label_smoothing: float
    class_dim: int | None


def label_prior(train: PriorLike, options: LossOptions) -> Prior:
    """What the labels follow that a loss learns from: train, smoothed if the loss smooths them."""
    return full_prior(train, "train").smoothed(options.get("label_smoothing", 0.0))


class Loss(ConstantsModule, ABC):
    """A loss on logits that says which prior a model trained with it carries.

    Call it as `loss(logits, labels)`. Logits have shape (N, C) or (N, C, d, ...), or their classes
    on axis `class_dim`; labels are class indices of shape (N, ...) or probabilities of the logits'
    shape. float16 and bfloat16 logits are computed in float32. Shapes and types are checked, values
    are not: that would cost as much as the loss.

    Args:
        train: The prior the batches follow, sampler included: a Prior or class counts. Every class
            must have samples: give classes without any by `Prior.of(counts, zeros="smooth")`.
        carried: What the logits carry when the batches follow `train` and labels are smoothed as
            `label_smoothing` says (`label_prior`); None if that is no prior.
        alpha: The paper's class weights, or None for ones.
        weight: The user's class weights; they change what is carried to weight · carried.
        ignore_index: Samples with this label do not count. For class indices only.
        reduction: "mean", "sum" or "none".
        label_smoothing: ε in [0, 1): a label becomes (1−ε)·label + ε/C, as in torch, and the prior
            of the loss with it. Do not smooth labels yourself as well. What is carried is exact
            for the smoothed labels; for the true ones it is an approximation, whose error
            docs/soft-labels.md states.
        class_dim: The axis of the classes; None for 1, with a warning where the last axis fits the
            labels too.
    """

    needs_features: bool = False
    takes_soft_labels: bool = True
    alpha: Tensor | None
    weight: Tensor | None
    carried_log: Tensor | None
    batches_log: Tensor

    def __init__(
        self,
        train: PriorLike,
        carried: Prior | None,
        alpha: Tensor | None = None,
        **options: Unpack[LossOptions],
    ) -> None:
        super().__init__()
        unknown = options.keys() - LossOptions.__annotations__.keys()
        if unknown:
            raise TypeError(
                f"{type(self).__name__} takes the options "
                f"{', '.join(LossOptions.__annotations__)}, got {', '.join(sorted(unknown))}"
            )
        batches = full_prior(train, "train")
        self.num_classes = batches.num_classes
        self.ignore_index = check_whole(options.get("ignore_index", -100), "ignore_index")
        self.reduction = options.get("reduction", "mean")
        if self.reduction not in ("mean", "sum", "none"):
            raise ValueError(f'reduction must be "mean", "sum" or "none", got {self.reduction!r}')
        self.label_smoothing = check_number(
            options.get("label_smoothing", 0.0), "label_smoothing", least=0, below=1
        )
        self.class_axis = ClassAxis(options.get("class_dim"))
        weight = options.get("weight")
        if weight is not None:
            weight = per_class_tensor(weight, self.num_classes, "weight", least="zero")
        if weight is not None and carried is not None:
            # A class of weight zero is never learned, and what is then carried is no prior.
            carried = carried.reweighted(weight) if (weight > 0).all() else None
        self.hold("alpha", alpha)
        self.hold("weight", weight)
        self.hold("carried_log", None if carried is None else as_tensor(carried.log))
        self.hold("batches_log", as_tensor(batches.log))

    @property
    def batches(self) -> Prior:
        """The prior the batches are to follow: what was given as `train`."""
        return Prior.from_log(self.batches_log)

    @property
    def carried(self) -> Prior | None:
        """The prior a model trained with this loss carries; None where that is no prior."""
        return None if self.carried_log is None else Prior.from_log(self.carried_log)

    def forward(self, logits: Tensor, labels: Tensor, features: Tensor | None = None) -> Tensor:
        """The reduced loss. `features` are for losses on embeddings; others do not look at them."""
        return self.of_rows(*self.class_axis.first(logits, labels, self.num_classes))

    def of_rows(self, logits: Tensor, labels: Tensor) -> Tensor:
        """The reduced loss of logits whose classes are on axis 1."""
        if labels.is_floating_point():
            return self._of_soft(logits, labels)
        return self._of_hard(logits, labels)

    @abstractmethod
    def label_losses(self, logits: Tensor, labels: Tensor) -> Tensor:
        """ℓ(y_i, f_i) for class indices in range, shape (N, ...), without α and w."""

    def summed_losses(self, logits: Tensor, labels: Tensor, share: Share) -> Tensor:
        """Their sum, each sample weighted by its `share` or all by one: some can do it cheaper."""
        return weighted(self.label_losses(logits, labels), share)

    @abstractmethod
    def class_losses(self, logits: Tensor) -> Tensor:
        """ℓ(y, f_i) for every label y, shape (N, C, ...), without α and w."""

    def _of_hard(self, logits: Tensor, labels: Tensor) -> Tensor:
        if labels.shape != logits.shape[:1] + logits.shape[2:] or labels.dtype == torch.bool:
            raise ValueError(
                f"labels for logits of shape {tuple(logits.shape)} must be integers of shape "
                f"{tuple(logits.shape[:1] + logits.shape[2:])}, or probabilities of the logits' "
                f"shape; got {labels.dtype} of shape {tuple(labels.shape)}"
            )
        index = labels.long()
        if not can_look(logits) or not index.numel():
            return self._of_some(logits, index)
        try:
            if not self.label_smoothing and all_count(index, self.ignore_index):
                return self._of_all(logits, index)
            return self._of_some(logits, index)
        except (IndexError, RuntimeError):
            counted = index.masked_fill(index == self.ignore_index, 0).flatten()
            label_tensor(counted, self.num_classes)  # says it in a sentence, if it is that
            raise

    def _of_all(self, logits: Tensor, index: Tensor) -> Tensor:
        """The loss of samples that all count: the kernel sums, which is cheaper."""
        factor, weight = self._factors(index, logits)
        if self.reduction == "none":
            losses = self.label_losses(logits, index)
            return losses if factor is None else losses * factor
        scale = 1.0 / index.numel() if self.reduction == "mean" and weight is None else 1.0
        if factor is None:
            return self.summed_losses(logits, index, scale)
        if self.reduction == "mean" and weight is not None:
            return self.summed_losses(logits, index, factor / weight.sum())
        return self.summed_losses(logits, index, factor * scale)

    def _of_some(self, logits: Tensor, labels: Tensor) -> Tensor:
        """The loss of samples some of which may be ignored."""
        kept = labels != self.ignore_index
        index = labels * kept  # any valid index will do where the loss is masked
        losses = self.sample_losses(logits, index).masked_fill(~kept, 0.0)
        if self.reduction == "none":
            return losses
        if self.reduction == "sum":
            return losses.sum()
        weight = None if self.weight is None else self.cast("weight", logits)[index]
        return losses.sum() / (kept if weight is None else weight * kept).sum()

    def sample_losses(self, logits: Tensor, index: Tensor) -> Tensor:
        """α·w·ℓ of each sample, of its smoothed label if labels are smoothed; indices in range."""
        factor, _ = self._factors(index, logits)
        if not self.label_smoothing:
            losses = self.label_losses(logits, index)
            return losses if factor is None else losses * factor
        every = self.class_losses(logits)
        own = every.gather(1, index.unsqueeze(1)).squeeze(1)
        return self._smoothed(own if factor is None else own * factor, every)

    def _smoothed(self, own: Tensor, every: Tensor) -> Tensor:
        """ℓ̃, from α·w·ℓ of the labels as they are and ℓ of every label."""
        for factor in (self.alpha, self.weight):
            if factor is not None:
                every = every * along_classes(factor.to(every), every)
        return torch.lerp(own, every.mean(dim=1), self.label_smoothing)

    def _factors(self, index: Tensor, logits: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """α·w and w of each sample; None for ones."""
        weight = None if self.weight is None else self.cast("weight", logits)[index]
        if self.alpha is None:
            return weight, weight
        alpha = self.cast("alpha", logits)[index]
        return (alpha if weight is None else alpha * weight), weight

    def _of_soft(self, logits: Tensor, labels: Tensor) -> Tensor:
        if labels.shape != logits.shape:
            raise ValueError(
                f"labels of a floating type are class probabilities and must have the logits' "
                f"shape {tuple(logits.shape)}, got {tuple(labels.shape)}; "
                "class indices must be integers"
            )
        if self.ignore_index >= 0:
            raise ValueError(
                f"ignore_index={self.ignore_index} applies to class indices, "
                "but the labels are probabilities; leave those samples out instead"
            )
        shares = labels.to(wide_dtype(logits.dtype))
        for factor in (self.alpha, self.weight):
            if factor is not None:
                shares = shares * along_classes(factor.to(shares), logits)
        every = self.class_losses(logits)
        losses = (shares * every).sum(dim=1)
        if self.label_smoothing:
            losses = self._smoothed(losses, every)
        if self.reduction == "none":
            return losses
        return losses.sum() if self.reduction == "sum" else losses.mean()

    def extra_repr(self) -> str:
        """What it carries, for print(loss)."""
        shown = f"num_classes={self.num_classes}, carried={self.carried!r}"
        if self.label_smoothing:
            shown += f" of labels smoothed by {self.label_smoothing:g}"
        return shown


def all_count(labels: Tensor, ignore_index: int) -> bool:
    """Whether no sample is ignored."""
    if ignore_index < 0 and labels.numel():
        return labels.min().item() >= 0  # a single pass: wrong labels are found later
    return bool((labels != ignore_index).all())
