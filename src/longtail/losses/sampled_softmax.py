r"""Sampled softmax: cross-entropy over the label and some drawn classes, not all.

    ℓ(y, z) = log Σ_{k ∈ {y} ∪ negatives} exp(z_k − log e_k) − z_y

e_k says how often class k is expected among the negatives: m·q_k for m drawn independently from a
proposal q, of which those that are the label (accidental hits) stay; the probability that k is in
for distinct ones, hits removed; m·π_k where the negatives are the labels of the m other samples of
the batch, π the training prior, those of the same class included. Then the sum estimates
Σ_c exp z_c, and ℓ the full cross-entropy; with all classes in, distinct, it is that. Whatever m
and q are, the best logits are those of the full softmax: which candidate is the label is as likely
as p(k|x)/e_k (Ma and Collins 2018, and Jean et al. 2015, for independent ones; for distinct ones
the same holds if each is in or out independently). A term for y of its own makes ℓ and its gradient
too large for a rare y by about exp(z_y)/e_y, which vanishes as m grows.

Without the correction, e = 1, the best logits are log p(k|x) − log e_k, up to a constant.

Carries: π with the correction; without it π/e: π/q for independent draws, uniform for in-batch
negatives. With class weights w times that.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from longtail.core.arrays import ArrayLike
from longtail.core.numbers import check_choice, check_per_class, check_seed, check_whole
from longtail.core.prior import Prior, PriorLike, check_same_classes, full_prior
from longtail.core.retarget import prior_offset
from longtail.core.tensors import wide_dtype
from longtail.losses.inputs import head_rows, in_place_of_ignored
from longtail.losses.loss import ConstantsModule, Reduction
from longtail.losses.proposals import ClassDraws, LabelCounts


class SampledSoftmax(ConstantsModule):
    """Cross-entropy over the label and drawn classes, of a linear layer's features and weights.

    It is called as loss(features, weight, bias, labels); the drawn classes are negatives of all
    samples of the batch. Recipes cannot name it, because it takes a layer's weight and not logits.
    Processes that train together draw the same, unless each is given a seed of its own.

    Args:
        train: The prior that the batches follow; `LabelCounts`, which then count the labels of each
            training batch, where nobody knows it.
        proposal: What negatives are drawn from: a prior, or counts of any kind. None takes the
            labels of the other samples of the batch (in-batch negatives).
        num_negatives: How many to draw, of distinct ones on average.
        distinct: Whether no class is drawn twice.
        corrected: Whether logits are corrected by how often their class is drawn.
        weight: Class weights, as in other losses.
        ignore_index: Samples with this class index do not count.
        reduction: A mean divides by the sum of the samples' class weights.
        seed: Of the draws.
        sparse: Whether the weight gets a sparse gradient, as `torch.optim.SparseAdam` takes it: a
            dense one has a row for every class.

    >>> features, weight = torch.tensor([[1.0, 2.0]]), torch.tensor([[2.0, 0], [0.5, 0], [-1, 0]])
    >>> loss = SampledSoftmax([70, 25, 5], proposal=[1, 1, 1], num_negatives=2)
    >>> loss(features, weight, None, torch.tensor([1]))
    tensor(0.774)
    >>> loss.carried
    Prior([0.7, 0.25, 0.05])
    >>> SampledSoftmax([70, 25, 5], corrected=False).carried
    Prior([0.333, 0.333, 0.333])
    """

    weight: Tensor | None
    batches_log: Tensor  # unless there are counts

    def __init__(
        self,
        train: PriorLike | LabelCounts,
        proposal: PriorLike | None = None,
        num_negatives: int | None = None,
        *,
        distinct: bool = False,
        corrected: bool = True,
        weight: ArrayLike | None = None,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
        seed: int = 0,
        sparse: bool = False,
    ) -> None:
        super().__init__()
        check_choice(reduction, Reduction, "reduction")
        self.ignore_index = check_whole(ignore_index, "ignore_index")
        self.reduction, self.corrected, self.sparse = reduction, corrected, sparse
        self.counts = train if isinstance(train, LabelCounts) else None
        batches = train if isinstance(train, LabelCounts) else full_prior(train, "train")
        self.num_classes = batches.num_classes
        self._hold("batches_log", batches.log if isinstance(batches, Prior) else None)
        if weight is not None:
            weight = check_per_class(weight, self.num_classes, "weight", least="zero")
        self._hold("weight", weight)
        check_seed(seed)
        self.draws: ClassDraws | None = None
        if proposal is not None:
            q = full_prior(proposal, "proposal")
            check_same_classes(self.num_classes, q, "train has", "the proposal")
            self.draws = ClassDraws(q, num_negatives, distinct, seed)
        elif num_negatives is not None or distinct:
            raise ValueError(
                "num_negatives and distinct say how to draw from a proposal, but there is none; "
                "pass proposal=, or leave them out to take the labels of the batch as negatives"
            )

    def forward(
        self,
        features: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        labels: Tensor,
        negatives: Tensor | None = None,
    ) -> Tensor:
        """The reduced loss of features (N, D) or (N, ..., D) of a layer of weight (C, D).

        `negatives` are classes in place of those to be drawn.
        """
        if len(weight) != self.num_classes:
            raise ValueError(f"weight must have {self.num_classes} rows, got {tuple(weight.shape)}")
        rows, index, kept = head_rows(features, weight, bias, labels, self.ignore_index)
        if self.counts is not None and self.training:
            self.counts.update(index)
        left_out = None
        if negatives is None and self.draws is not None:
            negatives = self.draws().to(index.device)
        elif negatives is None:
            negatives, left_out = index, torch.eye(len(index), dtype=torch.bool).to(index.device)
        losses = self._losses(rows, weight, bias, index, negatives, left_out)
        factor = torch.ones_like(losses)
        if self.weight is not None:
            factor = self._cast("weight", losses)[index]
        losses = losses * factor
        if self.reduction == "none":
            return in_place_of_ignored(losses, kept)
        return losses.sum() if self.reduction == "sum" else losses.sum() / factor.sum()

    def _losses(
        self,
        rows: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        labels: Tensor,
        negatives: Tensor,
        left_out: Tensor | None,
    ) -> Tensor:
        """The loss of each of n samples; `left_out` (n, negatives) are not those of a sample."""
        with torch.autocast(rows.device.type, enabled=False):
            classes, n = torch.cat([labels, negatives]), len(labels)
            wide = wide_dtype(torch.promote_types(rows.dtype, weight.dtype))
            picked = F.embedding(classes, weight, sparse=self.sparse).to(wide)
            x = rows.to(wide)
            own, others = (x * picked[:n]).sum(dim=1), x @ picked[n:].T
            if bias is not None:
                offset = bias[classes].to(wide)
                own, others = own + offset[:n], others + offset[n:]
            candidates = torch.cat([own.unsqueeze(1), others], dim=1)
            if self.corrected:
                drawn = len(negatives) - (left_out is not None)
                expected = self._log_expected(classes, max(1, drawn)).to(wide)
                candidates = candidates - torch.cat(
                    [expected[:n].unsqueeze(1), expected[n:].expand(n, -1)], dim=1
                )
            if self.draws is not None and self.draws.distinct:
                left_out = labels.unsqueeze(1) == negatives
            if left_out is not None:
                candidates = candidates.masked_fill(F.pad(left_out, (1, 0)), -torch.inf)
            return candidates.logsumexp(dim=1) - own

    def _log_expected(self, classes: Tensor, in_batch: int) -> Tensor:
        """Log e of classes, float64, where the batch has that many negatives of a sample."""
        if self.draws is not None:
            return self.draws.log_expected[classes]
        if self.counts is not None:
            return self.counts.log_frequencies(classes) + math.log(in_batch)
        return self.batches_log[classes] + math.log(in_batch)

    @property
    def carried(self) -> Prior | None:
        """The prior a model trained with this loss carries; None if a class weighs nothing."""
        carried = self.batches
        if not self.corrected:
            drawn = self.batches if self.draws is None else self.draws.prior
            carried = Prior.from_log(prior_offset(drawn, self.batches))
        if self.weight is None:
            return carried
        return carried.reweighted(self.weight) if (self.weight > 0).all() else None

    @property
    def batches(self) -> Prior:
        """The prior of the batches: what was given as `train`, or was counted."""
        return Prior.from_log(self.batches_log) if self.counts is None else self.counts.prior

    @property
    def class_weight(self) -> Tensor | None:
        """The user's class weights."""
        return self.weight

    def extra_repr(self) -> str:
        """What it carries, for print(loss)."""
        return f"num_classes={self.num_classes}, carried={self.carried!r}"
