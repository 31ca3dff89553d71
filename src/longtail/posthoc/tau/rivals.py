r"""On which τ each sample is right, in one pass over the logits.

With classes and samples sorted by slope, all rivals on one side of a label are one slice of its
row. Rows are walked in blocks that fit the cache, in their own dtype, where

    f_y + (f_j − f_y) / |s_y − s_j|

is off by five roundings of itself and of f_y at the most. So the rival of the highest one bounds τ
on that side if no second comes that close, and its end is computed again in float64. The few
samples with a close second are decided in float64 against all rivals.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from longtail.posthoc.tau.intervals import Flags, Floats, Intervals, intervals_against

Indices: TypeAlias = npt.NDArray[np.intp]
Rows: TypeAlias = npt.NDArray[Any]
Load: TypeAlias = Callable[[Tensor, Tensor], object]

NEVER = -1e30  # a logit as low as this never wins
_BLOCK = 2**17  # entries of a block: half a megabyte in float32


def line_intervals(load: Load, labels: Indices, slopes: Floats, dtype: torch.dtype) -> Intervals:
    """Where the label of each sample has the highest of the lines f + τ·slopes.

    Args:
        load: Writes the rows f of the samples at given positions into a given tensor. They have
            no NaN and no +inf, and -inf or `NEVER` for a class that never wins.
        labels: The classes of all samples.
        slopes: One finite number a class.
        dtype: Of the rows, float32 or float64.
    """
    order = np.argsort(slopes, kind="stable")
    place = np.argsort(order)[labels]
    samples = np.argsort(place, kind="stable")
    known = labels[samples][:, None]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # all that is then unclear
        found = _find_rivals(load, samples, place[samples], slopes[order], order, dtype)
    gaps = slopes[known] - slopes[found.rivals]
    right = intervals_against(found.leads, gaps, found.rivals < known)
    beaten = ((gaps == 0) & (found.leads > 0)).any(axis=1)  # by a parallel line, whatever the rest
    unclear = np.flatnonzero(found.close & ~beaten)
    right.start[unclear], right.stop[unclear] = _against_all(load, samples[unclear], labels, slopes)
    back = np.argsort(samples)
    return Intervals(right.start[back], right.stop[back])


class _Found(NamedTuple):
    """What the walk finds of each sample.

    Attributes:
        rivals: The class that bounds τ from below, the one that bounds it from above, and the few
            classes that are on one side of some labels of the block and not of others.
        leads: How far these are ahead at τ = 0; -inf for one that never wins.
        close: Whether a second comes too close to one of the first two.
    """

    rivals: Indices
    leads: Floats
    close: Flags


def _find_rivals(
    load: Load, samples: Indices, place: Indices, lines: Floats, order: Indices, dtype: torch.dtype
) -> _Found:
    """Samples, places of their labels, lines, and order of the classes are sorted by slope."""
    count, width = len(samples), len(lines)
    most = min(count, max(1, _BLOCK // width))
    starts = np.arange(0, count, most)
    last = np.append(starts[1:], count) - 1
    between = int((place[last] - place[starts]).max()) + 1
    rivals = np.repeat(place[:, None], 2 + between, axis=1)
    leads, close = np.full(rivals.shape, -np.inf), np.zeros(count, bool)
    in_order = bool((order[1:] > order[:-1]).all())
    positions, columns = torch.from_numpy(samples), torch.from_numpy(order)
    memory, rows = torch.empty((2, most, width), dtype=dtype, device="cpu")
    for start in starts.tolist():
        at = slice(start, start + most)
        where = place[at]
        memory, rows = memory[: len(where)], rows[: len(where)]
        load(positions[at], rows if in_order else memory)
        if not in_order:
            torch.index_select(memory, 1, columns, out=rows)
        values, each = rows.numpy(), np.arange(len(where))
        own = values[each, where]
        first, after = int(where[0]), int(where[-1]) + 1
        inverses, which = _inverses(where, lines, dtype)
        for side, part in enumerate((slice(0, first), slice(after, width))):
            if part.start < part.stop:
                ends = memory.view(-1)[: len(where) * (part.stop - part.start)]
                ends = ends.view(len(where), -1)
                torch.index_select(inverses[:, part], 0, which, out=ends)
                torch.lerp(torch.from_numpy(own)[:, None], rows[:, part], ends, out=ends)
                rival, top, clear = _highest(ends.numpy(), own, each)
                rival += part.start
                logit = values[each, rival]
                rivals[at, side], leads[at, side] = rival, _leads(logit, own)
                close[at] |= ~(clear | ((logit <= NEVER) & ~np.isnan(top)))
        first = min(first, width - between)
        rivals[at, 2:] = np.arange(first, first + between)
        leads[at, 2:] = _leads(values[:, first : first + between], own[:, None])
    return _Found(order[rivals], leads, close)


def _inverses(where: Indices, lines: Floats, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """1/|s_y − s_j| for every label of a block, and which of them is each sample's."""
    new = np.append(True, where[1:] != where[:-1])
    gaps = np.abs(lines[where[new]][:, None] - lines)
    return torch.from_numpy(1 / gaps).to(dtype), torch.from_numpy(new.cumsum() - 1)


def _highest(ends: Rows, own: Rows, each: Indices) -> tuple[Indices, Rows, Flags]:
    """The rival with the highest end, that end, and whether it is clear of what rounding can do."""
    rival = ends.argmax(axis=1)
    top = ends[each, rival]
    ends[each, rival] = -np.inf
    slack = 8 * np.finfo(ends.dtype).eps * (np.abs(top) + np.abs(own))
    return rival, top, (ends.max(axis=1) < top - slack) | (top == -np.inf)


def _leads(rivals: Rows, own: Rows) -> Floats:
    leads = np.where(own > NEVER, np.subtract(rivals, own, dtype=np.float64), np.inf)
    leads[rivals <= NEVER] = -np.inf
    return leads


def _against_all(load: Load, samples: Indices, labels: Indices, slopes: Floats) -> Intervals:
    right = Intervals(np.empty(len(samples)), np.empty(len(samples)))
    most = max(1, _BLOCK // len(slopes))
    for start in range(0, len(samples), most):
        at = slice(start, start + most)
        label = labels[samples[at]][:, None]
        rows = torch.empty((len(label), len(slopes)), dtype=torch.float64, device="cpu")
        load(torch.from_numpy(samples[at]), rows)
        own = np.take_along_axis(rows.numpy(), label, axis=1)
        with np.errstate(invalid="ignore"):  # -inf less -inf
            leads = _leads(rows.numpy(), own)
        exact = intervals_against(leads, slopes[label] - slopes, np.arange(len(slopes)) < label)
        right.start[at], right.stop[at] = exact
    return right
