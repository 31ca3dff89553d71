"""How good scores are: recalls, accuracies, proper scores and calibration, under any prior.

Every metric takes labelled `Scores`, or logits or predictions with their labels; those that are
functions of sums over samples take an `Accumulator` too. Measures of features and weights are in
`metrics.representations`.
"""

from longtail.metrics import representations
from longtail.metrics.accumulator import Accumulator, Reliability, evaluate
from longtail.metrics.chance import Sanity, sanity
from longtail.metrics.confusion import (
    Mistake,
    false_positives,
    group_confusion,
    most_mistaken,
)
from longtail.metrics.costs import cost
from longtail.metrics.difference import Difference, paired_gain
from longtail.metrics.labels import (
    LabelAccumulator,
    LabelMetrics,
    average_precision,
    per_label,
)
from longtail.metrics.logits import ClassLogits, class_logits, margin_cdf, margins
from longtail.metrics.probabilities import brier, classwise_ece, ece, nll, reliability
from longtail.metrics.recall import (
    accuracy,
    accuracy_under,
    balanced_accuracy,
    balanced_error,
    geometric_mean,
    group_accuracies,
    recalls,
    worst_class,
)
from longtail.metrics.sets import class_coverage, evaluate_sets
from longtail.stats import Interval

__all__ = [
    "Accumulator",
    "ClassLogits",
    "Difference",
    "Interval",
    "LabelAccumulator",
    "LabelMetrics",
    "Mistake",
    "Reliability",
    "Sanity",
    "accuracy",
    "accuracy_under",
    "average_precision",
    "balanced_accuracy",
    "balanced_error",
    "brier",
    "class_coverage",
    "class_logits",
    "classwise_ece",
    "cost",
    "ece",
    "evaluate",
    "evaluate_sets",
    "false_positives",
    "geometric_mean",
    "group_accuracies",
    "group_confusion",
    "margin_cdf",
    "margins",
    "most_mistaken",
    "nll",
    "paired_gain",
    "per_label",
    "recalls",
    "reliability",
    "representations",
    "sanity",
    "worst_class",
]


def __dir__() -> list[str]:
    return __all__
