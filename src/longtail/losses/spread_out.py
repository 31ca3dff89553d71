r"""Spread-out: features of different classes as random points of the sphere (Zhang et al. 2017).

    Ω = M₁² + max(0, M₂ − 1/d),        M₁ = mean of Φ·Φ',  M₂ = mean of (Φ·Φ')²

over the pairs of different classes in the batch, of features of dimension d normalised here: what
independent uniform points have is M₁ = 0 and M₂ = 1/d. Xu Zhang et al., "Learning Spread-out
Local Feature Descriptors", ICCV 2017. ELM eqs. 7 to 9 take all pairs; the paper, and we, those
that do not match.

Carries: it claims nothing of logits.
"""

import torch
from torch import Tensor

from longtail.losses.regularizer import Regularizer


class SpreadOut(Regularizer):
    """The spread-out term on features: `SpreadOut()(features, labels)`.

    A value of the whole batch, zero if it has no two classes.

    Args:
        ignore_index: Rows with this label are left out.
        gather: Whether to see the batches of all processes.

    >>> import torch
    >>> features = torch.tensor([[2.0, 0.0], [0.6, 0.8], [0.0, 1.0]])
    >>> SpreadOut()(features, torch.tensor([0, 1, 1]))  # M₁ = (0.6 + 0)/2, M₂ = (0.36 + 0)/2
    tensor(0.0900)
    """

    def values(self, rows: Tensor, labels: Tensor) -> Tensor:
        """Ω of the batch, shape ()."""
        norms: Tensor = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
        points = rows / norms.masked_fill(norms == 0, 1.0)  # a row of zeros stays one
        with torch.autocast(rows.device.type, enabled=False):  # it would multiply in halves
            products = points @ points.T
        different = labels.unsqueeze(1) != labels
        products = products.masked_fill(~different, 0.0)
        count = different.sum().clamp_min(1)
        mean, mean_square = products.sum() / count, products.square().sum() / count
        return mean.square() + (mean_square - 1 / rows.shape[1]).clamp_min(0)
