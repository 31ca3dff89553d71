r"""The two ways in which logits move with τ, and on which τ they are right along them.

    shift   f_y + τ·o_y          o = log t − log π: from the prior π towards the target t (LA eq. 9)
    scale   f_y · ν_y^−τ         ν = ‖w‖ or π: weight normalisation (LA eq. 3)

A class that the target rules out is ruled out at every τ. Scaled logits keep their sign, so a
positive one is beaten by positive ones only, and log f_y − τ·log ν_y are lines; where all are
negative, −log|f_y| + τ·log ν_y are.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from longtail.core.tensors import wide_dtype
from longtail.posthoc.tau.intervals import Intervals
from longtail.posthoc.tau.rivals import NEVER, Load, line_intervals

_BLOCK = 2**17  # entries of a block: half a megabyte in float32
_SOME = 1000  # samples that tell how large logits are


class Move(Protocol):
    """Moves rows of logits, into memory that may be given."""

    def __call__(self, rows: Tensor, out: Tensor | None = None) -> Tensor:
        """The rows, moved."""
        ...


class TauPath(ABC):
    """Where logits go as τ grows, affine in each of them."""

    @abstractmethod
    def affine(self, tau: float) -> tuple[Tensor, Tensor]:
        """The factor and the addend of each class's logit, float64."""

    @abstractmethod
    def mover(self, tau: float) -> Move:
        """What moves logits on the CPU, to the bit as `affine` would."""

    @abstractmethod
    def rates(self, moved: Tensor) -> tuple[Tensor, Tensor]:
        """First and second derivative of moved logits by τ, finite where those are -inf too."""

    @abstractmethod
    def length(self, logits: Tensor) -> float:
        """How far a unit of τ moves the logits of a sample against each other: their deviation."""

    @abstractmethod
    def reach(self, logits: Tensor) -> float:
        """How far it moves two logits of a sample against each other at most, in mean square."""

    @abstractmethod
    def intervals(self, logits: Tensor, labels: Tensor) -> Intervals:
        """On which τ each sample is right."""

    def predict(self, logits: Tensor, tau: float) -> Tensor:
        """What is predicted at τ from logits that are stored in their own dtype again."""
        most, move = max(1, _BLOCK // logits.shape[1]), self.mover(tau)
        memory = torch.empty((most, logits.shape[1]), dtype=wide_dtype(logits.dtype), device="cpu")
        predicted = np.empty(len(logits), np.int64)
        for start in range(0, len(logits), most):
            rows = logits[start : start + most]
            moved = move(_wide(rows), memory[: len(rows)])
            stored = _wide(moved.to(rows.dtype))
            # NumPy's argmax is several times as fast as torch's, and breaks ties the same way.
            stored.numpy().argmax(axis=1, out=predicted[start : start + most])
        return torch.from_numpy(predicted)


@dataclass(frozen=True, eq=False)
class Shift(TauPath):
    """f + τ·offset, where an offset of -inf rules its class out."""

    offset: Tensor

    def affine(self, tau: float) -> tuple[Tensor, Tensor]:
        """One, and τ·offset."""
        ruled_out = self.offset.isneginf()
        return torch.ones_like(self.offset), torch.where(ruled_out, -torch.inf, tau * self.offset)

    def mover(self, tau: float) -> Move:
        """Adds τ·offset."""
        shift = self.affine(tau)[1]
        return lambda rows, out=None: torch.add(rows, shift.to(rows.dtype), out=out)

    def rates(self, moved: Tensor) -> tuple[Tensor, Tensor]:
        """The offset, and nothing."""
        offset = self.offset.nan_to_num(neginf=0.0)
        return offset, torch.zeros_like(offset)

    def length(self, logits: Tensor) -> float:
        """The deviation of the offset over the classes that are not ruled out."""
        return float(self.offset[self.offset.isfinite()].std(correction=0))

    def reach(self, logits: Tensor) -> float:
        """From the lowest offset to the highest, of the classes that are not ruled out."""
        low, high = self.offset[self.offset.isfinite()].aminmax()
        return float(high - low)

    def intervals(self, logits: Tensor, labels: Tensor) -> Intervals:
        """Lines with the offset for slope."""
        ruled_out = self.offset.isneginf().nonzero().flatten()

        def load(at: Tensor, rows: Tensor) -> None:
            _load(logits, at, rows)
            if len(ruled_out):
                rows[:, ruled_out] = -torch.inf

        slopes = self.offset.nan_to_num(neginf=0.0)
        return line_intervals(load, labels.numpy(), slopes.numpy(), wide_dtype(logits.dtype))


@dataclass(frozen=True, eq=False)
class Scale(TauPath):
    """f · ν^−τ."""

    log_nu: Tensor

    def affine(self, tau: float) -> tuple[Tensor, Tensor]:
        """ν^−τ, and nothing."""
        return (-tau * self.log_nu).exp(), torch.zeros_like(self.log_nu)

    def mover(self, tau: float) -> Move:
        """Divides by ν^τ."""
        factor = self.affine(tau)[0]
        return lambda rows, out=None: torch.mul(rows, factor.to(rows.dtype), out=out)

    def rates(self, moved: Tensor) -> tuple[Tensor, Tensor]:
        """−log ν times the logits, and that once more."""
        finite = moved.nan_to_num(neginf=0.0)
        return -self.log_nu * finite, self.log_nu.square() * finite

    def length(self, logits: Tensor) -> float:
        """The deviation of −log ν times the logits, over the classes of some of the samples."""
        return float(self._some_rates(logits).std(dim=1, correction=0).mean())

    def reach(self, logits: Tensor) -> float:
        """From the lowest of −log ν times the logits to the highest, of some of the samples."""
        low, high = self._some_rates(logits).aminmax(dim=1)
        return float((high - low).square().mean().sqrt())

    def _some_rates(self, logits: Tensor) -> Tensor:
        return self.rates(_wide(logits[:_SOME]).double())[0]

    def intervals(self, logits: Tensor, labels: Tensor) -> Intervals:
        """Lines of the logarithms, apart for samples with a positive logit and those without."""
        top = logits.amax(dim=1).cpu()
        right = Intervals(np.full(len(top), np.inf), np.full(len(top), -np.inf))
        for sign in (1, -1):
            samples = (top * sign > 0).nonzero().flatten()
            if len(samples):
                known, slopes = labels[samples].numpy(), (-sign * self.log_nu).numpy()
                found = line_intervals(_logs(logits, samples, sign), known, slopes, torch.float64)
                right.start[samples.numpy()], right.stop[samples.numpy()] = found
        zero = (top == 0).nonzero().flatten()
        highest = self.predict(logits[zero.to(logits.device)], 0.0)
        always = zero[highest == labels[zero]].numpy()
        right.start[always], right.stop[always] = -np.inf, np.inf
        return right


def _logs(logits: Tensor, samples: Tensor, sign: int) -> Load:
    """What loads log f of some samples, or −log(−f) if the sign is negative."""

    def load(at: Tensor, rows: Tensor) -> None:
        _load(logits, samples[at], rows)
        rows.mul_(sign).clamp_(min=0).log_().mul_(sign).clamp_(min=NEVER)

    return load


def _wide(rows: Tensor) -> Tensor:
    """On the CPU, in a dtype that NumPy has."""
    return rows.to("cpu", wide_dtype(rows.dtype))


def _load(logits: Tensor, at: Tensor, rows: Tensor) -> None:
    """Write some rows of the logits into memory on the CPU."""
    if logits.dtype == rows.dtype and logits.device == rows.device:
        torch.index_select(logits, 0, at, out=rows)  # without a copy in between
    else:
        rows.copy_(logits.index_select(0, at.to(logits.device)))
