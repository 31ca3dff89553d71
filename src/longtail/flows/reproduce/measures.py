"""What the numbers of tables and figures are, and which classes each paper calls many and few."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from longtail.core.arrays import Indices


class Edges(NamedTuple):
    """Training samples of a class: many from the first on, few up to the second, medium between."""

    many: int
    few: int


# LA: ≥ 100 and ≤ 20. LADE: > 100 and < 20. EO the same, with a gap at 20: medium is > 20, few < 20.
EDGES = {
    "LA": Edges(100, 20),
    "LADE": Edges(101, 19),
    "EO": Edges(101, 19),
    "ELM": Edges(100, 19),
    "NCM": Edges(100, 19),
    "ours": Edges(101, 19),
}


GROUPS = ("many", "medium", "few")


# Of all classes and of the test set as it is.
WHOLE = ("ece", "classwise_ece", "brier", "nll", "geometric_mean")


class Measure(NamedTuple):
    """What a number is: in words, whether more of it is better, and what there is one of."""

    about: str
    better: Literal[1, 0, -1]  # 0: neither
    # A group of classes; a point of a curve, in its order.
    per: Literal["model", "group", "class", "point"] = "model"

    @property
    def is_number(self) -> bool:
        """Whether a row has one number of it in a column."""
        return self.per in ("model", "group")


MEASURES: dict[str, Measure] = {
    # The papers' test sets are balanced, so that top-1 and balanced accuracy are one number there.
    "accuracy": Measure("mean accuracy of the classes; of the samples of a shifted test set; %", 1),
    "balanced_error": Measure("mean of the classes' error rates, %", -1),
    "error": Measure("mean of the error rates of the group's classes, %", -1),
    # Both are biased upwards: bins of a calibrated model are off by chance too, more so the fewer
    # samples they have. The intervals are about the biased value.
    "ece": Measure("expected calibration error, 20 bins, 0 to 1", -1),
    "classwise_ece": Measure("mean of the classes' calibration errors, 20 bins, 0 to 1", -1),
    "brier": Measure("mean squared error of the probabilities, summed over classes", -1),
    "nll": Measure("mean negative log-likelihood, nats", -1),
    "geometric_mean": Measure("geometric mean of the classes' accuracies, 0 as 0.001, %", 1),
    "setting": Measure("a setting of the recipe, not a result", 0),
    "statistic": Measure("a count of the training set, not a result", 0),
    "property": Measure("a property of the method, not a result", 0),
    "recall": Measure("accuracy of the class, %", 1, "class"),
    "mean_probability": Measure(
        "mean predicted probability of the class on all of test", 0, "class"
    ),
    "false_positives": Measure("test samples taken for the class that are of others", 0, "class"),
    "false_positive_bend": Measure(
        "area between the cumulative false positives, as shares, and the diagonal; classes by "
        "falling frequency; 0 is unbiased",
        -1,
    ),
    "weight_norm": Measure("Euclidean norm of the class's weights", 0, "class"),
    "bias": Measure("trained bias of the class", 0, "class"),
    "empirical_offset": Measure("half of weights times mean training feature", 0, "class"),
    "estimated_offset": Measure("half of weights times learned centre", 0, "class"),
    "offset_gap": Measure("estimated less empirical offset", 0, "class"),
    "offset_spread": Measure("standard deviation of the empirical offsets over classes", -1),
    "intra_class_variance": Measure(
        "largest eigenvalue of the class's covariance of features", 0, "class"
    ),
    "total_variance": Measure("trace of the covariance of features, mean over classes", -1),
    "cdnv": Measure("mean class-distance normalised variance over pairs of classes", -1),
    "cdnv_curve": Measure("the same after each epoch of fitting the centroids", 0, "point"),
    "centroid_displacement": Measure("distance of learned from empirical centroid", 0, "class"),
    "projection_weight": Measure(
        "mean learned weight of the tenth of directions of most variance", 0, "class"
    ),
    "positive_logit": Measure("logit of the own class, mean over classes", 0),
    "positive_logit_gap": Measure("mean distance of the own class's logit from log C", -1),
    "margin_mean": Measure("own logit less the largest other, mean over test samples", 1),
    "margin_std": Measure("standard deviation of the same within a class, mean over classes", -1),
    "largest_distance": Measure(
        "largest distance to a sample of the same class, over the largest norm of all, mean", -1
    ),
    "rise_time": Measure(
        "share of the training after which half the last accuracy is reached", 0, "group"
    ),
}


def group_mask(counts: Indices, group: str, edges: Edges) -> npt.NDArray[np.bool_]:
    """Which classes are of a group, by their training samples; "" for all."""
    many, few = counts >= edges.many, counts <= edges.few
    masks = {"many": many, "few": few, "medium": ~many & ~few, "": many | ~many}
    return masks[group]
