r"""What each sample adds to the sums of every metric, from one pass over its logits.

With z the logits less the highest of their row and Z = Σ_c exp z_c, which is at least one,

    NLL = log Z − z_y,    Brier = Σ_{c≠y} p_c² + (1 − p_y)²,    confidence = 1/Z,    p = exp z/Z.

Blocks stay in the cache, and there is one exponential a logit. The class-wise calibration error
puts every p(c|x) into a bin, but nearly all into the first: those that are not are looked up, and
the first bin is what they leave of the sum over all.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from longtail.core.numbers import check_whole
from longtail.metrics.samples import Floats, Labels, sums_by

BINS = 20
_IN_CACHE = 2**16  # numbers that the next look at them still finds there


class Terms(NamedTuple):
    """One entry a sample.

    Attributes:
        right: Whether the most likely class is the true one.
        nll: The log-loss; infinite where the true class was ruled out.
        brier: The squared distance between the probabilities and the true class.
        confidence: The probability of the most likely class.
    """

    right: npt.NDArray[np.bool_]
    nll: Floats
    brier: Floats
    confidence: Floats


class BlockSums(NamedTuple):
    """Terms of a block, its predictions, and the gaps of every class's probability by bin.

    The gaps are Σ_i w_i · (1[y_i = c] − p(c|x_i)) over the samples whose p(c|x) is in the bin.
    """

    terms: Terms
    predictions: Labels
    class_gaps: Floats


def inner_edges(bins: int = BINS) -> Floats:
    """What separates bins of equal width: `bin_of` puts p into (lo, hi], and 0 into the first."""
    check_whole(bins, "bins", least=1)
    # k/bins is the double nearest to the edge, which linspace does not promise.
    return np.arange(1, bins) / bins


def bin_of(probs: Floats, bins: int = BINS) -> npt.NDArray[np.intp]:
    """The number of each probability's bin, from 0."""
    return np.searchsorted(inner_edges(bins), probs)


@np.errstate(over="ignore")  # logits near the end of float64
def block_sums(
    rows: npt.NDArray[np.floating], labels: Labels, weights: Floats, bins: int
) -> BlockSums:
    """One pass over a block of logits."""
    size, classes = rows.shape
    right, predictions = np.empty(size, bool), np.empty(size, np.int64)
    nll, brier, confidence, own = np.empty((4, size))
    column, at_class, above = np.zeros(classes), [], []
    least = (1 - 1e-12) / bins  # a little below the first edge: what is above it is looked up
    step = max(1, _IN_CACHE // classes)
    buffer = np.empty((step, classes))
    for start in range(0, size, step):
        part = slice(start, min(start + step, size))
        block, truth = rows[part], labels[part]
        index = np.arange(len(block))
        top = block.argmax(axis=1)
        e = np.subtract(
            block, block[index, top][:, None], out=buffer[: len(block)], dtype=np.float64
        )
        own_logit = e[index, truth]
        np.exp(e, out=e)
        total = e.sum(axis=1)
        own_exp = e[index, truth]
        own[part] = own_exp / total
        predictions[part], right[part] = top, top == truth
        nll[part] = np.log(total) - own_logit
        confidence[part] = 1 / total
        brier[part] = (np.einsum("ij,ij->i", e, e) - own_exp**2) / total**2 + (1 - own[part]) ** 2
        column += (weights[part] / total) @ e
        high = np.flatnonzero(e > (least * total)[:, None])
        row, chosen = np.divmod(high, classes)
        at_class.append(chosen)
        above.append((e.ravel()[high] / total[row], weights[part][row]))
    np.maximum(brier, 0, out=brier)
    gaps = _gaps(np.concatenate(at_class), above, column, bins)
    gaps += sums_by(labels * bins + bin_of(own, bins), weights, classes * bins)
    return BlockSums(Terms(right, nll, brier, confidence), predictions, gaps.reshape(classes, bins))


def _gaps(
    at_class: Labels, above: list[tuple[Floats, Floats]], column: Floats, bins: int
) -> Floats:
    """Minus the claimed probabilities, by class and bin."""
    probs, weights = (np.concatenate(parts) for parts in zip(*above, strict=True))
    claimed, classes = probs * weights, len(column)
    gaps: Floats = -sums_by(at_class * bins + bin_of(probs, bins), claimed, classes * bins)
    gaps[::bins] -= column - sums_by(at_class, claimed, classes)
    return gaps
