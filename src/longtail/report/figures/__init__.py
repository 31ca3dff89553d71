"""The pictures of the papers: each a function from values to a chart, for notebooks and papers.

    chart = figures.reliability_chart({"before": scores, "after": adjusted})
    chart.save("reliability.pdf")

In a notebook the last value of a cell is shown; in a page a chart goes into `report.Figure`.
"""

from longtail.report.figures.cdnv import cdnv_chart as cdnv_chart
from longtail.report.figures.class_accuracy import class_accuracy_chart as class_accuracy_chart
from longtail.report.figures.class_logits import class_logits_chart as class_logits_chart
from longtail.report.figures.counts import counts_chart as counts_chart
from longtail.report.figures.displacement import displacement_chart as displacement_chart
from longtail.report.figures.false_positives import false_positives_chart as false_positives_chart
from longtail.report.figures.group_curves import group_curves_chart as group_curves_chart
from longtail.report.figures.largest_distances import (
    largest_distances_chart as largest_distances_chart,
)
from longtail.report.figures.margins import margin_cdf_chart as margin_cdf_chart
from longtail.report.figures.margins import margins_chart as margins_chart
from longtail.report.figures.offsets import offsets_chart as offsets_chart
from longtail.report.figures.projections import projections_chart as projections_chart
from longtail.report.figures.reliability import reliability_chart as reliability_chart
from longtail.report.figures.tau import tau_error_chart as tau_error_chart
from longtail.report.figures.tau import tau_groups_chart as tau_groups_chart
from longtail.report.figures.tsne import tsne_chart as tsne_chart
from longtail.report.figures.variance import variance_chart as variance_chart
from longtail.report.figures.weight_norms import weight_norms_chart as weight_norms_chart
