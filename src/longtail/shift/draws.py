"""What every way of estimating a prior hands back, and how samples are drawn for intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from longtail.core import Prior
from longtail.posthoc.validation import Floats, Indices

_LEAST = 1e-9  # of a probability: scores cannot be moved from a prior with zeros


@dataclass(frozen=True, eq=False)
class RawEstimate:
    """An estimate, and how far each class may be off."""

    prior: Prior  # without zeros
    spread: Floats | None  # standard deviations of log-probabilities, if asked for
    iterations: int
    converged: bool
    slope: float | None = None  # of the trend it was shrunk towards, if any
    trust: float | None = None  # how far single classes may leave that trend


def full(probs: Floats) -> Prior:
    """The prior with these probabilities, none of them below a billionth."""
    return Prior.from_log(np.log(np.maximum(probs, _LEAST)))


class Draws:
    """Samples drawn again by a seed.

    The numbers are those of a 32-bit Mersenne Twister, two of them for the 53 bits of one between
    0 and 1: the same seed has always given the same draws, whatever library made them.
    """

    def __init__(self, seed: int) -> None:
        self._words = np.random.RandomState(seed % 2**32)

    def uniform(self, *shape: int) -> Floats:
        """Numbers between 0 and 1."""
        words = np.frombuffer(self._words.bytes(8 * int(np.prod(shape))), "<u4").astype(np.uint64)
        bits = (words[::2] << np.uint64(32) | words[1::2]) & np.uint64(2**53 - 1)
        return (bits.astype(np.float64) * 2.0**-53).reshape(shape)

    def weighted_again(self, chances: Floats, labels: Indices) -> Floats:
        """Each row with other weights within classes, of which each keeps its chance as a whole.

        They are those of the Bayesian bootstrap (Rubin, 1981): other samples of the same classes.
        """
        weights = chances * -np.log(1 - self.uniform(*chances.shape))
        for row, chance in zip(weights, chances, strict=True):
            before, after = np.bincount(labels, chance), np.bincount(labels, row)
            row *= (before / np.maximum(after, 1e-300))[labels]
        return weights

    def drawn_again(self, chances: Floats, num_samples: int, draws: int) -> Floats:
        """How often each sample is among `num_samples` drawn by chance, shape (samples, draws).

        The chances are the same for all draws, or of shape (draws, samples).
        """
        times = np.empty((chances.shape[-1], draws))
        for k, chance in enumerate(np.broadcast_to(chances, (draws, chances.shape[-1]))):
            limits = chance.cumsum()
            limits /= limits[-1]
            picked = np.searchsorted(limits[:-1], self.uniform(num_samples))
            times[:, k] = np.bincount(picked, minlength=len(chance))
        return times
