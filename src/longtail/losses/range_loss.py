r"""Range loss: the widest pairs of a class shrink, the closest centres part (Zhang et al. 2017).

    Ω = α · Σ_y k / Σ_{j≤k} (1/D_{y,j})  +  β · max(0, margin − min_{y≠y'} ‖μ_y − μ_{y'}‖²)

D_{y,1} ≥ D_{y,2} ≥ ... are the squared distances of pairs of rows of class y, largest first, so
the first term is the sum over classes of the harmonic mean of the k largest; μ_y is the mean of
class y. Both are of the batch. Xiao Zhang et al., "Range Loss for Deep Face Recognition with
Long-Tailed Training Data", ICCV 2017; the second term is the one of ELM §3.2.

Distances are squared in both terms, as in the paper. Code in circulation has plain distances, and
for a class of two rows, which is one pair, a distance of 1e-6 in place of the second: here the
mean is then over the pairs there are.

Carries: it claims nothing of logits.
"""

import torch
from torch import Tensor

from longtail.core.numbers import check_number, check_whole
from longtail.losses.regularizer import Regularizer


class Range(Regularizer):
    """The range term on features: `Range()(features, labels)`, a value of the whole batch.

    A class with one row has no pair and counts in the second term alone, which is zero if the
    batch has one class. The defaults are those of the code in circulation, for features of norm
    around one: the first term grows with the number of classes in the batch.

    Args:
        largest: k, how many pairs of a class count.
        margin: The squared distance beyond which centres are not pushed apart.
        intra_weight: α.
        inter_weight: β.
        ignore_index: Rows with this label are left out.
        gather: Whether to see the batches of all processes.

    >>> import torch
    >>> features = torch.tensor([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    >>> Range(margin=1.0)(features, torch.tensor([0, 0, 0, 1]))  # ½·2/(1/5 + 1/4) + ½·(1 − 1/18)
    tensor(2.694)
    """

    def __init__(
        self,
        largest: int = 2,
        margin: float = 0.1,
        intra_weight: float = 0.5,
        inter_weight: float = 0.5,
        *,
        ignore_index: int = -100,
        gather: bool = True,
    ) -> None:
        super().__init__(ignore_index=ignore_index, gather=gather)
        self.largest = check_whole(largest, "largest", least=1)
        self.margin = check_number(margin, "margin", least=0)
        self.intra_weight = check_number(intra_weight, "intra_weight", least=0)
        self.inter_weight = check_number(inter_weight, "inter_weight", least=0)

    def values(self, rows: Tensor, labels: Tensor) -> Tensor:
        """Ω of the batch, shape ()."""
        _, index, sizes = torch.unique(labels, return_inverse=True, return_counts=True)
        means = rows.new_zeros(len(sizes), rows.shape[1]).index_add(0, index, rows)
        means = means / sizes.unsqueeze(1)
        intra = self._intra(rows, index, means.detach())
        return self.intra_weight * intra + self.inter_weight * self._inter(means)

    def _intra(self, rows: Tensor, index: Tensor, means: Tensor) -> Tensor:
        # Around the mean of its class, a distance loses nothing to the norm of the features.
        left, right = _widest_pairs(rows.detach() - means[index], index, self.largest)
        distances = (rows[left] - rows[right]).square().sum(dim=1)
        return _harmonic_means(distances, index[left], len(means)).sum()

    def _inter(self, means: Tensor) -> Tensor:
        if len(means) < 2:
            return (0 * means).sum()  # zero, and backward still works
        with torch.no_grad():
            gaps = torch.cdist(means, means, compute_mode="donot_use_mm_for_euclid_dist")
            pair = gaps.fill_diagonal_(torch.inf).argmin()
        gap = means[pair // len(means)] - means[pair % len(means)]
        return (self.margin - gap.square().sum()).clamp_min(0)


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
    place = torch.arange(len(order), device=rows.device)
    of_class = index[left[order]]
    candidates = torch.bincount(of_class)
    starts = candidates.cumsum(0) - candidates
    kept = order[(place - starts[of_class] < largest) & (wide[order] >= 0)]
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
