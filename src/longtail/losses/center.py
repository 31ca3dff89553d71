r"""Terms with a running centre of each class: centre loss, DRO-LT in one stage, estimated offset.

    centre loss    Ω(x, y) = ‖Φ(x) − c_y‖²
    DRO-LT         Ω(x, y) = log Σ_{(x',y')} exp(−‖Φ(x')−c_y‖² + ‖Φ(x)−c_y‖² + ε_y·[y'≠y])
    offset         ℓ = −log softmax(f)[y] + λ₁·‖Φ − c_y‖² + λ₂·(−H(softmax(−w̃₀)))        (EO eq. 6)

DRO-LT's sum is over the batch, with ε_y = scale · √(max P / P(y)) (ELM eq. 5): a row is to be
nearer to its class's centre than all others. In the last, f are the logits of
`heads.EstimatedOffset`, which subtracts w̃₀_k = ½ c_k·w_k; the entropy H draws the offsets to one
value (the uniform constraint). After each value, in training mode, the centres move by the rule of
the centre-loss paper, and by no gradient:

    c_j ← c_j − rate · Σ_{i: y_i=j} (c_j − Φ_i) / (1 + n_j),        n_j rows of class j in the batch

The centre loss is without the ½ of Wen et al., ECCV 2016, as EO eq. 6 has it. DRO-LT of Samuel and
Chechik, ICCV 2021, takes the centres from a model trained before; their code has plain distances
over a temperature, a softmax over the batch for each centre, and a learned ε taken from positives.

Carries: None. Terms claim nothing of logits; the offset takes the place of a bias, and no loss ties
it to a prior: measure it.
"""

from abc import abstractmethod
from typing import Literal, Protocol, Unpack

import numpy as np
import torch
from torch import Tensor

from longtail.core.labels import check_labels
from longtail.core.numbers import check_number, check_whole
from longtail.core.prior import PriorLike, check_same_classes, full_prior
from longtail.losses.kernel import is_eager_cpu
from longtail.losses.loss import LossOptions
from longtail.losses.regularizer import RegularizedLoss, Regularizer, TermOptions
from longtail.losses.sample_loss import SampleLoss
from longtail.ranges import Fraction, NonNegative


class _RunningCenters(Regularizer):
    """A term of features and the centres of their classes, which start at zero.

    Every process sees the whole batch, so they move alike on all; with gradient accumulation they
    move at each step.
    """

    centers: Tensor

    def __init__(
        self, dim: int, num_classes: int, rate: Fraction = 0.5, **options: Unpack[TermOptions]
    ) -> None:
        super().__init__(**options)
        self.rate = check_number(rate, "rate", least=0, most=1)
        shape = check_whole(num_classes, "num_classes", 1), check_whole(dim, "dim", 1)
        self._hold("centers", torch.zeros(shape, dtype=torch.float64))

    def values(self, rows: Tensor, labels: Tensor) -> Tensor:
        """Ω of each row. In training mode, the centres move afterwards."""
        num_classes, dim = self.centers.shape
        if rows.shape[1] != dim:
            raise ValueError(f"the term was made with dim={dim}, features have {rows.shape[1]}")
        if is_eager_cpu(labels):
            check_labels(labels, num_classes)
        values = self._terms(rows, labels)
        if self.training:
            # Replaced, not changed in place: compiled, backward picks from these centres again.
            self.centers = moved_centers(self.centers, rows, labels, self.rate)
        return values

    @abstractmethod
    def _terms(self, rows: Tensor, labels: Tensor) -> Tensor:
        """Ω of each row, whose labels are in range."""

    def extra_repr(self) -> str:
        num_classes, dim = self.centers.shape
        return f"dim={dim}, num_classes={num_classes}, rate={self.rate}"


class Center(_RunningCenters):
    """The centre term on features: `Center(dim, num_classes)(features, labels)`.

    >>> center = Center(2, 3)
    >>> features, labels = torch.tensor([[1.0, 0.0], [3.0, 4.0]]), torch.tensor([0, 2])
    >>> center(features, labels)
    tensor(13.)
    >>> center.centers[2].tolist()  # moved by rate · (Φ − c) / (1 + 1)
    [0.75, 1.0]
    """

    def _terms(self, rows: Tensor, labels: Tensor) -> Tensor:
        return (rows - self.centers[labels].to(rows)).square().sum(dim=1)


class DROLT(_RunningCenters):
    """The DRO-LT term on features: `DROLT(train, dim)(features, labels)`.

    Memory is one number for each row and class of the batch; `scale` is ε of the largest class.

    >>> term = DROLT([64, 16], dim=2)
    >>> term.margins.tolist()
    [1.0, 2.0]
    >>> term(torch.tensor([[1.0, 0.0], [0.0, 2.0]]), torch.tensor([0, 1]))
    tensor(2.567)
    """

    margins: Tensor

    def __init__(
        self,
        train: PriorLike,
        dim: int,
        scale: NonNegative = 1.0,
        rate: Fraction = 0.5,
        **options: Unpack[TermOptions],
    ) -> None:
        prior = full_prior(train, "train")
        super().__init__(dim, prior.num_classes, rate, **options)
        check_number(scale, "the scale of the margins", least=0)
        self._hold("margins", scale * np.sqrt(prior.probs.max() / prior.probs))

    def _terms(self, rows: Tensor, labels: Tensor) -> Tensor:
        classes, index = torch.unique(labels, return_inverse=True)
        centers = self.centers[classes].to(rows)
        margins = self.margins[classes].to(rows).unsqueeze(1)
        distances = torch.cdist(centers, rows, compute_mode="donot_use_mm_for_euclid_dist").square()
        # The sum over the batch depends on a row through its class alone.
        others = (classes.unsqueeze(1) != labels) * margins
        totals = (others - distances).logsumexp(dim=1)
        values: Tensor = totals[index] + distances.gather(0, index.unsqueeze(0)).squeeze(0)
        return values


class OffsetHead(Protocol):
    """What the loss needs of a head."""

    weight: Tensor
    centers: Tensor


class EstimatedOffset(RegularizedLoss):
    """Cross-entropy with the centre term and the uniform constraint of the head's offset.

    Call it as `loss(head(features), labels, features=features)`. The two ablations of the paper:
    `uniform_weight=0` (λ₂) is "w/o UC"; a head with `use_offset=False` is "UC only". The squares of
    Φ − c_y are added up over the D dimensions, as printed, or averaged, which is λ₁/D in place of
    λ₁ (`center_weight`): the sum outweighs the cross-entropy where features are many.

    >>> import longtail as lt
    >>> head = lt.heads.EstimatedOffset(2, 3)
    >>> _ = head.weight.data.copy_(torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]]))
    >>> loss = EstimatedOffset([70, 25, 5], head=head)
    >>> features = torch.tensor([[1.0, 0.5], [0.0, 2.0]])
    >>> loss(head(features), torch.tensor([0, 1]), features=features).item()
    1.860
    >>> head.centers.tolist()                            # moved halfway of 1/(1 + n)
    [[0.25, 0.125], [0.0, 0.5], [0.0, 0.0]]
    """

    def __init__(
        self,
        train: PriorLike,
        head: OffsetHead,
        center_weight: NonNegative = 1.0,
        uniform_weight: NonNegative = 1.0,
        rate: Fraction = 0.5,
        center_squares: Literal["sum", "mean"] = "sum",
        *,
        gather: bool = True,
        **options: Unpack[LossOptions],
    ) -> None:
        prior = full_prior(train, "train")
        num_classes, dim = head.weight.shape
        check_same_classes(num_classes, prior, "the head has", "the prior")
        if center_squares not in ("sum", "mean"):
            raise ValueError(f'center_squares must be "sum" or "mean", got {center_squares!r}')
        center = check_number(center_weight, "center_weight", least=0)
        if center_squares == "mean":
            center /= dim
        uniform = check_number(uniform_weight, "uniform_weight", least=0)
        terms = _OffsetTerms(head, (center, uniform), rate, gather)
        super().__init__(SampleLoss(prior, None, **options), terms, 1.0, on="features")


class _OffsetTerms(Regularizer):
    def __init__(
        self, head: OffsetHead, weights: tuple[float, float], rate: float, gather: bool
    ) -> None:
        super().__init__(gather=gather)
        self._head = (head,)  # in a tuple: nn.Module would register the head itself
        self.weights, self.rate = weights, check_number(rate, "rate", least=0, most=1)

    def values(self, rows: Tensor, labels: Tensor) -> Tensor:
        """λ₁·‖Φ − c_y‖² of each row, and the uniform constraint in every one."""
        (head,), (center_weight, uniform_weight) = self._head, self.weights
        centers = head.centers.to(rows)
        offset = 0.5 * (centers * head.weight.to(rows)).sum(dim=1)
        log_share = torch.log_softmax(-offset, dim=0)
        negative_entropy = (log_share.exp() * log_share).sum()
        values = center_weight * (rows - centers[labels]).square().sum(dim=1)
        if self.training:
            # A new tensor: backward, and a compiler, need the centres as they were.
            head.centers = moved_centers(head.centers, rows, labels, self.rate)
        return values + uniform_weight * negative_entropy


@torch.no_grad()
def moved_centers(centers: Tensor, rows: Tensor, labels: Tensor, rate: float) -> Tensor:
    """The centres (C, D) after a batch, by the centre-loss rule: a new tensor, without gradient."""
    ones = torch.ones_like(labels, dtype=centers.dtype)
    counts = centers.new_zeros(len(centers)).scatter_add_(0, labels, ones)
    steps = (rows - centers[labels]) * (rate / (1 + counts))[labels].unsqueeze(1)
    return centers.index_add(0, labels, steps.to(centers.dtype))
