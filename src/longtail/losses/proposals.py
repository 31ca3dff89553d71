r"""Where the negatives of sampled softmax come from, and how often each class is among them.

    independent   m classes, each drawn from q: class c comes m·q_c times on average
    distinct      each class is in or out by itself, in with π_c = min(1, λ·q_c), Σ_c π_c = m

There are m distinct classes on average and not each time: only where classes are in or out
independently of each other is a correction by −log π exact. Drawing takes as long as there are
classes drawn, however many there are. For distinct ones that is so because a Poisson process of
intensity μ_c = −log(1 − π_c) has an event with probability π_c, and the events of all processes are
a Poisson number of independent draws from μ/Σμ.
"""

import numpy as np
import torch
from torch import Tensor

from longtail.core.arrays import Floats
from longtail.core.numbers import check_number, check_whole
from longtail.core.prior import Prior
from longtail.losses.loss import ConstantsModule

_ALWAYS = 1 - 1e-12  # a class that is in with more than that is always in


def inclusion(proposal: Prior, number: int) -> Floats:
    """π_c = min(1, λ·q_c) with the sum `number`, which is at most that of the classes.

    >>> inclusion(Prior.of([80, 15, 5]), 2)
    array([1.  , 0.75, 0.25])
    """
    if number > proposal.num_classes:
        raise ValueError(
            f"at most all {proposal.num_classes} classes can be distinct, got "
            f"num_negatives={number}; with distinct=False a class may be drawn more than once"
        )
    falling = -np.sort(-proposal.probs)
    rest = falling[::-1].cumsum()[::-1]  # of this class and all that are rarer
    left = number - np.arange(len(falling))  # for them, if all the others are always in
    first = int(np.argmax(left * falling <= rest))
    share = left[first] / rest[first] if number < len(falling) else np.inf
    every = np.minimum(1.0, share * proposal.probs)
    return np.where(every > _ALWAYS, 1.0, every)


class ClassDraws(ConstantsModule):
    """Classes drawn from a proposal, by a seed; its state dict says which draw comes next."""

    state: Tensor
    cumulative: Tensor
    always: Tensor
    log_expected: Tensor

    def __init__(self, proposal: Prior, number: int | None, distinct: bool, seed: int) -> None:
        super().__init__()
        if number is None:
            raise ValueError("num_negatives must say how many classes to draw, got None")
        self.number, self.distinct = check_whole(number, "num_negatives", least=1), distinct
        expected, weights = number * proposal.probs, proposal.probs
        if distinct:
            expected = inclusion(proposal, number)
            weights = -np.log1p(-np.where(expected < 1, expected, 0.0))
        self._hold("always", np.flatnonzero(expected == 1) if distinct else np.arange(0))
        self._hold("cumulative", weights.cumsum())
        self._hold("log_expected", np.log(expected))
        self.register_buffer("state", torch.Generator().manual_seed(seed).get_state())

    @property
    def prior(self) -> Prior:
        """How often each class is drawn, relative to others."""
        return Prior.from_log(self.log_expected)

    def forward(self) -> Tensor:
        """The next classes."""
        generator = torch.Generator()
        generator.set_state(self.state.cpu())
        total, number = self.cumulative[-1].cpu(), self.number
        if self.distinct:
            number = int(torch.poisson(total, generator))
        at = total * torch.rand(number, dtype=torch.float64, generator=generator)
        self.state.copy_(generator.get_state())
        drawn = torch.searchsorted(self.cumulative, at.to(self.cumulative.device), right=True)
        drawn = drawn.clamp(max=len(self.cumulative) - 1)  # where rounding gives the total itself
        return torch.cat([self.always, torch.unique(drawn)]) if self.distinct else drawn


class LabelCounts(ConstantsModule):
    """Counts labels over batches: what they follow, where nobody has counted them before.

    Args:
        num_classes: How many classes there are.
        decay: What a batch counts once the next one has come; 1 forgets nothing.

    >>> counts = LabelCounts(3)
    >>> counts.update(torch.tensor([0, 0, 2, 0, 0, 1]))
    >>> counts.prior
    Prior([0.667, 0.167, 0.167])
    """

    counts: Tensor
    unit: Tensor

    def __init__(self, num_classes: int, decay: float = 1.0) -> None:
        super().__init__()
        self.num_classes = check_whole(num_classes, "num_classes", least=1)
        self.decay = check_number(decay, "decay", least=0, most=1)
        if not decay:
            raise ValueError("decay must be above 0, got 0, which forgets every batch")
        self._hold("counts", np.zeros(num_classes))
        self._hold("unit", np.ones(()))

    def update(self, labels: Tensor) -> None:
        """Count the labels of a batch, class indices in range."""
        # A later one counts more: quicker than to let all the earlier ones count less.
        self.unit /= self.decay
        if self.unit > 1e100:
            self.counts /= self.unit
            self.unit.fill_(1.0)
        flat = labels.flatten()
        self.counts.index_add_(0, flat, self.unit.expand(len(flat)))

    def log_frequencies(self, labels: Tensor) -> Tensor:
        """The logarithm of each label's share of the counts; of half a one if it never came."""
        counts = (self.counts[labels] / self.unit).clamp(min=0.5)
        return counts.log() - (self.counts.sum() / self.unit).clamp(min=1).log()

    @property
    def prior(self) -> Prior:
        """What the labels followed; every class counts half a label more if some never came."""
        counts = (self.counts / self.unit).cpu().numpy()
        return Prior.of(counts if counts.all() else counts + 0.5)
