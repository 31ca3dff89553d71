r"""Terms of all pairs of rows in the batch: range, lifted structure and spread-out.

    range       Ω = α · Σ_y k / Σ_{j≤k} (1/D_{y,j}) + β · max(0, margin − min_{y≠y'} ‖μ_y−μ_{y'}‖²)
    lifted      Ω = 1/(2|P|) · Σ_{(i,j)∈P} max(0, J_ij)²
                J_ij = d_ij + log[Σ_{k: y_k≠y_i} exp(margin−d_ik) + Σ_{k: y_k≠y_j} exp(margin−d_jk)]
    spread-out  Ω = M₁² + max(0, M₂ − 1/d),        M₁ = mean of Φ·Φ',  M₂ = mean of (Φ·Φ')²

Range (Xiao Zhang et al., ICCV 2017; the second term is that of ELM §3.2): D_{y,1} ≥ D_{y,2} ≥ ...
are the squared distances of pairs of rows of class y, so the first term is the sum over classes of
the harmonic mean of the k largest; μ_y is the mean of class y in the batch. Code in circulation has
plain distances, and for a class of two rows, which is one pair, 1e-6 in place of the second: here
the mean is then over the pairs there are.

Lifted (Song et al., CVPR 2016): P are the pairs of one class, d plain Euclidean distances.

Spread-out (Xu Zhang et al., ICCV 2017): over the pairs of different classes, or over all as in ELM
eqs. 7 to 9, of features of dimension d normalised here; independent uniform points of the sphere
have M₁ = 0 and M₂ = 1/d.

Carries: they claim nothing of logits.
"""

from typing import Literal, Unpack, get_args

import torch
from torch import Tensor

from longtail.core.numbers import check_number, check_whole
from longtail.losses.regularizer import Regularizer, TermOptions
from longtail.ranges import Count, NonNegative

Pairs = Literal["different", "all"]


class Range(Regularizer):
    """The range term on features: `Range()(features, labels)`, a value of the whole batch.

    A class with one row has no pair and counts in the second term alone, which is zero if the
    batch has one class. The defaults are those of the code in circulation, for features of norm
    around one: the first term grows with the number of classes in the batch.

    `largest` is k, `intra_weight` α, `inter_weight` β; centres at a squared distance above `margin`
    are left alone.

    >>> features = torch.tensor([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    >>> Range(margin=1.0)(features, torch.tensor([0, 0, 0, 1]))  # ½·2/(1/5 + 1/4) + ½·(1 − 1/18)
    tensor(2.694)
    """

    def __init__(
        self,
        largest: Count = 2,
        margin: NonNegative = 0.1,
        intra_weight: NonNegative = 0.5,
        inter_weight: NonNegative = 0.5,
        **options: Unpack[TermOptions],
    ) -> None:
        super().__init__(**options)
        self.largest = check_whole(largest, "largest", least=1)
        self.margin = check_number(margin, "margin", least=0)
        self.intra_weight = check_number(intra_weight, "intra_weight", least=0)
        self.inter_weight = check_number(inter_weight, "inter_weight", least=0)

    def values(self, rows: Tensor, labels: Tensor) -> Tensor:
        """Ω of the batch, shape ()."""
        _, index, sizes = torch.unique(labels, return_inverse=True, return_counts=True)
        means = rows.new_zeros(len(sizes), rows.shape[1]).index_add(0, index, rows)
        means = means / sizes.unsqueeze(1)
        # Around the mean of its class, a distance loses nothing to the norm of the features.
        left, right = _widest_pairs(rows.detach() - means.detach()[index], index, self.largest)
        distances = (rows[left] - rows[right]).square().sum(dim=1)
        intra = _harmonic_means(distances, index[left], len(means)).sum()
        return self.intra_weight * intra + self.inter_weight * self._inter(means)

    def _inter(self, means: Tensor) -> Tensor:
        if len(means) < 2:
            return (0 * means).sum()  # zero, and backward still works
        with torch.no_grad():
            gaps = torch.cdist(means, means, compute_mode="donot_use_mm_for_euclid_dist")
            pair = gaps.fill_diagonal_(torch.inf).argmin()
        gap = means[pair // len(means)] - means[pair % len(means)]
        return (self.margin - gap.square().sum()).clamp_min(0)


class LiftedStructure(Regularizer):
    """The lifted structured term on features: `LiftedStructure()(features, labels)`.

    A value of the whole batch, zero if it has no pair of one class or no two classes: that of
    pytorch-metric-learning on features that are not normalised, with N² numbers in memory in place
    of one for each two pairs. `margin` is how much farther than its class a negative should be.
    """

    def __init__(self, margin: float = 1.0, **options: Unpack[TermOptions]) -> None:
        super().__init__(**options)
        self.margin = check_number(margin, "margin")

    def values(self, rows: Tensor, labels: Tensor) -> Tensor:
        """Ω of the batch, shape ()."""
        # By differences: the faster way by products loses near pairs of features far from zero.
        distances = torch.cdist(rows, rows, compute_mode="donot_use_mm_for_euclid_dist")
        same = labels.unsqueeze(1) == labels
        # Without negatives the logarithm is far below any distance, and the hinge makes it zero.
        # −inf would do so too, but its gradient is NaN.
        nothing = torch.finfo(rows.dtype).min / 4
        close = (self.margin - distances).masked_fill(same, nothing).logsumexp(dim=1)
        hinge = (distances + torch.logaddexp(close.unsqueeze(1), close)).clamp_min(0)
        pairs = same.triu(diagonal=1)
        squares = hinge.square().masked_fill(~pairs, 0.0)
        return squares.sum() / (2 * pairs.sum()).clamp_min(1)


class SpreadOut(Regularizer):
    """The spread-out term on features, a value of the whole batch: zero without a pair.

    `pairs` are those of "different" classes, or "all", which spreads the rows of one class too.

    >>> features = torch.tensor([[2.0, 0.0], [0.6, 0.8], [0.0, 1.0]])
    >>> labels = torch.tensor([0, 1, 1])
    >>> SpreadOut()(features, labels)  # M₁ = (0.6 + 0)/2, M₂ = (0.36 + 0)/2
    tensor(0.0900)
    >>> SpreadOut(pairs="all")(features, labels)  # M₁ = (0.6 + 0 + 0.8)/3, M₂ = (0.36 + 0.64)/3
    tensor(0.2178)
    """

    def __init__(self, pairs: Pairs = "different", **options: Unpack[TermOptions]) -> None:
        super().__init__(**options)
        if pairs not in get_args(Pairs):
            raise ValueError(f'pairs must be "different" or "all", got {pairs!r}')
        self.pairs = pairs

    def values(self, rows: Tensor, labels: Tensor) -> Tensor:
        """Ω of the batch, shape ()."""
        norms: Tensor = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
        points = rows / norms.masked_fill(norms == 0, 1.0)  # a row of zeros stays one
        with torch.autocast(rows.device.type, enabled=False):  # it would multiply in halves
            products = points @ points.T
        other = labels if self.pairs == "different" else torch.arange(len(rows), device=rows.device)
        apart = other.unsqueeze(1) != other
        products = products.masked_fill(~apart, 0.0)
        count = apart.sum().clamp_min(1)
        mean, mean_square = products.sum() / count, products.square().sum() / count
        return mean.square() + (mean_square - 1 / rows.shape[1]).clamp_min(0)


@torch.no_grad()
def _widest_pairs(rows: Tensor, index: Tensor, largest: int) -> tuple[Tensor, Tensor]:
    """The `largest` pairs of each class that are farthest apart, or those there are."""
    apart = torch.cdist(rows, rows)
    pairs = (index.unsqueeze(1) == index).triu(diagonal=1)  # of one class, each once
    apart = apart.masked_fill_(~pairs, -1.0)
    # A pair among the k widest of its class is among the k widest of its first row.
    wide, right = apart.topk(min(largest, len(rows)), dim=1)
    left = torch.arange(len(rows), device=rows.device).unsqueeze(1).expand_as(right)
    wide, left, right = wide.flatten(), left.flatten(), right.flatten()
    order = wide.argsort(descending=True)
    order = order[index[left[order]].argsort(stable=True)]
    # Now the candidates of a class lie together, the widest first: keep the first k.
    position = torch.arange(len(order), device=rows.device)
    of_class = index[left[order]]
    candidates = torch.bincount(of_class)
    starts = candidates.cumsum(0) - candidates
    kept = order[(position - starts[of_class] < largest) & (wide[order] >= 0)]
    return left[kept], right[kept]


def _harmonic_means(values: Tensor, index: Tensor, groups: int) -> Tensor:
    """The harmonic mean of the values of each group: zero if one of them is, or there is none.

    Divided by the smallest of the group, no reciprocal overflows, nor does its gradient. That of
    a zero is zero, as it is for the distance of identical rows.
    """
    values = values.clamp_min(torch.finfo(values.dtype).tiny)
    smallest = values.new_full((groups,), torch.inf)
    smallest = smallest.scatter_reduce(0, index, values.detach(), "amin")
    counts = torch.bincount(index, minlength=groups)
    ratios = values.new_zeros(groups).index_add(0, index, smallest[index] / values)
    some = counts > 0
    return counts[some] * smallest[some] / ratios[some]
