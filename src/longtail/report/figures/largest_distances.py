r"""Largest distances within classes, by group (ELM fig. 4).

d_max(x) = max_{x⁺ in S_y} ‖Φ(x) − Φ(x⁺)‖  /  max_x ‖Φ(x)‖
"""

from collections.abc import Mapping

from longtail.core.arrays import Array, ArrayLike
from longtail.core.tensors import count_tensor, label_tensor
from longtail.metrics.representations import largest_intra_class_distances
from longtail.report.charts.chart import Chart
from longtail.report.figures.distributions import SampleValues, density, group_panels, places_for
from longtail.report.figures.runs import Groups, floats, masks_of


def largest_distances_chart(
    features: Array | Mapping[str, Array],
    labels: ArrayLike,
    counts: ArrayLike,
    groups: Groups | None = None,
) -> Chart:
    """The density of d_max in each group of classes: the further left, the more compact they are.

    Args:
        features: Shape (N, D), or several such under their names.
        labels: Class indices of the N samples.
        counts: Training samples of each class.
        groups: A boolean mask over the classes for each panel; by default many, medium and few.

    >>> features = [[0.0, 0.0], [3.0, 4.0], [0.0, 10.0], [0.0, 9.0]]
    >>> chart = largest_distances_chart(features, [0, 0, 1, 1], counts=[900, 10])
    >>> chart.count('class="line"')
    2
    """
    known_counts = count_tensor(counts).cpu()
    known = label_tensor(labels, len(known_counts)).cpu()
    named = features if isinstance(features, Mapping) else {"features": features}
    runs = [
        SampleValues(
            name, floats(largest_intra_class_distances(rows, known, len(known_counts))), known
        )
        for name, rows in named.items()
    ]
    return group_panels(
        runs,
        masks_of(groups, known_counts),
        density,
        places=places_for(run.values for run in runs),
        title="Largest distance within the class, by group",
        x_title="distance to the farthest of the class, over the largest norm",
        y_title="density",
    )
