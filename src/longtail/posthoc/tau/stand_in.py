"""What `stats` and `metrics.terms` will have."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

BINS = 20


def bin_of(probs: Floats) -> npt.NDArray[np.intp]:
    """The number of each probability's bin, from 0."""
    return np.searchsorted(np.arange(1, BINS) / BINS, probs)


def class_variances(sums: Floats, squares: Floats, counts: Floats, least: float = 0.0) -> Floats:
    """The variance of one sample of each class, from sums over its samples; 0 without samples."""
    n = np.maximum(counts, 1)
    about = np.maximum(squares - sums**2 / n, 0)
    several = counts > 1
    if several.any():
        usual = float((about[several] / (counts[several] - 1)).mean())
    else:
        total = max(float(counts.sum()), 1.0)
        left = max(float(squares.sum() - sums.sum() ** 2 / total), 0.0)
        usual = left / (total - 1) if total > 1 else 0.0
    return np.where(counts > 0, (about + max(usual, least)) / n, 0.0)


class Replicates:
    """Class-stratified draws of samples: how often each was drawn."""

    def __init__(self, labels: Indices, seed: int) -> None:
        self._order = np.argsort(labels, kind="stable")
        counts = np.bincount(labels)
        counts = counts[counts > 0]
        self._first = np.repeat(counts.cumsum() - counts, counts)
        self._counts = np.repeat(counts, counts)
        self._random = np.random.default_rng(seed)

    def draw(self) -> Floats:
        """How often each sample was drawn this time."""
        drawn = self._first + self._random.integers(0, self._counts)
        times = np.empty(len(self._order))
        times[self._order] = np.bincount(drawn, minlength=len(self._order))
        return times


def alike(*keys: Floats | npt.NDArray[np.intp] | Indices) -> npt.NDArray[np.intp]:
    """Which samples are the same by all keys: numbers that ascend with the keys, one a sample."""
    order = np.lexsort(keys[::-1])
    news = [np.append(True, key[order][1:] != key[order][:-1]) for key in keys]
    which = np.empty(len(order), np.intp)
    which[order] = np.logical_or.reduce(news).cumsum() - 1
    return which
