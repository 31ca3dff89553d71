r"""Losses that are sums over samples: how they are computed, weighted, smoothed and reduced.

    ℓ(y, f) = α_y · −log softmax(retarget(f, carried, α·train))[y]

A loss that is a change of prior is the cross-entropy of its logits moved from the prior that they
are to carry to the one that the batches follow, in which class y weighs α_y (the paper's class
weights): a model that fits the moved logits has logits that carry `carried`. LA eq. 11 with
Δ_{yy'} = b_{y'} − b_y, b = log α·train − log carried. Losses that are no change of prior have
formulas of their own and declare None.

    ℓ(q, f) = Σ_y q_y · w_y · ℓ(y, f)

for soft labels q; a hard label is the q with a single one. w are the user's class weights. In a
mean, α divides by the number of samples; w divides by Σ w as in torch (for soft labels torch
divides by the number of samples, and so do we).

With label smoothing ε, labels and prior change together, to (1−ε)·q + ε/C and π̃ = (1−ε)·π + ε/C:
wherever a formula has the train prior π, the loss has π̃, and what it carries holds for the
smoothed labels. Σ_y of the smoothed label needs no array of labels:

    ℓ̃(q, f) = (1−ε)·ℓ(q, f) + ε · mean_y w_y · ℓ(y, f)
"""

from typing import Any, Unpack

import torch
from torch import Tensor

from longtail.core.arrays import ArrayLike
from longtail.core.labels import check_labels
from longtail.core.numbers import check_number, check_per_class, check_whole
from longtail.core.prior import Prior, PriorLike, full_prior
from longtail.core.retarget import prior_offset
from longtail.core.tensors import along_classes, wide_dtype
from longtail.losses import kernel
from longtail.losses.inputs import ClassAxis, all_count
from longtail.losses.kernel import Share, is_eager_cpu
from longtail.losses.loss import ConstantsModule, Loss, LossOptions, label_prior


class SampleLoss(ConstantsModule, Loss):
    """A loss that is a sum over samples: the cross-entropy of moved logits, unless overridden.

    A loss of another formula overrides `label_losses` and `class_losses`.

    Args:
        train: The prior the batches follow, sampler included. Every class must have samples: give
            classes without any by `Prior.of(counts, zeros="smooth")`.
        carried: What the logits are to carry when the labels follow `label_prior`: they are moved
            from it. None if that is no prior: they are not moved.
        alpha: The paper's class weights.
        weight: The user's class weights; they change what is carried to weight · carried.
        ignore_index: Samples with this class index do not count.
        label_smoothing: ε in [0, 1). Do not smooth labels yourself as well. What is carried is
            exact for the smoothed labels; docs/soft-labels.md states the error for the true ones.
        class_dim: The axis of the classes; None for 1, with a warning where the last fits too.
    """

    alpha: Tensor | None
    weight: Tensor | None
    shift: Tensor | None
    carried_log: Tensor | None
    batches_log: Tensor

    def __init__(
        self,
        train: PriorLike,
        carried: Prior | None,
        alpha: ArrayLike | None = None,
        **options: Unpack[LossOptions],
    ) -> None:
        super().__init__()
        names = LossOptions.__annotations__
        unknown = ", ".join(sorted(options.keys() - names.keys()))
        if unknown:
            name = type(self).__name__
            raise TypeError(f"{name} takes the options {', '.join(names)}, got {unknown}")
        batches = full_prior(train, "train")
        self.num_classes = batches.num_classes
        self.ignore_index = check_whole(options.get("ignore_index", -100), "ignore_index")
        self.reduction = options.get("reduction", "mean")
        if self.reduction not in ("mean", "sum", "none"):
            raise ValueError(f'reduction must be "mean", "sum" or "none", got {self.reduction!r}')
        epsilon = options.get("label_smoothing", 0.0)
        self.label_smoothing = check_number(epsilon, "label_smoothing", least=0, below=1)
        self.class_axis = ClassAxis(options.get("class_dim"))
        followed = label_prior(batches, options)
        if alpha is not None:
            followed = followed.reweighted(alpha)
        is_moved = carried is not None and carried != followed
        self._hold("shift", prior_offset(carried, followed) if is_moved else None)
        weight = options.get("weight")
        if weight is not None:
            weight = check_per_class(weight, self.num_classes, "weight", least="zero")
            if carried is not None:
                # A class of weight zero is never learned, and what is then carried is no prior.
                carried = carried.reweighted(weight) if (weight > 0).all() else None
        self._hold("alpha", alpha)
        self._hold("weight", weight)
        self._hold("carried_log", None if carried is None else carried.log)
        self._hold("batches_log", batches.log)

    def forward(self, logits: Tensor, labels: Tensor, features: Tensor | None = None) -> Tensor:
        """The reduced loss."""
        return self.of_rows(*self.class_axis.first(logits, labels, self.num_classes))

    def of_rows(self, logits: Tensor, labels: Tensor) -> Tensor:
        """The reduced loss of logits whose classes are on axis 1."""
        if labels.is_floating_point():
            return self._of_soft(logits, labels)
        shape = logits.shape[:1] + logits.shape[2:]
        if labels.shape != shape or labels.dtype == torch.bool:
            raise ValueError(
                f"labels for logits of shape {tuple(logits.shape)} must be integers of shape "
                f"{tuple(shape)}, or probabilities of the logits' shape; got {labels.dtype} of "
                f"shape {tuple(labels.shape)}"
            )
        index = labels.long()
        if not is_eager_cpu(logits) or not index.numel():
            return self._of_some(logits, index)
        try:
            if not all_count(index, self.ignore_index):
                return self._of_some(logits, index)
            if self.alpha is None and self.weight is None and self._is_summed:  # as usual
                share = 1.0 if self.reduction == "sum" else 1 / index.numel()
                return self.label_losses(logits, index, share)
            return self._of_all(logits, index)
        except (IndexError, RuntimeError):
            counted = index.masked_fill(index == self.ignore_index, 0).flatten()
            check_labels(counted, self.num_classes)  # says it in a sentence, if it is that
            raise

    def _of_all(self, logits: Tensor, index: Tensor) -> Tensor:
        """The loss of samples that all count: the kernel sums, which is cheaper."""
        if not self._is_summed:
            return self._of_some(logits, index)
        factor, weight = self._factors(index, logits)
        total = 1 if self.reduction == "sum" else index.numel() if weight is None else weight.sum()
        return self.label_losses(logits, index, 1 / total if factor is None else factor / total)

    def _of_some(self, logits: Tensor, labels: Tensor) -> Tensor:
        """The loss of samples some of which may be ignored."""
        kept = labels != self.ignore_index
        index = labels * kept  # any valid index will do where the loss is masked
        losses = self.sample_losses(logits, index).masked_fill(~kept, 0.0)
        if self.reduction != "mean":
            return losses if self.reduction == "none" else losses.sum()
        weight = None if self.weight is None else self._cast("weight", logits)[index]
        return losses.sum() / (kept if weight is None else weight * kept).sum()

    def label_losses(self, logits: Tensor, labels: Tensor, share: Share = None) -> Tensor:
        """ℓ(y_i, f_i) for class indices in range, without α and w, or their sum by `share`."""
        return kernel.label_losses(logits, labels, self._along("shift", logits), None, share)

    def class_losses(self, logits: Tensor) -> Tensor:
        """ℓ(y, f_i) for every label y, shape (N, C, ...), without α and w."""
        return kernel.class_losses(logits, self._along("shift", logits), None)

    @property
    def _is_summed(self) -> bool:
        """Whether the kernel sums: what each sample adds is asked for nowhere."""
        return self.reduction != "none" and not self.label_smoothing

    def _along(self, name: str, logits: Tensor) -> Tensor | None:
        """Constants to broadcast over the logits, if there are any."""
        values: Tensor | None = getattr(self, name)
        if values is None:
            return None
        cast = values.to(logits.device, wide_dtype(logits.dtype))
        return cast if logits.dim() == 2 else along_classes(cast, logits)

    def sample_losses(self, logits: Tensor, index: Tensor) -> Tensor:
        """α·w·ℓ of each sample, of its smoothed label if labels are smoothed; indices in range."""
        factor, _ = self._factors(index, logits)
        if not self.label_smoothing:
            losses = self.label_losses(logits, index)
            return losses if factor is None else losses * factor
        every = self.class_losses(logits)
        own = every.gather(1, index.unsqueeze(1)).squeeze(1)
        return self._smoothed(own if factor is None else own * factor, every)

    def _factors(self, index: Tensor, logits: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """α·w and w of each sample; None for ones."""
        weight = None if self.weight is None else self._cast("weight", logits)[index]
        if self.alpha is None:
            return weight, weight
        alpha = self._cast("alpha", logits)[index]
        return (alpha if weight is None else alpha * weight), weight

    def _of_soft(self, logits: Tensor, labels: Tensor) -> Tensor:
        if labels.shape != logits.shape:
            raise ValueError(
                "labels of a floating type are class probabilities and must have the logits' shape "
                f"{tuple(logits.shape)}, got {tuple(labels.shape)}; class indices must be integers"
            )
        if self.ignore_index >= 0:
            raise ValueError(
                f"ignore_index={self.ignore_index} applies to class indices, "
                "but the labels are probabilities; leave those samples out instead"
            )
        every = self.class_losses(logits)
        losses = (self._weighed(labels.to(wide_dtype(logits.dtype))) * every).sum(dim=1)
        if self.label_smoothing:
            losses = self._smoothed(losses, every)
        if self.reduction == "mean":
            return losses.mean()
        return losses.sum() if self.reduction == "sum" else losses

    def _smoothed(self, own: Tensor, every: Tensor) -> Tensor:
        """ℓ̃, from α·w·ℓ of the labels as they are and ℓ of every label."""
        return torch.lerp(own, self._weighed(every).mean(dim=1), self.label_smoothing)

    def _weighed(self, of_classes: Tensor) -> Tensor:
        """Numbers of shape (N, C, ...) times α·w of their classes."""
        for factor in (self.alpha, self.weight):
            if factor is not None:
                of_classes = of_classes * along_classes(factor.to(of_classes), of_classes)
        return of_classes

    @property
    def carried(self) -> Prior | None:
        """The prior a model trained with this loss carries; None where that is no prior."""
        return None if self.carried_log is None else Prior.from_log(self.carried_log)

    @property
    def batches(self) -> Prior:
        """The prior the batches are to follow: what was given as `train`."""
        return Prior.from_log(self.batches_log)

    @property
    def class_weight(self) -> Tensor | None:
        """The user's class weights."""
        return self.weight

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        if f"{prefix}batches_log" in state_dict:  # of the priors there depends if logits are moved
            is_moved = f"{prefix}shift" in state_dict
            self._hold("shift", torch.zeros_like(self.batches_log) if is_moved else None)
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def extra_repr(self) -> str:
        """What it carries, for print(loss)."""
        epsilon = self.label_smoothing
        smoothed = f" of labels smoothed by {epsilon:g}" if epsilon else ""
        return f"num_classes={self.num_classes}, carried={self.carried!r}{smoothed}"
