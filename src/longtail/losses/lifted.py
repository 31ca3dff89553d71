r"""Lifted structured loss: each pair of a class against all negatives of both (Song et al. 2016).

    Ω = 1/(2|P|) · Σ_{(i,j)∈P} max(0, J_ij)²
    J_ij = D_ij + log[Σ_{k: y_k≠y_i} exp(margin − D_ik) + Σ_{k: y_k≠y_j} exp(margin − D_jk)]

P are the pairs of one class in the batch, D plain Euclidean distances. Song et al., "Deep Metric
Learning via Lifted Structured Feature Embedding", CVPR 2016.

Carries: it claims nothing of logits.
"""

import torch
from torch import Tensor

from longtail.core.numbers import check_number
from longtail.losses.regularizer import Regularizer


class LiftedStructure(Regularizer):
    """The lifted structured term on features: `LiftedStructure()(features, labels)`.

    A value of the whole batch, zero if it has no pair of one class or no two classes. The same
    as LiftedStructureLoss of pytorch-metric-learning on features that are not normalised, with
    N² numbers in memory in place of one for each two pairs.

    Args:
        margin: How much farther than its class a negative should be.
        ignore_index: Rows with this label are left out.
        gather: Whether to see the batches of all processes.

    >>> import torch
    >>> features = torch.tensor([[0.0, 0.0], [0.6, 0.8], [0.0, 2.0]])
    >>> LiftedStructure()(features, torch.tensor([0, 0, 1]))
    tensor(0.5784)
    """

    def __init__(
        self, margin: float = 1.0, *, ignore_index: int = -100, gather: bool = True
    ) -> None:
        super().__init__(ignore_index=ignore_index, gather=gather)
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
