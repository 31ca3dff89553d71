r"""DRO-LT in one stage: a row is to be nearer to its class's centroid than all others (ELM eq. 5).

    Ω(x, y) = log Σ_{(x',y') in the batch} exp(−‖Φ(x')−μ_y‖² + ‖Φ(x)−μ_y‖² + ε_y·[y'≠y])
    ε_y = scale · √(max P / P(y))

so that ε_y ∝ 1/√P(y) and `scale` is the margin of the largest class. Samuel and Chechik, ICCV
2021, take the centroids μ from a model trained before; in one stage they are running: they start
at zero and follow the rule of the centre loss (`moved_centers`) after each value, in training
mode. No gradient reaches them.

The released code of DRO-LT differs: plain distances divided by a temperature, a softmax over the
batch for each centroid, an ε of each class that is learned, taken from the positives, and a mean
over the classes present.

Carries: it claims nothing of logits.
"""

import torch
from torch import Tensor

from longtail.core.numbers import check_number
from longtail.core.prior import PriorLike, full_prior
from longtail.core.tensors import as_tensor
from longtail.losses.center import check_fit, check_rate, moved_centers, zero_centers
from longtail.losses.regularizer import Regularizer


class DROLT(Regularizer):
    """The DRO-LT term on features: `DROLT(train, dim)(features, labels)`.

    Memory is one number for each row and class of the batch.

    Args:
        train: The training prior, or class counts.
        dim: The dimension of the features.
        scale: ε of the largest class.
        rate: How far the centroids move towards the batch, 0 to 1.
        ignore_index: Rows with this label are left out, and move no centroid.
        gather: Whether to see the batches of all processes.

    >>> import torch
    >>> term = DROLT([64, 16], dim=2)
    >>> term.margins.tolist()
    [1.0, 2.0]
    >>> term(torch.tensor([[1.0, 0.0], [0.0, 2.0]]), torch.tensor([0, 1]))
    tensor(2.567)
    """

    centers: Tensor
    margins: Tensor

    def __init__(
        self,
        train: PriorLike,
        dim: int,
        scale: float = 1.0,
        rate: float = 0.5,
        *,
        ignore_index: int = -100,
        gather: bool = True,
    ) -> None:
        super().__init__(ignore_index=ignore_index, gather=gather)
        check_number(scale, "the scale of the margins", least=0)
        prior = full_prior(train, "train")
        self.rate = check_rate(rate)
        self.hold("centers", zero_centers(prior.num_classes, dim))
        self.hold("margins", scale * (as_tensor(prior.probs).max() / as_tensor(prior.probs)).sqrt())

    def values(self, rows: Tensor, labels: Tensor) -> Tensor:
        """Ω of each row. In training mode, the centroids move afterwards."""
        check_fit(rows, labels, self.centers)
        classes, index = torch.unique(labels, return_inverse=True)
        centers = self.centers[classes].to(rows)
        margins = self.margins[classes].to(rows).unsqueeze(1)
        distances = torch.cdist(centers, rows, compute_mode="donot_use_mm_for_euclid_dist").square()
        # The sum over the batch depends on a row through its class alone.
        others = (classes.unsqueeze(1) != labels) * margins
        totals = (others - distances).logsumexp(dim=1)
        values: Tensor = totals[index] + distances.gather(0, index.unsqueeze(0)).squeeze(0)
        if self.training:
            # Replaced, not changed in place: compiled, backward picks from these centroids again.
            self.centers = moved_centers(self.centers, rows, labels, self.rate)
        return values
