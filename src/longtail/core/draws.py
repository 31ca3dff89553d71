r"""Random numbers by a seed in NumPy, the same that torch draws by that seed.

Both go through the 32-bit words of the Mersenne Twister:

    permutation   Fisher and Yates: the word modulo what is left
    uniform       the last 53 bits of two words, or 24 of one, as a fraction
    normal        Box and Muller on 16 such fractions at a time; equal to rounding

So folds, subsets and synthetic sets are the same whichever half of the package draws them.
"""

import numpy as np
import numpy.typing as npt

from longtail.core.arrays import Floats, Indices
from longtail.core.numbers import check_whole

_AT_ONCE = 16


class Draws:
    """Draws one after the other, by the last 32 bits of a seed.

    >>> Draws(0).permutation(5).tolist()
    [4, 0, 1, 3, 2]
    """

    def __init__(self, seed: int) -> None:
        self._stream = np.random.RandomState(check_whole(seed, "seed") % 2**32)

    def permutation(self, number: int) -> Indices:
        """The numbers from 0 to `number` - 1 in random order."""
        steps = self._words(max(0, number - 1)) % np.arange(number, 1, -1)
        order = list(range(number))
        for at, step in enumerate(steps.tolist()):
            order[at], order[at + step] = order[at + step], order[at]
        return np.array(order, dtype=np.int64)

    def uniform(self, number: int) -> Floats:
        """Numbers in 0 to 1, 1 excluded."""
        high, low = self._words(2 * number).reshape(number, 2).T
        return ((high << 32 | low) % 2**53).astype(np.float64) * 2.0**-53

    def uniform32(self, number: int) -> npt.NDArray[np.float32]:
        """The same in float32."""
        return (self._words(number) % 2**24).astype(np.float32) * np.float32(2**-24)

    def normal32(self, number: int) -> npt.NDArray[np.float32]:
        """Normal numbers in float32."""
        values = self.uniform32(max(number, _AT_ONCE))
        whole = len(values) // _AT_ONCE * _AT_ONCE
        values[:whole] = _box_muller(values[:whole])
        if whole < number:
            values[-_AT_ONCE:] = _box_muller(self.uniform32(_AT_ONCE))
        return values[:number]

    def _words(self, number: int) -> Indices:
        return self._stream.randint(0, 2**32, number, np.uint32).astype(np.int64)


def _box_muller(uniform: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    first, second = uniform.reshape(-1, 2, _AT_ONCE // 2).swapaxes(0, 1)
    radius = np.sqrt(-2 * np.log(1 - first))
    angle = np.float32(2 * np.pi) * second
    pairs = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    return pairs.reshape(-1)
