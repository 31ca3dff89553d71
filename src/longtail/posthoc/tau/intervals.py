r"""On which τ a sample is right: one interval, because adjusted logits are lines in τ.

With lines f_j + τ·s_j, class y wins iff τ·(s_y − s_j) ≥ f_j − f_y for every rival j. So

    flatter rivals, s_j < s_y, bound τ from below and steeper ones from above, at
    (f_j − f_y) / (s_y − s_j),

and parallel ones must lie below whatever τ. Ties as argmax: the lowest index wins, so against an
earlier class the inequality is strict. Intervals are [start, stop) on the float64 numbers: an end
that belongs to the other side is moved to the next number, so no flags are needed.
"""

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Flags: TypeAlias = npt.NDArray[np.bool_]


class Intervals(NamedTuple):
    """The samples are right for start ≤ τ < stop; never where that is empty."""

    start: Floats
    stop: Floats

    def contain(self, tau: float) -> Flags:
        """Which samples are right at τ."""
        return (self.start <= tau) & (tau < self.stop)


def intervals_against(leads: Floats, gaps: Floats, earlier: Flags) -> Intervals:
    """The interval of each sample against the rivals of its row.

    Args:
        leads: f_j − f_y, how far the rival is ahead at τ = 0; -inf for one that never wins.
        gaps: s_y − s_j.
        earlier: Whether the rival has the lower index, and so wins ties.
    """
    with np.errstate(divide="ignore", invalid="ignore"):  # at parallel rivals, which are left out
        ends = leads / gaps
    past, able = np.nextafter(ends, np.inf), leads > -np.inf
    starts = np.where((gaps > 0) & able, np.where(earlier, past, ends), -np.inf)
    stops = np.where((gaps < 0) & able, np.where(earlier, ends, past), np.inf)
    beaten = ((gaps == 0) & ((leads > 0) | ((leads == 0) & earlier))).any(axis=1)
    return Intervals(
        np.where(beaten, np.inf, starts.max(axis=1)), np.where(beaten, -np.inf, stops.min(axis=1))
    )
