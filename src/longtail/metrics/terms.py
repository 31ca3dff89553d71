r"""What each sample adds to the sums of every metric, from one pass over its logits.

With z the logits less the highest of their row and Z = Σ_c exp z_c, which is at least one,

    NLL = log Z − z_y,    Brier = Σ_{c≠y} p_c² + (1 − p_y)²,    confidence = 1/Z,    p = exp z/Z.

Blocks stay in the cache, and there is one exponential a logit, in float32 where that is what the
logits are: what it misses, about 1e-7, is what they were rounded by themselves. Where the highest
logits are near zero, exponentials are taken of the logits as they are and divided by that of the
highest, which is one look at them less.

The class-wise calibration error puts every p(c|x) into a bin, but nearly all into the first: those
that are not are looked up, and the first bin is what they leave of the sum over all.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from longtail.core.arrays import Floats, Indices
from longtail.core.blocks import IN_CACHE, slices
from longtail.core.threads import in_threads
from longtail.metrics.samples import sums_by

BINS = 20
_PART = 2**20  # numbers that a thread takes at a time
_NEAR_ZERO = 30  # e^±60, the squares of exponentials, and sums of a billion are well in float32


class Terms(NamedTuple):
    """One entry a sample."""

    right: npt.NDArray[np.bool_]  # whether the most likely class is the true one
    nll: Floats  # infinite where the true class was ruled out
    brier: Floats  # the squared distance between the probabilities and the true class
    confidence: Floats  # the probability of the most likely class


def bin_of(probs: Floats, bins: int = BINS, slack: float = 0.0) -> Indices:
    """The number from 0 of each probability's bin of equal width (lo, hi]; 0 is in the first.

    What is above an edge by a share of `slack` or less counts as being on it.
    """
    if slack:
        probs = probs * (1 - slack)
    at = (probs * bins).astype(np.int64)
    # k/bins is the double nearest to the edge; what is at or next below it may be one too high.
    at -= probs <= at / bins
    return np.clip(at, 0, bins - 1)


def slack_of(rows: npt.NDArray[np.floating]) -> float:
    """What rounding makes of probabilities on an edge, which shares of votes are, and no more."""
    return 1e-6 if rows.dtype == np.float32 else 1e-12


def block_sums(
    rows: npt.NDArray[np.floating],
    labels: Indices,
    weights: Floats,
    bins: int,
    whole: bool = True,
) -> tuple[Terms, Indices, Floats]:
    """Terms of a block of logits, its predictions, and the gaps of every probability, by class.

    The gaps are Σ_i w_i · (1[y_i = c] − p(c|x_i)) over the samples whose p(c|x) is in each bin. If
    not all is asked for, they and the Brier scores, which take half of the time, are NaN.
    """
    parts = list(slices(len(rows), rows.shape[1], _PART))
    sums = in_threads(lambda at: _part_sums(rows[at], labels[at], weights[at], bins, whole), parts)
    terms, predictions, gaps = zip(*sums, strict=True)
    joined = Terms(*(np.concatenate(column) for column in zip(*terms, strict=True)))
    return joined, np.concatenate(predictions), np.sum(gaps, axis=0)


@np.errstate(over="ignore", under="ignore")  # logits near the end of float64
def _part_sums(
    rows: npt.NDArray[np.floating], labels: Indices, weights: Floats, bins: int, whole: bool
) -> tuple[Terms, Indices, Floats]:
    size, classes = rows.shape
    predictions = np.empty(size, np.int64)
    nll, brier, confidence, own = np.empty((4, size))
    kind = np.float32 if rows.dtype == np.float32 else np.float64
    slack = slack_of(rows)
    column, above, ones = np.zeros(classes), [], np.ones(classes, kind)
    least = (1 - 1e-6) / bins  # a little below the first edge: what is above it is looked up
    buffers = np.empty((2, min(size, max(1, IN_CACHE // classes)), classes), kind)
    for part in slices(size, classes, IN_CACHE):
        block, truth = rows[part], labels[part]
        e, squares = buffers[:, : len(block)]
        index, top = np.arange(len(block)), block.argmax(axis=1)
        highest, own_logit = (block[index, at].astype(np.float64) for at in (top, truth))
        if np.abs(highest).max() < _NEAR_ZERO:
            np.exp(block, out=e, dtype=kind)
        else:
            np.subtract(block, block[index, top][:, None], out=e, dtype=kind, casting="same_kind")
            np.exp(e, out=e)
        unit = e[index, top].astype(np.float64)
        total, own_exp = (each / unit for each in (e @ ones, e[index, truth]))
        own[part], predictions[part] = own_exp / total, top
        nll[part] = np.log(total) + (highest - own_logit)
        confidence[part] = 1 / total
        if whole:
            np.multiply(e, e, out=squares)
            others = squares @ ones / unit**2 - own_exp**2
            brier[part] = others / total**2 + (1 - own[part]) ** 2
            whole_sum = unit * total
            column += (weights[part] / whole_sum).astype(kind) @ e
            high = np.flatnonzero(e > (least * whole_sum).astype(kind)[:, None])
            row = high // classes
            probs = e.ravel()[high] / whole_sum[row]
            above.append((high - row * classes, probs, weights[part][row]))
    if not whole:
        terms = Terms(predictions == labels, nll, np.full(size, np.nan), confidence)
        return terms, predictions, np.full((1, 1), np.nan)
    terms = Terms(predictions == labels, nll, np.maximum(brier, 0), confidence)
    chosen, probs, counted = (np.concatenate(parts) for parts in zip(*above, strict=True))
    claimed = probs * counted
    gaps = -sums_by(chosen * bins + bin_of(probs, bins, slack), claimed, classes * bins)
    gaps[::bins] -= column - sums_by(chosen, claimed, classes)
    gaps += sums_by(labels * bins + bin_of(own, bins, slack), weights, classes * bins)
    return terms, predictions, gaps.reshape(classes, bins)
