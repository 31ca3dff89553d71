"""Class weights from class counts: by the effective number of samples (Cui et al., CVPR 2019)."""

import math

import numpy as np

from longtail.core.arrays import Floats
from longtail.core.prior import Prior, PriorLike, full_prior


def class_balanced_weights(
    train: PriorLike, beta: float = 0.9999, label_smoothing: float = 0.0
) -> Floats:
    """(1 − β) / (1 − β^{n_y}) of each class, scaled to sum to the number of classes; float64.

    From class counts, or a Prior made from them; one made with zeros="smooth" counts half a sample
    more of every class. With `label_smoothing` ε, that of the loss that takes the weights, a class
    has (1−ε)·n_y + ε·N/C labels of N and weighs by these.

    >>> class_balanced_weights([70, 25, 5])
    array([0.169, 0.472, 2.359])
    """
    prior = full_prior(train, "train")
    if prior.counts is None:
        raise ValueError(
            "class-balanced weights need class counts, but the train prior was not made from any; "
            "give the counts, Prior.of(counts) or Prior.from_labels(labels, num_classes)"
        )
    if not 0 <= beta < 1:
        raise ValueError(f"beta must lie in [0, 1), got {beta}")
    counts = prior.counts.astype(np.float64)
    if not counts.all():
        counts = counts + 0.5  # only zeros="smooth" makes a full prior of counts with a zero
    if label_smoothing:
        counts = counts.sum() * Prior.of(counts).smoothed(label_smoothing).probs
    # 1 − β^n without cancellation: for β near one it is smaller than the rounding of β^n.
    log_beta = math.log(beta) if beta > 0 else -math.inf
    weights = -1 / np.expm1(counts * log_beta)
    return np.asarray(weights * len(weights) / weights.sum())
