r"""Finite worlds: small distributions known in full, in which every claim can be checked exactly.

A world is a table of counts n(x, y), and these samples are the whole population. So

    p(y) = Σ_x n(x, y) / N,    p(x|y) = n(x, y) / Σ_x n(x, y),    p_t(y|x) ∝ p(x|y) · t(y)

are exact, and a model with one free logit for every (x, y) can reach the population minimiser of
any loss. Labels smoothed by ε are those of the world with (1−ε)·n(x, y) + ε/C·Σ_y n(x, y): some
samples get a class at random.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from longtail.core.minimise import Floats, minimise
from longtail.core.prior import Prior, PriorLike
from longtail.core.tensors import as_tensor

_NEWTON_STEPS = 6  # to the last digits


@dataclass(frozen=True, eq=False)
class FiniteWorld:
    """A population of samples (x, y), x one of finitely many points.

    >>> world = FiniteWorld.long_tailed()
    >>> world.prior
    Prior([0.608, 0.253, 0.101, 0.038])
    >>> world.balanced_decisions().tolist()
    [0, 1, 2, 3, 3, 2]
    """

    table: Tensor  # n(x, y), shape (points, classes), whole numbers above zero

    def __post_init__(self) -> None:
        if self.table.dim() != 2 or self.table.is_floating_point() or (self.table < 1).any():
            raise ValueError(
                "a world is a table of whole numbers above zero, one row a point and one column "
                f"a class, got {self.table}"
            )

    @classmethod
    def long_tailed(cls) -> FiniteWorld:
        """The standard world: six points, four classes of 96, 40, 16 and 6 samples."""
        rows = [[50, 5, 1, 1], [18, 18, 2, 1], [14, 6, 7, 1], [8, 5, 2, 1], [4, 3, 1, 1]]
        return cls(torch.tensor([*rows, [2, 3, 3, 1]], device="cpu"))

    @classmethod
    def drawn(cls, seed: int, points: int = 5, classes: int = 4) -> FiniteWorld:
        """A random world, its classes from frequent to rare."""
        generator = torch.Generator("cpu").manual_seed(seed)
        sizes = 60.0 * 8.0 ** (-torch.arange(classes, device="cpu") / max(classes - 1, 1))
        table = torch.rand(points, classes, generator=generator, device="cpu") ** 2 * sizes
        return cls(1 + table.long())

    @property
    def num_classes(self) -> int:
        """How many classes there are."""
        return self.table.shape[1]

    @property
    def prior(self) -> Prior:
        """p(y), the prior of the population."""
        return Prior.of(self.table.sum(dim=0))

    def posterior(self, target: PriorLike, label_smoothing: float = 0.0) -> Tensor:
        """p_t(y|x) where the labels follow the target: shape (points, classes), float64.

        Of labels smoothed by ε, whose prior the target then is; of the true labels at 0.
        """
        joint = self._likelihood(label_smoothing) * as_tensor(Prior.of(target).probs)
        return joint / joint.sum(dim=1, keepdim=True)

    def balanced_decisions(self) -> Tensor:
        """The class of each point that minimises the balanced error: argmax_y p(x|y), LA eq. 7."""
        return self._likelihood().argmax(dim=1)

    def balanced_error(self, decisions: Tensor) -> float:
        """The balanced error of deciding on one class for each point."""
        right = torch.nn.functional.one_hot(decisions, self.num_classes)
        return 1 - float((self._likelihood() * right).sum() / self.num_classes)

    def samples(self) -> tuple[Tensor, Tensor]:
        """The population: the point and the label of every sample."""
        every = (torch.arange(size, device=self.table.device) for size in self.table.shape)
        point, label = torch.meshgrid(*every, indexing="ij")
        times = self.table.flatten()
        return (point.flatten().repeat_interleave(times), label.flatten().repeat_interleave(times))

    def minimise(self, loss: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        """The logits of each point that minimise the loss over the population, float64.

        Raises RuntimeError if the gradient does not vanish, as where there is no minimum.
        """
        points, labels = self.samples()

        def objective(logits: Tensor) -> Tensor:
            return loss(logits[points], labels)

        return minimum(objective, self.table)

    def _likelihood(self, label_smoothing: float = 0.0) -> Tensor:
        counts = self.table.double()
        anyone = counts.mean(dim=1, keepdim=True).expand_as(counts)
        counts = torch.lerp(counts, anyone, label_smoothing)
        return counts / counts.sum(dim=0)


def minimum(objective: Callable[[Tensor], Tensor], table: Tensor) -> Tensor:
    """The logits that minimise the objective, float64, of the shape and device of the table.

    Raises RuntimeError if the gradient does not vanish, as where there is no minimum.
    """

    def value_and_gradient(flat: Floats) -> tuple[float, Floats]:
        logits = torch.tensor(flat, device=table.device).view(table.shape)
        value = objective(logits.requires_grad_())
        (gradient,) = torch.autograd.grad(value, logits)
        return value.item(), gradient.flatten().cpu().numpy()

    # L-BFGS gets near a minimum from afar, but no nearer than the value's rounding allows.
    start = np.zeros(table.numel())
    flat, _ = minimise(value_and_gradient, start, max_iter=1000, tolerance=1e-7)
    logits = torch.tensor(flat, device=table.device).view(table.shape)
    for _ in range(_NEWTON_STEPS):
        gradient, hessian = _derivatives(objective, logits)
        # The pseudo-inverse leaves alone what the loss does not see, as a shift of all logits.
        step = torch.linalg.pinv(hessian, rtol=1e-10, hermitian=True) @ gradient.flatten()
        logits = logits - step.view_as(logits)
    gradient, _ = _derivatives(objective, logits)
    if not gradient.abs().max() < 1e-9:
        raise RuntimeError(f"no minimum was found: the gradient is still {gradient}")
    return logits


def _derivatives(objective: Callable[[Tensor], Tensor], logits: Tensor) -> tuple[Tensor, Tensor]:
    """The gradient, and the second derivatives as a square matrix."""
    logits = logits.detach().requires_grad_()
    (gradient,) = torch.autograd.grad(objective(logits), logits, create_graph=True)
    rows = [torch.autograd.grad(g, logits, retain_graph=True)[0] for g in gradient.flatten()]
    return gradient.detach(), torch.stack([row.flatten() for row in rows])
