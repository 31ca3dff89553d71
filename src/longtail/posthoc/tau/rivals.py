r"""On which τ each sample is right, in one pass over the logits.

With classes and samples sorted by slope, all rivals on one side of a label are one slice of its
row. Rows are walked in blocks that fit the cache, in their own dtype, where

    f_y + (f_j − f_y) / |s_y − s_j|

is off by five roundings of itself and of f_y at the most. So the rival of the highest one bounds τ
on that side if no second comes that close, and its end is computed again in float64. The few
samples with a close second are decided in float64 against all rivals.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
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
_PART = 2**21  # entries that are worth a thread


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
    found = _find_in_parts(load, samples, place[samples], slopes[order], order, dtype)
    known = labels[samples][:, None]
    gaps = slopes[known] - slopes[found.rivals]
    leads = _leads(found.logits, found.own)
    right = intervals_against(leads, gaps, found.rivals < known)
    beaten = ((gaps == 0) & (leads > 0)).any(axis=1)  # by a parallel line, whatever the others do
    unclear = np.flatnonzero(_close(found) & ~beaten)
    right.start[unclear], right.stop[unclear] = _against_all(load, samples[unclear], labels, slopes)
    never = np.flatnonzero(found.own[:, 0] <= NEVER)
    right.start[never], right.stop[never] = np.inf, -np.inf
    back = np.argsort(samples)
    return Intervals(right.start[back], right.stop[back])


class _Found(NamedTuple):
    """What the walk finds, one row a sample.

    Attributes:
        rivals: The class that bounds τ from below, and the one that bounds it from above.
        logits: Of these two.
        own: The logit of the label, twice.
        ends: The highest end on either side.
        seconds: The second highest.
    """

    rivals: Indices
    logits: Rows
    own: Rows
    ends: Rows
    seconds: Rows


def _find_in_parts(
    load: Load, samples: Indices, place: Indices, lines: Floats, order: Indices, dtype: torch.dtype
) -> _Found:
    """A part of the samples for each thread: torch's own would wait for each other every block."""
    count = min(torch.get_num_threads(), max(1, len(samples) * len(lines) // _PART))
    if count == 1:
        return _find_rivals(load, samples, place, lines, order, dtype)
    with ThreadPoolExecutor(count) as pool:
        walks = [
            pool.submit(_find_rivals, load, *part, lines, order, dtype)
            for part in zip(
                np.array_split(samples, count), np.array_split(place, count), strict=True
            )
        ]
        parts = [walk.result() for walk in walks]
    return _Found(*map(np.concatenate, zip(*parts, strict=True)))


def _find_rivals(
    load: Load, samples: Indices, place: Indices, lines: Floats, order: Indices, dtype: torch.dtype
) -> _Found:
    """Samples, places of their labels, lines, and order of the classes are sorted by slope."""
    count, width = len(samples), len(lines)
    most = min(count, max(1, _BLOCK // width))
    memory, rows = torch.empty((2, most, width), dtype=dtype, device="cpu")
    numbers = rows.numpy().dtype
    found = _Found(np.empty((count, 2), np.intp), *np.empty((4, count, 2), numbers))
    in_order = bool((order[1:] > order[:-1]).all())
    positions, columns = torch.from_numpy(samples), torch.from_numpy(order)
    places, inverses = place[:0], memory[:0]
    for start in range(0, count, most):
        at = slice(start, min(start + most, count))
        where = place[at]
        memory, rows = memory[: len(where)], rows[: len(where)]
        load(positions[at], rows if in_order else memory)
        if not in_order:
            torch.index_select(memory, 1, columns, out=rows)
        first, after = int(where[0]), int(where[-1]) + 1
        if not len(places) or after > places[-1] + 1:
            places = np.arange(first, min(first + most, width)) if after - first <= most else where
            inverses = _inverses(lines[places], lines, dtype)
        which = torch.from_numpy(np.searchsorted(places, where))
        _find_in_block(found, at, rows, where, inverses, which, memory)
    return found._replace(rivals=order[found.rivals])


def _find_in_block(
    found: _Found,
    at: slice,
    rows: Tensor,
    where: Indices,
    inverses: Tensor,
    which: Tensor,
    memory: Tensor,
) -> None:
    """Put in what is found of a block of samples."""
    values, each, width = rows.numpy(), np.arange(len(where)), rows.shape[1]
    found.own[at] = values[each, where][:, None]
    label = torch.from_numpy(found.own[at, :1])
    first, after = int(where[0]), int(where[-1]) + 1
    # Classes from the first label of the block to the last are on one side of some, not of others.
    beyond = np.arange(first, after) - where[:, None]
    for side, part, outside in (
        (0, slice(0, after), beyond >= 0),
        (1, slice(first, width), beyond <= 0),
    ):
        weights = memory.view(-1)[: len(each) * (part.stop - part.start)].view(len(each), -1)
        torch.index_select(inverses[:, part], 0, which, out=weights)
        ends = torch.lerp(label, rows[:, part], weights, out=weights).numpy()
        ends[:, first - part.start : after - part.start][outside] = -np.inf
        rival = ends.argmax(axis=1)
        found.ends[at, side] = ends[each, rival]
        ends[each, rival] = -np.inf
        found.seconds[at, side] = ends.max(axis=1)
        rival += part.start
        found.rivals[at, side], found.logits[at, side] = rival, values[each, rival]


def _inverses(of: Floats, lines: Floats, dtype: torch.dtype) -> Tensor:
    """1/|s_y − s_j| for some labels y and all classes j."""
    with np.errstate(divide="ignore"):  # infinite for parallel lines
        return torch.from_numpy(1 / np.abs(of[:, None] - lines)).to(dtype)


def _close(found: _Found) -> Flags:
    """Whether rounding may have decided which rival of a side has the highest end."""
    with np.errstate(invalid="ignore", over="ignore"):  # what is infinite is not clear
        slack = 8 * np.finfo(found.ends.dtype).eps * (np.abs(found.ends) + np.abs(found.own))
        clear = (found.seconds < found.ends - slack) | (found.ends == -np.inf)
    none = (found.logits <= NEVER) & ~np.isnan(found.ends)
    close: Flags = ~(clear | none).all(axis=1)
    return close


def _leads(rivals: Rows, own: Rows) -> Floats:
    with np.errstate(invalid="ignore"):  # -inf less -inf
        leads: Floats = np.subtract(rivals, own, dtype=np.float64)
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
        leads = _leads(rows.numpy(), own)
        exact = intervals_against(leads, slopes[label] - slopes, np.arange(len(slopes)) < label)
        right.start[at], right.stop[at] = exact
    return right
