"""What every loss declares, and the options that all of them take."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, TypedDict

import torch
from torch import Tensor, nn

from longtail.core.arrays import ArrayLike
from longtail.core.prior import Prior, PriorLike, full_prior
from longtail.core.tensors import as_tensor, wide_dtype
from longtail.losses.inputs import ClassAxis

Reduction: TypeAlias = Literal["mean", "sum", "none"]


class LossOptions(TypedDict, total=False):
    """The options that every loss takes, named as in torch.nn.CrossEntropyLoss; and class_dim."""

    weight: ArrayLike | None
    ignore_index: int
    reduction: Reduction
    label_smoothing: float
    class_dim: int | None


def label_prior(train: PriorLike, options: LossOptions) -> Prior:
    """What the labels follow that a loss learns from: train, smoothed if the loss smooths them."""
    return full_prior(train, "train").smoothed(options.get("label_smoothing", 0.0))


class Loss(nn.Module, ABC):
    """A loss on logits that says which prior a model trained with it carries.

    Logits have shape (N, C) or (N, C, d, ...), or their classes on axis `class_dim`; labels are
    class indices of shape (N, ...) or probabilities of the logits' shape. Half precision is
    computed in float32. Shapes and types are checked, values are not: that would cost as much as
    the loss. Training tells every loss the epoch, and draws samples by its `sampling_weights`.
    """

    num_classes: int
    reduction: Reduction
    ignore_index: int
    label_smoothing: float
    class_axis: ClassAxis
    needs_features: bool = False  # whether it is called as loss(logits, labels, features)
    takes_soft_labels: bool = True
    gathers: bool = False  # whether the value is that of the batches of all processes
    resamples: bool = False  # whether samples are to be drawn by `sampling_weights`

    if TYPE_CHECKING:  # nn.Module's own takes and returns anything

        def __call__(
            self, logits: Tensor, labels: Tensor, features: Tensor | None = None
        ) -> Tensor:
            """The reduced loss: `forward`."""

    @abstractmethod
    def forward(self, logits: Tensor, labels: Tensor, features: Tensor | None = None) -> Tensor:
        """The reduced loss; only losses on embeddings look at the features."""

    @property
    @abstractmethod
    def carried(self) -> Prior | None:
        """The prior a model trained with this loss carries; None where that is no prior."""

    @property
    @abstractmethod
    def batches(self) -> Prior:
        """The prior the batches are to follow: what was given as `train`."""

    @property
    @abstractmethod
    def class_weight(self) -> Tensor | None:
        """The user's class weights, by whose sum a mean is divided."""

    @property
    def stages(self) -> tuple[Loss, ...]:
        """The losses that it is in turn as epochs pass: itself alone, but for `Deferred`."""
        return (self,)

    @property
    def sampling_weights(self) -> Tensor:
        """How often to draw a sample of each class in this epoch, float64 on the CPU."""
        return torch.ones(self.num_classes, dtype=torch.float64)

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch comes, counted from 0: for losses that change with it."""


class ComposedLoss(Loss):
    """A loss made of others: what it declares and its options are those of its `part`."""

    @property
    @abstractmethod
    def part(self) -> Loss:
        """The loss that it declares the same as."""

    @property
    def carried(self) -> Prior | None:
        """That of its part."""
        return self.part.carried

    @property
    def batches(self) -> Prior:
        """That of its part."""
        return self.part.batches

    @property
    def class_weight(self) -> Tensor | None:
        """That of its part."""
        return self.part.class_weight

    def _take_options(self) -> None:
        taken = ("num_classes", "reduction", "ignore_index", "label_smoothing", "needs_features")
        for name in (*taken, "takes_soft_labels", "gathers", "class_axis"):
            setattr(self, name, getattr(self.part, name))


class ConstantsModule(nn.Module):
    """Keeps constants as float64 buffers, to be cast where they are used."""

    def _hold(self, name: str, values: ArrayLike | None) -> None:
        """Keep a copy as a buffer: loading a state writes into it."""
        self.register_buffer(name, None if values is None else as_tensor(values).clone())

    def _cast(self, name: str, like: Tensor) -> Tensor:
        """The constants in the dtype and on the device that computations on `like` need."""
        return self.get_buffer(name).to(like.device, wide_dtype(like.dtype))

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        before = dict(self._buffers)
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        for name, old in before.items():
            new = self._buffers[name]
            if old is not None and new is not None and new.dtype != old.dtype:
                self._buffers[name] = old.to(new.device)
        return self
