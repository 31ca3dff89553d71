r"""Scores of probabilities: proper ones, and how far confidence lies from being right.

    NLL = mean_i  -log p(y_i|x_i)            Brier = mean_i  Σ_c (p(c|x_i) - 1[y_i = c])²

Only the true probabilities minimise these two. The Brier score lies in 0 to 2. LADE eq. 30 and 31
print sums; its tables, and we, take means. With weights w the mean is Σ_i w_i · term_i / Σ_i w_i:
w_i = t(y_i) / test prior(y_i) estimates the mean where labels follow t.

For calibration, samples are put into bins (lo, hi] of equal width by a probability. A bin B_m adds

    |B_m|/N · |mean true - mean claimed|  =  |Σ_{i in B_m} (true_i - claimed_i)| / N,

so every error here is a sum, over cells of samples, of the absolute value of a sum:

    ECE               cell: bin of the top label's confidence        correct_i - confidence_i
    class-wise        cell: class j, bin of p(j|x_i)                 1[y_i = j] - p(j|x_i)
    class-wise, LADE  cell: true class y_i, bin of the confidence    correct_i - confidence_i

The class-wise ones are divided by the number of classes. The usual form (Kull et al., NeurIPS 2019)
lets every sample enter once for every class, LADE's (eq. 29) only for its true class. Eq. 29 prints
|B_mj| without the 1/N that its tables have, and eq. 28 bins by p(y_i|x_i) where the top label's
confidence is meant. With weights, counts become sums of weights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

from longtail.core import Scores
from longtail.core.arrays import ArrayLike, Floats, to_kind
from longtail.core.numbers import check_choice, check_whole
from longtail.metrics.accumulator import Accumulator, Reliability
from longtail.metrics.samples import LabelsLike, Logits, NumpyLogits, kind_of, labelled
from longtail.metrics.terms import BINS

if TYPE_CHECKING:
    from torch import Tensor

Form: TypeAlias = Literal["usual", "paper"]
Source: TypeAlias = Logits | Accumulator
Weights: TypeAlias = ArrayLike | None


def nll(logits: Source, labels: LabelsLike = None, weights: Weights = None) -> float:
    """The mean negative log-likelihood; infinite if a true class was ruled out (logit -inf).

    Of labelled scores, an accumulator, or logits with labels; `weights`: what each sample counts.

    >>> nll([[0.0, 0.0], [1000.0, 0.0]], labels=[0, 0])
    0.3466
    """
    sums = sums_of(logits, labels, weights)
    return sums.mean(sums.nll)


def brier(logits: Source, labels: LabelsLike = None, weights: Weights = None) -> float:
    """The mean squared distance between the probabilities and the true class."""
    sums = sums_of(logits, labels, weights, whole=True)
    return sums.mean(sums.brier)


def ece(
    logits: Source, labels: LabelsLike = None, weights: Weights = None, bins: int = BINS
) -> float:
    """Expected calibration error of the most likely class, in so many bins of equal width.

    >>> ece([[0.0, 0.0], [0.0, 0.0], [9.0, -9.0]], labels=[0, 0, 0])    # 2/3 · |1 - 0.5|
    0.333
    """
    return float(abs(sums_of(logits, labels, weights, bins).bin_gaps).sum())


def classwise_ece(
    logits: Source,
    labels: LabelsLike = None,
    weights: Weights = None,
    bins: int = BINS,
    form: Form = "usual",
) -> float:
    """Calibration error of every class's probability, averaged over all classes.

    The form is the "usual" one (Kull et al.) or that of the "paper" (LADE eq. 29).

    >>> logits, labels = [[0.0, 0.0], [0.0, 0.0], [9.0, -9.0]], [0, 0, 0]
    >>> classwise_ece(logits, labels)                     # (1/3 + 1/3) / 2
    0.333
    >>> classwise_ece(logits, labels, form="paper")       # (1/3 + 0) / 2
    0.167
    """
    check_choice(form, Form, "form")
    sums = sums_of(logits, labels, weights, bins, whole=True)
    error = sums.classwise_ece if form == "usual" else sums.classwise_ece_paper
    if error is None:
        raise ValueError(
            "the class-wise calibration error under a target is no function of these sums; make "
            "them with label_counts, or use form='paper'"
        )
    return error


@overload
def reliability(
    logits: Scores[Tensor] | Tensor,
    labels: LabelsLike = None,
    weights: Weights = None,
    bins: int = BINS,
) -> Reliability[Tensor]: ...


@overload
def reliability(
    logits: NumpyLogits | Accumulator,
    labels: LabelsLike = None,
    weights: Weights = None,
    bins: int = BINS,
) -> Reliability[Floats]: ...


@overload
def reliability(
    logits: Source, labels: LabelsLike = None, weights: Weights = None, bins: int = BINS
) -> Reliability[Any]: ...


def reliability(
    logits: Source, labels: LabelsLike = None, weights: Weights = None, bins: int = BINS
) -> Reliability[Any]:
    """For each bin of confidence: the share of samples in it, mean confidence, and accuracy.

    What a reliability diagram shows (LADE fig. 4, 6): ECE = Σ_m share_m · |accuracy_m −
    confidence_m|.

    >>> made = reliability([[0.0, 0.0], [0.0, 0.0], [9.0, -9.0]], labels=[0, 1, 0], bins=2)
    >>> made.share.tolist(), made.confidence.tolist(), made.accuracy.tolist()
    ([0.667, 0.333], [0.5, 1.0], [0.5, 1.0])
    """
    made = sums_of(logits, labels, weights, bins).reliability
    return Reliability(*(to_kind(part, kind_of(logits)) for part in made))


def sums_of(
    logits: Source,
    labels: LabelsLike,
    weights: Weights = None,
    bins: int = BINS,
    whole: bool = False,
) -> Accumulator:
    """The sums of labelled logits; those of an accumulator itself. `whole` as in `block_sums`."""
    if isinstance(logits, Accumulator):
        if labels is not None or weights is not None or bins != logits.bins:
            raise ValueError("an accumulator has its labels, weights and bins; leave them out")
        return logits
    check_whole(bins, "bins", least=1)
    scores = labelled(logits, labels)
    return Accumulator.of(scores, weights=weights, bins=bins, _whole=whole)
