"""Samples drawn again: within their classes, or each on its own."""

import numpy as np
import numpy.typing as npt

from longtail.stats.intervals import Floats

Indices = npt.NDArray[np.int64]


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


def alike(*keys: Floats | Indices) -> npt.NDArray[np.intp]:
    """Which samples are the same by all keys: numbers that ascend with the keys, one a sample.

    Samples that are alike are one that counts t times and is drawn Poisson(t) times, so that
    repetitions and weights draw alike.
    """
    order = np.lexsort(keys[::-1])
    news = [np.append(True, key[order][1:] != key[order][:-1]) for key in keys]
    which = np.empty(len(order), np.intp)
    which[order] = np.logical_or.reduce(news).cumsum() - 1
    return which
