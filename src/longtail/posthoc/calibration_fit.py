r"""How calibrators are fitted: by likelihood on held-out samples, and a belief in small changes.

Logits f that carry c are calibrated where labels follow the held-out prior q. So T, the scales s
and the biases b are fitted to the samples under their own prior,

    min  mean_i −log softmax(s/T · f_i + b + log q − log c)[y_i]  +  1/2N Σ_θ (θ/spread_θ)²

over θ = log T, log s and b, and s/T · f + b still carries c. The second term is the belief, worth
as much as a few samples and gone as N grows, that θ is normal around zero: without it one held-out
sample of a class would set its bias, and a model that makes no error would get T → 0. A class
without samples is ruled out under q, so nothing but the belief speaks for its parameters.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

from longtail.core.minimise import UnsettledError
from longtail.core.numbers import check_number
from longtail.core.retarget import prior_offset
from longtail.core.tensors import as_tensor
from longtail.losses.minimise import minimise
from longtail.posthoc.held_out import HeldOut

_MAX_ITER = 1000
_BLOCK = 2**22  # numbers looked at at once
_INFORMATION = 0.3  # about what a sample of a class tells of its bias: p (1 − p)

Loss: TypeAlias = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class Calibration:
    """What was fitted, float64: T, and s and b of every class."""

    temperature: float
    scale: Tensor
    bias: Tensor


def fit_calibration(
    held: HeldOut, who: str, *, temperature: float, bias: float = 0.0, scale: float = 0.0
) -> Calibration:
    """The minimum, or an UnsettledError that `who` has none in reach.

    Args:
        held: The samples. If it is not known what they carry, log q − log c is left to b.
        who: What is fitted.
        temperature: The spread of log T: how far from zero it is expected, a standard deviation.
        bias: The spread of each b; 0 keeps them at zero.
        scale: The spread of each log s; 0 keeps them at zero.
    """
    loss, num_samples, shares = held_out_loss(held), len(held.labels), as_tensor(held.prior.probs)
    log_t = _Believed.at_zero(temperature, shares.sum(), num_samples)
    biases = _Believed.at_zero(bias, shares, num_samples)
    log_s = _Believed.at_zero(scale, shares, num_samples)
    every = (log_t, biases, log_s)

    def objective() -> Tensor:
        cost = log_t.cost() + biases.cost() + log_s.cost()
        return loss((log_s.value() - log_t.value()).exp(), biases.value()) + cost / num_samples

    gradient = minimise(
        objective, [theta.steps for theta in every], max_iter=_MAX_ITER, tolerance=1e-7
    )
    if not gradient < 1e-5:
        raise UnsettledError(
            f"{who} did not settle in {_MAX_ITER} iterations (the gradient is still "
            f"{gradient:.2g}); use a smaller spread, or logits on a smaller scale"
        )
    with torch.no_grad():
        return Calibration(float(log_t.value().exp()), log_s.value().exp(), biases.value())


@dataclass(frozen=True, eq=False)
class _Believed:
    """Parameters θ = spread · rate · steps, believed normal around zero.

    L-BFGS moves the steps. The rate makes one of them about as large as the data leave θ free, be
    they many or few of its class, which spares a long tail most of the iterations.
    """

    steps: Tensor
    rate: Tensor
    spread: float

    @classmethod
    def at_zero(cls, spread: float, share: Tensor, num_samples: int) -> "_Believed":
        with torch.inference_mode(False):
            rate = (_INFORMATION * spread**2 * share + 1 / num_samples).rsqrt()
            return cls(torch.zeros_like(rate).requires_grad_(), rate, spread)

    def value(self) -> Tensor:
        return self.spread * self.rate * self.steps

    def cost(self) -> Tensor:
        return (self.rate * self.steps).square().sum() / 2


def held_out_loss(held: HeldOut) -> Loss:
    """The mean negative log-likelihood as a function of scale and shift, float64 on the CPU.

    The samples are walked in blocks, and the derivatives are written out rather than recorded, so
    that large scores need little memory beyond their own.
    """
    _check_possible(held)
    num_samples = len(held.labels)
    offset = torch.zeros_like(as_tensor(held.prior.log))
    if held.carried is not None:
        offset = as_tensor(prior_offset(held.carried, held.prior))
    rows = max(1, _BLOCK // held.logits.shape[1])

    def loss(scale: Tensor, shift: Tensor) -> Tensor:
        s, b = scale.detach(), shift.detach()
        value, by_scale, by_shift = 0.0, torch.zeros_like(offset), torch.zeros_like(offset)
        for start in range(0, num_samples, rows):
            at = slice(start, start + rows)
            logits, labels = held.logits[at].to("cpu", torch.float64), held.labels[at]
            # What is ruled out stays so, but 0 · -inf in the derivatives would be no number.
            finite = logits.nan_to_num(neginf=0.0)
            moved = (finite * s + b + offset).masked_fill_(logits.isneginf(), -torch.inf)
            log_probs = torch.log_softmax(moved, dim=1)
            value -= float(log_probs.gather(1, labels[:, None]).sum())
            excess = log_probs.exp_()
            excess.scatter_add_(1, labels[:, None], -torch.ones_like(excess[:, :1]))
            by_scale += (excess * finite).sum(dim=0)
            by_shift += excess.sum(dim=0)
        # The tangent plane at this point, which has the value and the derivatives of the loss.
        rise = by_scale * (scale - s) + by_shift * (shift - b)
        return (value + rise.sum()) / num_samples

    return loss


def check_spread(spread: float, name: str = "spread") -> float:
    """A positive number, or a ValueError."""
    if not check_number(spread, name) > 0:
        raise ValueError(
            f"{name} must be above zero, got {spread}; a large one leaves the fit to the data alone"
        )
    return float(spread)


def _check_possible(held: HeldOut) -> None:
    own = held.logits.gather(1, held.labels.to(held.logits.device)[:, None]).squeeze(1)
    if own.isneginf().any():
        at = int(own.isneginf().nonzero()[0])
        raise ValueError(
            f"the logits of sample {at} rule out its own label, class {int(held.labels[at])}, "
            "which no calibration can mend; give probabilities to Scores.from_probs, which floors "
            "zeros"
        )
