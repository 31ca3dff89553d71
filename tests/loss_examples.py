"""How to make each loss for four classes, and by hand what it is: the table the tests walk.

`split` entries are (b, a, α) of LA eq. 11 as functions of π, re-derived here from METHODS rows by
plain arithmetic. `CONTRACT` holds every loss that declares a prior, with what it must declare.
"""

from functools import partial

import numpy as np
import torch

from longtail import LabelOdds, Prior, heads, losses

DELTA = [4.0, 1.0, 2.0, 0.5]
MATRIX = [[0, 1.0, 2.0, 0.3], [1.0, 0, 2.0, 0], [0, -1.0, 0, 1.0], [0.5, 1.0, 0, 0]]

torch.manual_seed(0)
HEAD = heads.EstimatedOffset(3, 4).double()  # one for all: the loss holds it


def with_terms(train, make=losses.CrossEntropy, **options):
    """A loss with terms of all kinds beside it: with centres, of pairs, and one that waits."""
    loss = make(train, **options)
    terms = [
        (losses.Center(3, 4), 0.1),
        (losses.SpreadOut(pairs="all"), 0.5),
        (losses.DROLT(train, 3), 0.2, 7),
    ]
    return losses.LossWithTerms(loss, terms)


class OneExpert(losses.Experts):
    """A single expert, so that experts keep the contract of logits (N, C) too."""

    def forward(self, logits, labels, features=None):
        return super().forward(logits.unsqueeze(-1), labels)


MAKE = {
    "CrossEntropy": losses.CrossEntropy,
    "Balanced": losses.Balanced,
    "Adaptive": losses.Adaptive,
    "Equalized": losses.Equalized,
    "Equalized, thresholded": partial(losses.Equalized, threshold=0.05),
    "LogitAdjusted": losses.LogitAdjusted,
    "LogitAdjusted, tau 0.5": partial(losses.LogitAdjusted, tau=0.5),
    "LogitAdjusted, tau 1.5": partial(losses.LogitAdjusted, tau=1.5),
    "LogitAdjustedAdaptive": losses.LogitAdjustedAdaptive,
    "TwoScale": partial(losses.TwoScale, tau_pos=0.5, tau_neg=1.5),
    "TwoScale, equal": partial(losses.TwoScale, tau_pos=0.7, tau_neg=0.7),
    "WeightedLogitAdjusted": partial(losses.WeightedLogitAdjusted, tau=0.3),
    "ConsistentMargin": partial(losses.ConsistentMargin, delta=DELTA),
    "BalancedSoftmax": losses.BalancedSoftmax,
    "PairwiseMargin": partial(losses.PairwiseMargin, delta_matrix=MATRIX, weights=DELTA),
    "VS": losses.VS,
    "VS, gamma 0": partial(losses.VS, gamma=0.0),
    "CDT": losses.CDT,
    "CDT, gamma 0": partial(losses.CDT, gamma=0.0),
    "LabelAwareSmoothing": losses.LabelAwareSmoothing,
    "LabelAwareSmoothing, sine": partial(losses.LabelAwareSmoothing, shape="sine"),
    "ClassBalanced": partial(losses.ClassBalanced, beta=0.99),
    "ClassBalanced, focal": partial(losses.ClassBalanced, gamma=2.0),
    "Focal": losses.Focal,
    "Focal, gamma 0": partial(losses.Focal, gamma=0.0),
    "Focal, gamma 0.5": partial(losses.Focal, gamma=0.5),
    "SigmoidFocal": losses.SigmoidFocal,
    "LDAM": losses.LDAM,
    "LDAM, in the head": partial(losses.LDAM, scale_in="head"),
    "LADE": losses.LADE,
    "LADE, strong": partial(losses.LADE, alpha=1.0, lam=0.5),
    "LADE, released": partial(losses.LADE, variant="released"),
    "ELM": losses.ELM,
    "ELM, margins by count": partial(losses.ELM, lam=1.0, margins="sqrt_count"),
    "ELM, margins the counts": partial(losses.ELM, lam=1.0, margins="count"),
    "EstimatedOffset": partial(losses.EstimatedOffset, head=HEAD),
    "Experts, one": partial(OneExpert, taus=(0.5,)),
    "LossWithTerms": with_terms,
    "LossWithTerms, adjusted": partial(with_terms, make=losses.LogitAdjusted),
    "LossWithTerms, ELM": partial(with_terms, make=losses.ELM),
    "LossWithTerms, focal": partial(with_terms, make=losses.Focal),
}

# Those that are not LA eq. 11, or not that alone: their values are tested in files of their own.
OTHER_FORMS = (
    "LabelAware",
    "ClassBalanced, focal",
    "Focal",
    "SigmoidFocal",
    "LADE",
    "ELM",
    "EstimatedOffset",
    "Experts",
    "LossWithTerms",
)


class LinearLayer:
    """linear_cross_entropy with what it is given at each call, as its contract takes a loss."""

    def __init__(self, train, tau=0.0, weight=None, label_smoothing=0.0, **options):
        carried = train.smoothed(label_smoothing).tempered(1 - tau)
        self.carried = carried if weight is None else carried.reweighted(weight)
        self.options = {"train": train, "carried": carried, "class_weight": weight}
        self.options |= {"label_smoothing": label_smoothing, **options}

    def __call__(self, features, weight, bias, labels):
        return losses.linear_cross_entropy(features, weight, bias, labels, **self.options)


PROPOSAL = [0.1, 0.4, 0.2, 0.3]
DRAWN = partial(losses.SampledSoftmax, proposal=PROPOSAL, num_negatives=2)
# Losses that take a layer's features and weight: by the name of what they are, how, and what the
# layer's logits carry.
HEAD_MAKE = {
    "linear_cross_entropy": LinearLayer,
    "linear_cross_entropy, adjusted": partial(LinearLayer, tau=1.0),
    "SampledSoftmax": DRAWN,
    "SampledSoftmax, uncorrected": partial(DRAWN, corrected=False),
    "SampledSoftmax, distinct": partial(DRAWN, distinct=True),
    "SampledSoftmax, distinct, uncorrected": partial(DRAWN, distinct=True, corrected=False),
    "SampledSoftmax, all": partial(DRAWN, distinct=True, num_negatives=4),
    "SampledSoftmax, in batch": losses.SampledSoftmax,
    "SampledSoftmax, in batch, uncorrected": partial(losses.SampledSoftmax, corrected=False),
}

# Of the losses on yes/no labels, made for three of them: `make(odds, **options)`.
BINARY_MAKE = {
    "BinaryLogitAdjusted": losses.BinaryLogitAdjusted,
    "BinaryLogitAdjusted, tau 0": partial(losses.BinaryLogitAdjusted, tau=0),
    "BinaryLogitAdjusted, tau 1.5": partial(losses.BinaryLogitAdjusted, tau=1.5),
    "BinaryLogitAdjusted, carried": partial(losses.BinaryLogitAdjusted, carried=[0.2, 0.5, 0.9]),
    "BinaryFocal": losses.BinaryFocal,
    "BinaryFocal, gamma 0.5": partial(losses.BinaryFocal, gamma=0.5, alpha=0.25),
    "BinaryFocal, gamma 0": partial(losses.BinaryFocal, gamma=0, alpha=0.25),
    "ClassBalancedBinary": partial(losses.ClassBalancedBinary, beta=0.99),
    "ClassBalancedBinary, focal": partial(losses.ClassBalancedBinary, gamma=2.0),
    "Asymmetric": losses.Asymmetric,
    "Asymmetric, no margin": partial(losses.Asymmetric, gamma_pos=1.0, margin=0.0),
    "Asymmetric, all zero": partial(losses.Asymmetric, gamma_neg=0, margin=0),
}

BINARY_CONTRACT = {
    "BinaryLogitAdjusted": lambda odds: LabelOdds.even(len(odds)),
    "BinaryLogitAdjusted, tau 0": lambda odds: odds,
    "BinaryLogitAdjusted, tau 1.5": lambda odds: odds.tempered(-0.5),
    "BinaryLogitAdjusted, carried": lambda odds: LabelOdds.of([0.2, 0.5, 0.9]),
    "BinaryFocal, gamma 0": lambda odds: odds.reweighted(1 / 3),
    "ClassBalancedBinary": lambda odds: odds.reweighted(
        (1 - 0.99 ** (odds.total - odds.positives)) / (1 - 0.99**odds.positives)
    ),
    "Asymmetric, all zero": lambda odds: odds,
}


def uniform(train):
    return Prior.uniform(train.num_classes)


# What each loss must declare, from METHODS section 2; the contract then shows that it is true.
CONTRACT = {
    "CrossEntropy": lambda train: train,
    "Balanced": uniform,
    "LogitAdjusted": uniform,
    "LogitAdjusted, tau 0.5": lambda train: train.tempered(0.5),
    "LogitAdjusted, tau 1.5": lambda train: train.tempered(-0.5),
    "TwoScale, equal": lambda train: train.tempered(0.3),
    "WeightedLogitAdjusted": uniform,
    "ConsistentMargin": uniform,
    "BalancedSoftmax": uniform,
    "VS, gamma 0": uniform,
    "CDT, gamma 0": lambda train: train,
    "ClassBalanced": lambda train: train.reweighted(1 / (1 - 0.99**train.counts)),
    "Focal, gamma 0": lambda train: train,
    "LADE": uniform,
    "LADE, strong": uniform,
    "ELM": uniform,
    "ELM, margins by count": uniform,
    "ELM, margins the counts": uniform,
    "Experts, one": lambda train: train.tempered(0.5),
    "LossWithTerms": lambda train: train,
    "LossWithTerms, adjusted": uniform,
    "LossWithTerms, ELM": uniform,
}


def as_trained(train):
    return train


HEAD_CONTRACT = {
    **dict.fromkeys(HEAD_MAKE, as_trained),
    "linear_cross_entropy, adjusted": uniform,
    "SampledSoftmax, uncorrected": lambda train: Prior.of(train.probs / np.array(PROPOSAL)),
    # Two of four classes by this proposal: with λ = 2 no class is always in.
    "SampledSoftmax, distinct, uncorrected": lambda train: Prior.of(
        train.probs / (2 * np.array(PROPOSAL))
    ),
    "SampledSoftmax, in batch, uncorrected": uniform,
}


def margins(name, pi):
    """(Δ, α, scale) by hand: Δ[y, y'] from the definitions, not from how the library splits it."""
    pi = torch.as_tensor(pi)
    log, c = pi.log(), len(pi)
    rows, columns = log.view(-1, 1), log.view(1, -1)
    ones, none = torch.ones(c, dtype=pi.dtype), torch.zeros(c, c, dtype=pi.dtype)
    rare_positive = (pi**-0.25).view(-1, 1).expand(c, c)
    delta = torch.tensor(DELTA, dtype=pi.dtype)
    effective = 1 / (1 - 0.99 ** (100 * pi))  # the prior of the values is made from 100 samples
    ldam = (30 * 0.5 * (pi / pi.min()) ** -0.25).view(-1, 1).expand(c, c)
    return {
        "CrossEntropy": (none, ones, ones),
        "Balanced": (none, 1 / pi, ones),
        "Adaptive": (rare_positive, ones, ones),
        "Equalized": (columns.expand(c, c), ones, ones),
        "Equalized, thresholded": (none, ones, ones),  # in evaluation mode nothing is dropped
        "LogitAdjusted": (columns - rows, ones, ones),
        "LogitAdjusted, tau 0.5": (0.5 * (columns - rows), ones, ones),
        "LogitAdjusted, tau 1.5": (1.5 * (columns - rows), ones, ones),
        "LogitAdjustedAdaptive": (columns - rows + rare_positive, ones, ones),
        "TwoScale": (1.5 * columns - 0.5 * rows, ones, ones),
        "TwoScale, equal": (0.7 * (columns - rows), ones, ones),
        "WeightedLogitAdjusted": (0.3 * (columns - rows), pi**-0.7, ones),
        "ConsistentMargin": (delta.log().view(1, -1) - delta.log().view(-1, 1), delta / pi, ones),
        "BalancedSoftmax": (columns - rows, ones, ones),
        "PairwiseMargin": (torch.tensor(MATRIX, dtype=pi.dtype), delta, ones),
        "VS": (columns - rows, ones, (pi / pi.max()) ** 0.3),
        "VS, gamma 0": (columns - rows, ones, ones),
        "CDT": (none, ones, (pi / pi.max()) ** 0.3),
        "CDT, gamma 0": (none, ones, ones),
        "ClassBalanced": (none, c * effective / effective.sum(), ones),
        "LDAM": (ldam, ones, 30 * ones),
        "LDAM, in the head": (ldam, ones, ones),
    }[name]
