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

from longtail.core.arrays import Floats, Indices
from longtail.core.blocks import IN_CACHE, slices
from longtail.metrics.samples import sums_by

BINS = 20


class Terms(NamedTuple):
    """One entry a sample."""

    right: npt.NDArray[np.bool_]  # whether the most likely class is the true one
    nll: Floats  # infinite where the true class was ruled out
    brier: Floats  # the squared distance between the probabilities and the true class
    confidence: Floats  # the probability of the most likely class


def bin_of(probs: Floats, bins: int = BINS) -> npt.NDArray[np.intp]:
    """The number from 0 of each probability's bin of equal width (lo, hi]; 0 is in the first."""
    # k/bins is the double nearest to the edge, which linspace does not promise.
    return np.searchsorted(np.arange(1, bins) / bins, probs)


@np.errstate(over="ignore")  # logits near the end of float64
def block_sums(
    rows: npt.NDArray[np.floating], labels: Indices, weights: Floats, bins: int
) -> tuple[Terms, Indices, Floats]:
    """Terms of a block of logits, its predictions, and the gaps of every probability, by class.

    The gaps are Σ_i w_i · (1[y_i = c] − p(c|x_i)) over the samples whose p(c|x) is in each bin.
    """
    size, classes = rows.shape
    right, predictions = np.empty(size, bool), np.empty(size, np.int64)
    nll, brier, confidence, own = np.empty((4, size))
    column, above = np.zeros(classes), []
    least = (1 - 1e-12) / bins  # a little below the first edge: what is above it is looked up
    step = max(1, IN_CACHE // classes)
    buffer = np.empty((step, classes))
    for part in slices(size, classes, IN_CACHE):
        block, truth = rows[part], labels[part]
        index, top = np.arange(len(block)), block.argmax(axis=1)
        highest = block[index, top][:, None]
        e = np.subtract(block, highest, out=buffer[: len(block)], dtype=np.float64)
        own_logit = e[index, truth]
        np.exp(e, out=e)
        total, own_exp = e.sum(axis=1), e[index, truth]
        own[part] = own_exp / total
        predictions[part], right[part] = top, top == truth
        nll[part] = np.log(total) - own_logit
        confidence[part] = 1 / total
        brier[part] = (np.einsum("ij,ij->i", e, e) - own_exp**2) / total**2 + (1 - own[part]) ** 2
        column += (weights[part] / total) @ e
        high = np.flatnonzero(e > (least * total)[:, None])
        row, chosen = np.divmod(high, classes)
        above.append((chosen, e.ravel()[high] / total[row], weights[part][row]))
    np.maximum(brier, 0, out=brier)
    chosen, probs, counted = (np.concatenate(parts) for parts in zip(*above, strict=True))
    claimed = probs * counted
    gaps = -sums_by(chosen * bins + bin_of(probs, bins), claimed, classes * bins)
    gaps[::bins] -= column - sums_by(chosen, claimed, classes)
    gaps += sums_by(labels * bins + bin_of(own, bins), weights, classes * bins)
    return Terms(right, nll, brier, confidence), predictions, gaps.reshape(classes, bins)
