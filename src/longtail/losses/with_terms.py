r"""Any loss with terms on the features beside it, each from some epoch on.

    total = ℓ(logits, labels) + Σ_k weight_k · [epoch ≥ start_k] · Ω_k(features, labels)

Until its `start` a term counts nothing, but sees the features: centres are then those of features
that ℓ alone has shaped. So begins DRO-LT in several stages (Samuel and Chechik, ICCV 2021, as ELM
§5 tells it): centres from training with cross-entropy, training with these and the term, and a
balanced classifier on the features, which is a head of its own, such as cRT.

Carries: what ℓ carries. Terms shape the features, not what logits mean.
"""

from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from longtail.core.numbers import check_number, check_whole
from longtail.losses.inputs import check_rows, counted_rows
from longtail.losses.loss import ComposedLoss, Loss
from longtail.losses.processes import whole_batch
from longtail.losses.regularizer import Regularizer, term_value


class AddedTerm(NamedTuple):
    """A term on features, what it is multiplied with, and the epoch it begins to count in."""

    term: Regularizer
    weight: float
    start: int = 0


class LossWithTerms(ComposedLoss):
    """A loss plus terms on features: `LossWithTerms(loss, [(Center(dim, classes), 0.1)])`.

    A term is given with its weight, and the epoch it starts in if that is not the first, counted
    from 0; training says which epoch comes by `set_epoch`. Labels are class indices. With
    torch.distributed initialised it is the loss of the whole batch, unless all terms have
    `gather=False`.

    >>> from longtail.losses import Center, CrossEntropy
    >>> loss = LossWithTerms(CrossEntropy([70, 25, 5]), [(Center(2, 3), 0.1)])
    >>> logits, features = torch.zeros(2, 3), torch.tensor([[1.0, 0.0], [3.0, 4.0]])
    >>> loss(logits, torch.tensor([0, 2]), features=features)  # log 3 + 0.1 · (1 + 25) / 2
    tensor(2.399)
    >>> loss.carried
    Prior([0.7, 0.25, 0.05])
    """

    def __init__(
        self,
        loss: Loss,
        terms: Iterable[AddedTerm | tuple[Regularizer, float] | tuple[Regularizer, float, int]],
    ) -> None:
        super().__init__()
        added = [AddedTerm(*each) for each in terms]
        if not added:
            raise ValueError("there is no term to add; take the loss itself")
        self.loss, self.terms = loss, nn.ModuleList(each.term for each in added)
        self.weights = tuple(
            check_number(each.weight, "the weight of a term", least=0) for each in added
        )
        self.starts = tuple(check_whole(each.start, "start", least=0) for each in added)
        self.resamples = loss.resamples
        self.set_epoch(0)

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch comes, counted from 0."""
        self.loss.set_epoch(epoch)
        self._take_options()
        self.needs_features, self.takes_soft_labels = True, False
        self.gathers |= any(term.gather for term in self._each())
        # forward looks at these alone: a compiler then compiles anew only where one begins.
        self.counted = tuple(epoch >= start for start in self.starts)

    @property
    def part(self) -> Loss:
        """The loss on logits."""
        return self.loss

    @property
    def stages(self) -> tuple[Loss, ...]:
        """Itself, and those of a loss that changes as epochs pass."""
        return (*self.loss.stages, self) if len(self.loss.stages) > 1 else (self,)

    @property
    def sampling_weights(self) -> Tensor:
        """Those of the loss on logits."""
        return self.loss.sampling_weights

    def forward(self, logits: Tensor, labels: Tensor, features: Tensor | None = None) -> Tensor:
        """The loss of the whole batch, its terms included."""
        if features is None:
            raise ValueError("terms need features: call loss(logits, labels, features=...)")
        check_rows(self.class_axis.move(features), labels, type(self.terms[0]).__name__)
        own = logits, labels, features
        whole = whole_batch(*own) if self.gathers else own
        total = self.loss(*(own if self.loss.gathers else whole))
        labels, rows = whole[1], self.class_axis.move(whole[2])
        counted, indices = counted_rows(rows, labels, self.ignore_index)
        for term, weight, is_counted in zip(self._each(), self.weights, self.counted, strict=True):
            with torch.set_grad_enabled(is_counted and torch.is_grad_enabled()):
                value = term_value(term, counted, indices, labels, self)
            if is_counted:
                total = total + weight * value
        return total

    def _each(self) -> list[Regularizer]:
        return [term for term in self.terms if isinstance(term, Regularizer)]

    def extra_repr(self) -> str:
        """Weights and starts, for print(loss)."""
        return f"weights={self.weights}, starts={self.starts}"
