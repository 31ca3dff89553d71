r"""Centre loss: features are drawn to a running centre of their class (Wen et al., ECCV 2016).

    Ω(x, y) = ‖Φ(x) − c_y‖²

without the ½ of Wen et al., as EO eq. 6 has it. After each value, in training mode, the centres
move by the rule of the centre-loss paper,

    c_j ← c_j − rate · Σ_{i: y_i=j} (c_j − Φ_i) / (1 + n_j),        n_j rows of class j in the batch

and by nothing else: the gradient of the value reaches the features, not the centres.

Carries: it claims nothing of logits.
"""

import torch
from torch import Tensor

from longtail.core.tensors import label_tensor
from longtail.losses.kernel import can_look
from longtail.losses.regularizer import Regularizer


class Center(Regularizer):
    """The centre term on features: `Center(dim, num_classes)(features, labels)`.

    The centres start at zero, are no parameters and are saved with the module. Every process sees
    the whole batch, so they move alike on all; with gradient accumulation they move at each step.

    Args:
        dim: The dimension of the features.
        num_classes: How many classes there are.
        rate: How far the centres move towards the batch, 0 to 1.
        ignore_index: Rows with this label are left out, and move no centre.
        gather: Whether to see the batches of all processes.

    >>> import torch
    >>> center = Center(2, 3)
    >>> features, labels = torch.tensor([[1.0, 0.0], [3.0, 4.0]]), torch.tensor([0, 2])
    >>> center(features, labels)
    tensor(13.)
    >>> center.centers[2].tolist()  # moved by rate · (Φ − c) / (1 + 1)
    [0.75, 1.0]
    >>> center(features, labels)
    tensor(7.312)
    """

    centers: Tensor

    def __init__(
        self,
        dim: int,
        num_classes: int,
        rate: float = 0.5,
        *,
        ignore_index: int = -100,
        gather: bool = True,
    ) -> None:
        super().__init__(ignore_index=ignore_index, gather=gather)
        self.rate = check_rate(rate)
        self.hold("centers", zero_centers(num_classes, dim))

    def values(self, rows: Tensor, labels: Tensor) -> Tensor:
        """Ω of each row. In training mode, the centres move afterwards."""
        check_fit(rows, labels, self.centers)
        values = (rows - self.centers[labels].to(rows)).square().sum(dim=1)
        if self.training:
            # Replaced, not changed in place: compiled, backward picks from these centres again.
            self.centers = moved_centers(self.centers, rows, labels, self.rate)
        return values

    def extra_repr(self) -> str:
        """Its sizes, for print(center)."""
        num_classes, dim = self.centers.shape
        return f"dim={dim}, num_classes={num_classes}, rate={self.rate}"


@torch.no_grad()
def moved_centers(centers: Tensor, rows: Tensor, labels: Tensor, rate: float) -> Tensor:
    """The centres after a batch, by the centre-loss rule: a new tensor, without gradient.

    The one in 1 + n_j is what keeps a class with a single row in the batch from jumping to it.

    Args:
        centers: Shape (C, D).
        rows: Features of shape (N, D).
        labels: Their classes, shape (N,).
        rate: How far to move, 0 to 1.

    >>> moved_centers(torch.zeros(2, 1), torch.tensor([[3.0], [3.0]]), torch.tensor([0, 0]), 0.5)
    tensor([[1.],
            [0.]])
    """
    ones = torch.ones_like(labels, dtype=centers.dtype)
    counts = centers.new_zeros(len(centers)).scatter_add_(0, labels, ones)
    steps = (rows - centers[labels]) * (rate / (1 + counts))[labels].unsqueeze(1)
    return centers.index_add(0, labels, steps.to(centers.dtype))


def zero_centers(num_classes: int, dim: int) -> Tensor:
    """Centres of shape (C, D) to start from; float64, and cast where they are used."""
    if num_classes < 1 or dim < 1:
        raise ValueError(
            f"centers need at least one class and one dimension, got {num_classes} and {dim}"
        )
    return torch.zeros(num_classes, dim, dtype=torch.float64)


def check_rate(rate: float) -> float:
    """The rate, or a ValueError: beyond 1 the centres would overshoot the features."""
    if not 0 <= rate <= 1:
        raise ValueError(f"rate must lie in 0 to 1, got {rate}")
    return rate


def check_fit(rows: Tensor, labels: Tensor, centers: Tensor) -> None:
    """Raise unless rows have the dimension of the centres and labels name one of them."""
    num_classes, dim = centers.shape
    if rows.shape[1] != dim:
        raise ValueError(
            f"the centers have dimension {dim}, the features {rows.shape[1]}; "
            "give the dimension of the features when making the regularizer"
        )
    if can_look(labels):
        label_tensor(labels, num_classes)
