r"""What logits of yes/no labels carry, by labels: one offset b a label, by maximum likelihood.

    mean_i σ(z_il + b_l) = share of yes in the labels, h_l,          logit c_l = logit h_l − b_l

The left side rises with b from 0 to 1, so there is one solution; Newton's steps find it, halved
into a bracket where they would leave it. How well the data determine b is their information on it,
Σ_i p(1 − p): where a label is told apart perfectly there is next to none.
"""

from collections.abc import Sequence

import numpy as np

from longtail.core.arrays import Floats, RowsLike
from longtail.core.blocks import blocks
from longtail.core.label_odds import LabelOdds
from longtail.core.label_scores import LabelScores
from longtail.core.measure import class_named
from longtail.core.minimise import UnsettledError
from longtail.core.softmax import sigmoid

_STEPS, _TOLERANCE = 100, 1e-12
_LEAST_INFORMATION = 1e-2  # below it the standard error of a logit is above ten
_FURTHEST = 1e3  # an offset: logits so far off say nothing


def measure_odds(
    logits: RowsLike | LabelScores, labels: object = None, classes: Sequence[str] | None = None
) -> LabelOdds:
    """The odds that logits of yes/no labels carry, on samples the model was not trained on.

    Every label must be yes for some samples and no for others.

    >>> measure_odds([[2.0], [0.0], [0.0], [-1.0]] * 100, [[1], [0], [1], [0]] * 100)
    LabelOdds([0.547])
    """
    if isinstance(logits, LabelScores):
        scores = logits
    else:
        scores = LabelScores(logits, labels, classes=classes)
    if scores.labels is None:
        raise ValueError("what logits carry is measured by the labels of their samples: give them")
    labelled = LabelOdds.from_labels(scores.labels)
    offset, information = _offsets(scores, labelled.probs)
    if (information < _LEAST_INFORMATION).any():
        least = class_named(int(information.argmin()), scores.classes)
        raise UnsettledError(
            f"these data do not determine the odds: {least} is told apart perfectly, whatever the "
            "logits carry for it; use more, or harder, validation data"
        )
    return LabelOdds(labelled.logit - offset)


def _offsets(scores: LabelScores, shares: Floats) -> tuple[Floats, Floats]:
    """The offsets with which the mean probability of each label is its share; information."""
    low, high = np.full(len(shares), -_FURTHEST), np.full(len(shares), _FURTHEST)
    offset = np.zeros(len(shares))
    for _ in range(_STEPS):
        total, information = np.zeros(len(shares)), np.zeros(len(shares))
        for (block,) in blocks(scores.logits):
            probs = sigmoid(block.astype(np.float64) + offset)
            total += probs.sum(axis=0)
            information += (probs * (1 - probs)).sum(axis=0)
        excess = total - shares * len(scores)
        low, high = np.where(excess < 0, offset, low), np.where(excess > 0, offset, high)
        step = offset - excess / np.maximum(information, 1e-300)
        after = np.where((step > low) & (step < high), step, (low + high) / 2)
        moved = np.where(excess == 0, 0.0, np.abs(after - offset))
        if (moved <= _TOLERANCE * (1 + np.abs(offset))).all():
            break
        offset = np.where(excess == 0, offset, after)
    return offset, information
