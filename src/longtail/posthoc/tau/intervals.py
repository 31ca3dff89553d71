r"""On which τ a sample is right: one interval, because adjusted logits are lines in τ.

With lines f_j + τ·s_j, class y wins iff τ·(s_y − s_j) ≥ f_j − f_y for every rival j. So

    flatter rivals, s_j < s_y, bound τ from below and steeper ones from above, at
    (f_j − f_y) / (s_y − s_j),                                                              (1)

and parallel ones must lie below whatever τ. Ties as argmax: the lowest index wins, so against an
earlier class the inequality is strict. Intervals are [start, stop) on the float64 numbers: an end
that belongs to the other side is moved to the next number, so no flags are needed.

One pass over the logits finds them. With classes and samples sorted by slope, all rivals on one
side of a label are one slice of its row. Rows are walked in blocks that fit the cache, in their own
dtype, where |(1)| is off by three roundings of itself at the most. So the rival of the highest one
bounds τ on that side if no second comes that close, and its end is computed again in float64. The
few samples with a close second are decided in float64 against all rivals.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from longtail.core.arrays import Floats, Indices, Numbers
from longtail.core.blocks import PER_CALL, slices

Flags: TypeAlias = npt.NDArray[np.bool_]
Load: TypeAlias = Callable[[Indices, Numbers], object]

NEVER = -1e30  # a logit as low as this never wins
_PART = 2**21  # entries that are worth a thread


class Intervals(NamedTuple):
    """The samples are right for start ≤ τ < stop; never where that is empty."""

    start: Floats
    stop: Floats

    def contain(self, tau: float) -> Flags:
        """Which samples are right at τ."""
        return (self.start <= tau) & (tau < self.stop)


def intervals_against(leads: Floats, gaps: Floats, earlier: Flags) -> Intervals:
    """The interval of each sample against the rivals of its row.

    `leads` are f_j − f_y, -inf for a rival that never wins, `gaps` s_y − s_j, and `earlier` whether
    the rival has the lower index, and so wins ties.
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


def line_intervals(load: Load, labels: Indices, slopes: Floats, dtype: np.dtype) -> Intervals:
    """Where the label of each sample has the highest of the lines f + τ·slopes.

    `load` writes the rows f of the samples at some positions into an array of the dtype, float32 or
    float64, with -inf or `NEVER` for a class that never wins.
    """
    order = np.argsort(slopes, kind="stable")
    rank = np.argsort(order)[labels]
    samples = np.argsort(rank, kind="stable")
    nearest = _nearest_in_parts(load, samples, rank[samples], slopes[order], order, dtype)
    own_class = labels[samples][:, None]
    gaps = slopes[own_class] - slopes[nearest.rivals]
    leads = _leads(nearest.logits, nearest.own)
    right = intervals_against(leads, gaps, nearest.rivals < own_class)
    never = nearest.own[:, 0] <= NEVER
    beaten = ((gaps == 0) & (leads > 0)).any(axis=1)  # by a parallel line, whatever the others do
    unclear = np.flatnonzero(_are_close(nearest) & ~beaten & ~never)
    right.start[unclear], right.stop[unclear] = _against_all(load, samples[unclear], labels, slopes)
    right.start[never], right.stop[never] = np.inf, -np.inf
    back = np.argsort(samples)
    return Intervals(right.start[back], right.stop[back])


class _Nearest(NamedTuple):
    """The rivals that bound τ, one row a sample: from below, and from above."""

    rivals: Indices
    logits: Numbers
    own: Numbers  # the logit of the label, twice
    ends: Numbers  # the highest |(1)| on either side
    seconds: Numbers  # the second highest


def _nearest_in_parts(
    load: Load, samples: Indices, rank: Indices, lines: Floats, order: Indices, dtype: np.dtype
) -> _Nearest:
    """A part of the samples for each thread."""
    count = min(_num_threads(), max(1, len(samples) * len(lines) // _PART))

    def walk(part: tuple[Indices, Indices]) -> _Nearest:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return _find_nearest(load, *part, lines, order, dtype)

    if count == 1:
        return walk((samples, rank))
    from concurrent.futures import ThreadPoolExecutor

    parts = zip(np.array_split(samples, count), np.array_split(rank, count), strict=True)
    with ThreadPoolExecutor(count) as pool:
        return _Nearest(*map(np.concatenate, zip(*pool.map(walk, parts), strict=True)))


def _num_threads() -> int:
    """As many as there are processors, or as OMP_NUM_THREADS says."""
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return max(1, int(limit)) if limit.isdigit() else os.cpu_count() or 1


def _find_nearest(
    load: Load, samples: Indices, rank: Indices, lines: Floats, order: Indices, dtype: np.dtype
) -> _Nearest:
    """Samples, ranks of their labels, lines, and order of the classes are sorted by slope."""
    count, width = len(samples), len(lines)
    in_order = bool((order[1:] > order[:-1]).all())
    nearest = _Nearest(np.empty((count, 2), np.int64), *np.empty((4, count, 2), dtype))
    most = min(count, max(1, PER_CALL // width))
    memory = np.empty((3, most, width), dtype)
    for at in slices(count, width, PER_CALL):
        where = rank[at]
        rows, loaded, ends = memory[:, : len(where)]
        load(samples[at], rows if in_order else loaded)
        if not in_order:
            np.take(loaded, order, axis=1, out=rows, mode="clip")
        new = np.append(True, where[1:] != where[:-1])
        inverses = (1 / np.abs(lines[where[new], None] - lines)).astype(dtype)  # inf if parallel
        np.take(inverses, new.cumsum() - 1, axis=0, out=loaded, mode="clip")
        own = rows[np.arange(len(where)), where][:, None]
        nearest.own[at] = own
        np.subtract(rows, own, out=ends)
        ends *= loaded
        _find_in_block(nearest, at, rows, where, ends)
    return nearest._replace(rivals=order[nearest.rivals])


def _find_in_block(
    nearest: _Nearest, at: slice, rows: Numbers, where: Indices, ends: Numbers
) -> None:
    """Put in what is found of a block of samples."""
    each, width = np.arange(len(where)), rows.shape[1]
    first, after = int(where[0]), int(where[-1]) + 1
    # Classes from the first label of the block to the last are on one side of some, not of others.
    beyond = np.arange(first, after) - where[:, None]
    between = ends[:, first:after].copy()
    for side, part, outside in (
        (0, slice(0, after), beyond >= 0),
        (1, slice(first, width), beyond <= 0),
    ):
        ends[:, first:after] = np.where(outside, -np.inf, between)
        own_side = ends[:, part]
        rival = own_side.argmax(axis=1)
        nearest.ends[at, side] = own_side[each, rival]
        own_side[each, rival] = -np.inf
        nearest.seconds[at, side] = own_side.max(axis=1)
        rival += part.start
        nearest.rivals[at, side], nearest.logits[at, side] = rival, rows[each, rival]


def _are_close(nearest: _Nearest) -> Flags:
    """Whether rounding may have decided which rival of a side has the highest end."""
    numbers = np.finfo(nearest.ends.dtype)
    with np.errstate(invalid="ignore", over="ignore"):  # what is infinite is not clear
        slack = 8 * numbers.eps * np.abs(nearest.ends) + numbers.tiny
        clear = (nearest.seconds < nearest.ends - slack) | (nearest.ends == -np.inf)
    none = (nearest.logits <= NEVER) & ~np.isnan(nearest.ends)
    close: Flags = ~(clear | none).all(axis=1)
    return close


def _leads(rivals: Numbers, own: Numbers) -> Floats:
    with np.errstate(invalid="ignore"):  # -inf less -inf
        leads: Floats = np.subtract(rivals, own, dtype=np.float64)
    leads[rivals <= NEVER] = -np.inf
    return leads


def _against_all(load: Load, samples: Indices, labels: Indices, slopes: Floats) -> Intervals:
    right = Intervals(np.empty(len(samples)), np.empty(len(samples)))
    for at in slices(len(samples), len(slopes), PER_CALL):
        label = labels[samples[at]][:, None]
        rows = np.empty((len(label), len(slopes)))
        load(samples[at], rows)
        leads = _leads(rows, np.take_along_axis(rows, label, axis=1))
        exact = intervals_against(leads, slopes[label] - slopes, np.arange(len(slopes)) < label)
        right.start[at], right.stop[at] = exact
    return right
