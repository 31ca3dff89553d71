r"""Margins in each group of classes, as densities and as cumulative shares (ELM fig. 3, 6).

    γ(x, y) = f_y(x) − max_{y'≠y} f_y'(x)

Positive where a sample is classified right. The paper draws one label of the head, torso and tail;
here a panel is a group of classes, which may be a single one.
"""

import numpy as np
import torch

from longtail.core.arrays import ArrayLike
from longtail.metrics import margins
from longtail.report.charts.chart import Chart
from longtail.report.figures.distributions import SampleValues, density, group_panels, places_for
from longtail.report.figures.runs import (
    Floats,
    Groups,
    Runs,
    counts_for,
    floats,
    labelled,
    masks_of,
)


def margins_chart(
    runs: Runs, counts: ArrayLike | None = None, groups: Groups | None = None
) -> Chart:
    """The density of margins in each group of classes (ELM fig. 3).

    Args:
        runs: Labelled scores, or several under their names.
        counts: Training samples of each class; by default those the scores know.
        groups: A boolean mask over the classes for each panel; by default many, medium and few.

    >>> from longtail import Scores
    >>> logits = [[2.0, 0.0], [1.0, 0.0], [0.1, 0.2]]
    >>> chart = margins_chart(Scores(logits, labels=[0, 1, 0], counts=[900, 10]))
    >>> "many: 1 class, 2 samples" in chart, "few: 1 class, 1 sample" in chart
    (True, True)
    """
    known = _margins(runs)
    return group_panels(
        known,
        _groups(runs, counts, groups),
        density,
        places=places_for(run.values for run in known),
        title="Margins by group",
        x_title="margin: logit of the true class over the highest other",
        y_title="density",
    )


def margin_cdf_chart(
    runs: Runs, counts: ArrayLike | None = None, groups: Groups | None = None
) -> Chart:
    """The share of samples whose margin is at most each value, in each group (ELM fig. 6).

    At a margin of zero stands the group's error. A curve further to the right is better.

    Args:
        runs: Labelled scores, or several under their names.
        counts: Training samples of each class; by default those the scores know.
        groups: A boolean mask over the classes for each panel; by default many, medium and few.

    >>> from longtail import Scores
    >>> logits = [[2.0, 0.0], [1.0, 0.0], [0.1, 0.2]]
    >>> chart = margin_cdf_chart(Scores(logits, labels=[0, 1, 0], counts=[900, 10]))
    >>> chart.count('class="line"')
    2
    """
    known = _margins(runs)
    return group_panels(
        known,
        _groups(runs, counts, groups),
        _shares,
        places=places_for((run.values for run in known), 161),
        title="Cumulative margins by group",
        x_title="margin: logit of the true class over the highest other",
        y_title="samples at most there (%)",
    )


def _margins(runs: Runs) -> list[SampleValues]:
    return [
        SampleValues(run.name, floats(margins(run.scores.logits, run.labels)), run.labels)
        for run in labelled(runs)
    ]


def _groups(runs: Runs, counts: ArrayLike | None, groups: Groups | None) -> dict[str, torch.Tensor]:
    return masks_of(groups, counts_for(labelled(runs), counts))


def _shares(values: Floats, places: Floats) -> Floats:
    below = np.searchsorted(np.sort(values), places, side="right")
    return np.asarray(100 * below / (len(values) or np.nan))
