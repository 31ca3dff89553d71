r"""Terms beside a loss on logits: on the features, or on the logits of the whole batch.

    total = ℓ(logits, labels) + strength · Ω(rows, labels)

What the total carries is claimed for ℓ alone: Ω shapes the features, not what logits mean.
"""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Literal, TypedDict

import torch
from torch import Tensor

from longtail.core.numbers import check_number, check_whole
from longtail.losses.inputs import ClassAxis, check_rows, counted_rows
from longtail.losses.loss import ComposedLoss, ConstantsModule, Loss
from longtail.losses.processes import whole_batch
from longtail.losses.sample_loss import SampleLoss


class TermOptions(TypedDict, total=False):
    """The options that every term takes."""

    ignore_index: int  # rows with this label are left out
    gather: bool  # whether to see the batches of all processes, or this process's alone


class Regularizer(ConstantsModule, ABC):
    """A term of rows (N, D), features or logits, and their class indices.

    Call it as `regularizer(rows, labels)`; rows of shape (N, D, d, ...) are N·d·... rows. Half
    precision is computed in float32. With torch.distributed initialised, every process sees the
    whole batch and returns its value, and after DDP's averaging the gradient is that of the whole.
    """

    if TYPE_CHECKING:  # nn.Module's own takes and returns anything

        def __call__(self, rows: Tensor, labels: Tensor) -> Tensor:
            """The mean of the term: `forward`."""

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
        """The term of each row (N, D), shape (N,), or of the batch as a whole, shape ()."""

    def mean(self, rows: Tensor, labels: Tensor) -> Tensor:
        """The mean of the values; zero, and not NaN, where there are none. Some do it cheaper."""
        values = self.values(rows, labels)
        return values.mean() if values.numel() else values.sum()


class RegularizedLoss(ComposedLoss):
    """A loss on logits plus `strength` times a term on features or logits.

    `weight` and `label_smoothing` are for the loss on logits alone. With torch.distributed
    initialised, and unless the term's `gather` is False, it is the loss of the whole batch, and
    with reduction="none" that of all its samples.
    """

    def __init__(
        self,
        logit_loss: SampleLoss,
        regularizer: Regularizer,
        strength: float,
        *,
        on: Literal["features", "logits"],
    ) -> None:
        super().__init__()
        self.logit_loss, self.regularizer = logit_loss, regularizer
        self._take_options()
        self.strength = check_number(strength, "the strength of the term", least=0)
        self.needs_features = on == "features"
        self.takes_soft_labels = False
        self.gathers = regularizer.gather

    @property
    def part(self) -> SampleLoss:
        """The loss on logits."""
        return self.logit_loss

    def forward(self, logits: Tensor, labels: Tensor, features: Tensor | None = None) -> Tensor:
        """The loss of the whole batch, its term included."""
        name, axis = type(self).__name__, self.class_axis
        logits, labels = axis.first(logits, labels, self.num_classes)
        check_rows(logits, labels, name)
        batch: tuple[Tensor, ...] = (logits, labels)
        if self.needs_features:
            if features is None:
                raise ValueError(f"{name} needs features: call loss(logits, labels, features=...)")
            features = axis.move(features)
            check_rows(features, labels, name)
            batch += (features,)
        if self.gathers:
            batch = whole_batch(*batch)
        return self.of_batch(batch[0], batch[1], batch[2 if self.needs_features else 0])

    def of_batch(self, logits: Tensor, labels: Tensor, rows: Tensor) -> Tensor:
        """The loss of a batch that is whole: both terms, one after the other."""
        losses = self.logit_loss.of_rows(logits, labels)
        counted, indices = counted_rows(rows, labels, self.ignore_index)
        term = term_value(self.regularizer, counted, indices, labels, self)
        return torch.add(losses, term, alpha=self.strength)


def term_value(
    term: Regularizer, rows: Tensor, indices: Tensor, labels: Tensor, loss: Loss
) -> Tensor:
    """A term of the rows that count, reduced as the loss is whose labels are given."""
    if loss.reduction == "mean":
        return term.mean(rows, indices)
    values, kept = term.values(rows, indices), labels != loss.ignore_index
    if values.dim() == 0:  # a term of the whole batch counts in every sample
        values = values.expand(int(kept.sum()))
    if loss.reduction == "sum":
        return values.sum()
    spread = torch.zeros(labels.shape, dtype=values.dtype, device=values.device)
    return spread.masked_scatter(kept, values)
