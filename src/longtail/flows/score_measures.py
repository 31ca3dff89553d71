r"""What figures measure of test scores alone: margins, logits, and where mistakes fall.

    margins             γ(x, y) = f_y(x) − max_{y'≠y} f_y'(x)                        (ELM fig. 3, 6)
    mean probability    1/N Σ_i p(c|x_i) of each class c                               (LADE fig. 2)
    positive logits     f_y of the samples of y, and |f_y − log C|            (LADE eq. 21, fig. 3)
    false positives     F(k/C), the share of all mistakes that are taken for one of the k most
                        frequent classes; its bend is ∫|F(u) − u| du                    (EO fig. 5)

What papers average over classes comes as one number a class, so that groups of classes can be
averaged too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import numpy as np

from longtail.core import Scores
from longtail.core.arrays import Floats, Indices, as_numpy
from longtail.flows.figure_curves import cumulated, tail_of
from longtail.metrics import class_logits, false_positives, margins, recalls

Value: TypeAlias = float | Floats | Indices  # one, or one a class, a sample, a point of a curve


def measure_scores(scores: Scores[Any], names: Iterable[str]) -> dict[str, Value]:
    """The measures of these names that labelled scores with training counts have."""
    return {name: SCORE_MEASURES[name](scores) for name in names if name in SCORE_MEASURES}


def class_averages(values: Floats, labels: Indices, num_classes: int) -> Floats:
    """The mean of one number a sample over each class; NaN for a class without samples."""
    with np.errstate(invalid="ignore"):
        sums = np.bincount(labels, values, num_classes)
        return np.asarray(sums / np.bincount(labels, minlength=num_classes))


def _labels(scores: Scores[Any]) -> Indices:
    if scores.labels is None:
        raise ValueError("figures measure scores with labels, but these have none")
    return as_numpy(scores.labels).astype(np.int64)


def _margins(scores: Scores[Any]) -> Floats:
    return as_numpy(margins(scores))


def _margin_means(scores: Scores[Any]) -> Floats:
    return class_averages(_margins(scores), _labels(scores), scores.num_classes)


def _margin_spreads(scores: Scores[Any]) -> Floats:
    """The standard deviation within each class."""
    labels = _labels(scores)
    apart = _margins(scores) - _margin_means(scores)[labels]
    return np.sqrt(class_averages(apart**2, labels, scores.num_classes))


def _class_logits(scores: Scores[Any]) -> Floats:
    """Means and deviations of positives, then those of negatives, shape (4, C)."""
    return np.stack([as_numpy(part) for part in class_logits(scores)])


def _positive_gaps(scores: Scores[Any]) -> Floats:
    labels = _labels(scores)
    own = as_numpy(scores.logits)[np.arange(len(scores)), labels]
    apart = np.abs(own.astype(np.float64) - np.log(scores.num_classes))
    return class_averages(apart, labels, scores.num_classes)


def _false_positives(scores: Scores[Any]) -> Floats:
    return as_numpy(false_positives(scores)).astype(np.float64)


def _bend(scores: Scores[Any]) -> float:
    """The area between the two lines; where they cross within a step it is two triangles."""
    if scores.counts is None:
        raise ValueError("false positives are ordered by training counts; give the scores some")
    shares = cumulated(_false_positives(scores)[tail_of(scores.counts).order], share=True) / 100
    apart = shares - np.linspace(0, 1, len(shares))
    one, other = np.abs(apart[:-1]), np.abs(apart[1:])
    crosses = apart[:-1] * apart[1:] < 0
    triangles = (one**2 + other**2) / np.where(crosses, one + other, 1.0)
    return float(np.mean(np.where(crosses, triangles, one + other)) / 2)


SCORE_MEASURES: dict[str, Callable[[Scores[Any]], Value]] = {
    "recall": lambda scores: 100 * as_numpy(recalls(scores)),
    "mean_probability": lambda scores: as_numpy(scores.probs()).mean(axis=0, dtype=float),
    "false_positives": _false_positives,
    "false_positive_bend": _bend,
    "positive_logit": lambda scores: _class_logits(scores)[0],
    "positive_logit_gap": _positive_gaps,
    "margin_mean": _margin_means,
    "margin_std": _margin_spreads,
    # What pictures are drawn of.
    "labels": _labels,
    "margins": _margins,
    "class_logits": _class_logits,
}

# What the picture of a measure is drawn of, beside the measure itself and the training counts.
DRAWN_OF: dict[str, tuple[str, ...]] = {
    "positive_logit": ("class_logits",),
    "margin_mean": ("margins", "labels"),
    "margin_std": ("margins", "labels"),
    "estimated_offset": ("empirical_offset",),
    "largest_distance": ("largest_distances",),
    "projection_weight": ("projections",),
    "rise_time": ("group_curves",),
    "cdnv": ("tsne",),
}
