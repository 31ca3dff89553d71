r"""Terms beside a loss on logits: on the features, or on the logits of the whole batch.

    total = ℓ(logits, labels) + strength · Ω(rows, labels)

What the total carries is claimed for ℓ alone: Ω shapes the features, not what logits mean.
"""

from abc import ABC, abstractmethod
from typing import Literal, Unpack

import torch
from torch import Tensor

from longtail.core.numbers import check_number, check_whole
from longtail.core.prior import PriorLike
from longtail.core.tensors import wide_dtype
from longtail.losses.class_axis import ClassAxis
from longtail.losses.constants import ConstantsModule
from longtail.losses.kernel import can_look
from longtail.losses.loss import LossOptions, all_count
from longtail.losses.margin import MarginLoss
from longtail.losses.processes import whole_batch


class Regularizer(ConstantsModule, ABC):
    """A term of rows (N, D), features or logits, and their class indices.

    Call it as `regularizer(rows, labels)`; rows of shape (N, D, d, ...) are N·d·... rows. Half
    precision is computed in float32. Soft labels are refused: the term asks which rows are of one
    class. With torch.distributed initialised, every process sees the whole batch and returns its
    value, and after DDP's averaging the gradient is that of one process with the whole batch.

    Args:
        ignore_index: Rows with this label are left out.
        gather: Whether to see the batches of all processes, or this process's alone.
    """

    def __init__(self, *, ignore_index: int = -100, gather: bool = True) -> None:
        super().__init__()
        self.ignore_index = check_whole(ignore_index, "ignore_index")
        self.gather = gather
        self.axis = ClassAxis()

    def forward(self, rows: Tensor, labels: Tensor) -> Tensor:
        """The mean of the term over the rows; zero if there are none."""
        check_rows(rows, labels, type(self).__name__)
        self.axis.warn_of_two(rows, labels)
        if self.gather:
            rows, labels = whole_batch(rows, labels)
        return self.mean(*counted_rows(rows, labels, self.ignore_index))

    @abstractmethod
    def values(self, rows: Tensor, labels: Tensor) -> Tensor:
        """The term of each row, shape (N,), or of the batch as a whole, shape ().

        Rows are of shape (N, D) in float32 or float64, labels of shape (N,) in int64.
        """

    def mean(self, rows: Tensor, labels: Tensor) -> Tensor:
        """The mean of the values; zero, and not NaN, where there are none. Some do it cheaper."""
        values = self.values(rows, labels)
        return values.mean() if values.numel() else values.sum()


class RegularizedLoss(MarginLoss):
    """A margin loss on logits plus `strength` times a term on features or logits.

    The user's `weight` weighs the loss on logits, not the term, and `label_smoothing` smooths the
    labels of the loss on logits alone: the term asks which rows are of one class. With
    torch.distributed initialised it is the loss of the whole batch, and with reduction="none" that
    of all its samples.

    Args:
        train: The prior the batches follow.
        regularizer: The term; its `gather` is that of the whole.
        strength: What the term counts.
        on: What the rows of the term are.
        negative: b of the margin loss, or None for plain cross-entropy.
    """

    takes_soft_labels = False

    def __init__(
        self,
        train: PriorLike,
        regularizer: Regularizer,
        strength: float,
        *,
        on: Literal["features", "logits"],
        negative: Tensor | None,
        **options: Unpack[LossOptions],
    ) -> None:
        super().__init__(train, negative=negative, **options)
        self.regularizer = regularizer
        self.strength = check_number(strength, "the strength of the term", least=0)
        self.needs_features = on == "features"

    def forward(self, logits: Tensor, labels: Tensor, features: Tensor | None = None) -> Tensor:
        """The loss of the whole batch, its term included."""
        name = type(self).__name__
        logits, labels = self.class_axis.first(logits, labels, self.num_classes)
        check_rows(logits, labels, name)
        batch = [logits, labels]
        if self.needs_features:
            if features is None:
                raise ValueError(f"{name} needs features: call loss(logits, labels, features=...)")
            features = self.class_axis.move(features)
            check_rows(features, labels, name)
            batch.append(features)
        if self.regularizer.gather:
            batch = list(whole_batch(*batch))
        logits, labels, rows = batch[0], batch[1], batch[2 if self.needs_features else 0]
        return self.of_batch(logits, labels, rows)

    def of_batch(self, logits: Tensor, labels: Tensor, rows: Tensor) -> Tensor:
        """The loss of a batch that is whole: both terms, one after the other."""
        losses = self.of_rows(logits, labels)
        counted, indices = counted_rows(rows, labels, self.ignore_index)
        if self.reduction == "mean":
            term = self.regularizer.mean(counted, indices)
        else:
            term = self._reduced(self.regularizer.values(counted, indices), labels)
        return torch.add(losses, term, alpha=self.strength)

    def _reduced(self, values: Tensor, labels: Tensor) -> Tensor:
        kept = labels != self.ignore_index
        if values.dim() == 0:  # a term of the whole batch counts in every sample
            values = values.expand(int(kept.sum()))
        if self.reduction == "sum":
            return values.sum()
        spread = torch.zeros(labels.shape, dtype=values.dtype, device=values.device)
        return spread.masked_scatter(kept, values)


def check_rows(rows: Tensor, labels: Tensor, name: str) -> None:
    """Raise unless rows are of a floating type and labels class indices of their shape."""
    if not rows.is_floating_point() or rows.dim() < 2:
        raise ValueError(
            f"{name} takes rows of a floating type and shape (N, D), "
            f"got {rows.dtype} of shape {tuple(rows.shape)}"
        )
    if labels.is_floating_point():
        raise ValueError(
            f"{name} takes class indices, not soft labels: it asks which rows are of one class; "
            "mix the loss on logits and this term separately"
        )
    if labels.dtype == torch.bool or labels.shape != rows.shape[:1] + rows.shape[2:]:
        raise ValueError(
            f"{name} takes integer labels of shape {tuple(rows.shape[:1] + rows.shape[2:])} for "
            f"rows of shape {tuple(rows.shape)}, got {labels.dtype} of shape {tuple(labels.shape)}"
        )


def counted_rows(rows: Tensor, labels: Tensor, ignore_index: int) -> tuple[Tensor, Tensor]:
    """Flat rows and labels without the ignored, in a dtype safe for sums of exponentials."""
    if rows.dim() > 2:
        rows = rows.movedim(1, -1).flatten(0, -2)
    rows, labels = rows.to(wide_dtype(rows.dtype)), labels.flatten().long()
    # Picking rows copies them, and its gradient does too.
    if can_look(rows) and all_count(labels, ignore_index):
        return rows, labels
    kept = labels != ignore_index
    return rows[kept], labels[kept]
