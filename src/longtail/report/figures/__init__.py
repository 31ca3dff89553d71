"""The pictures of the papers: each a function from values to a chart, for notebooks and papers.

    chart = figures.class_accuracy_chart({"before": lt.metrics.recalls(scores)}, counts)
    chart.save("accuracy.pdf")

Everywhere `counts` are the training samples of each class and `classes` their names, and values are
those of one run, or of several under their names. In a notebook the last value of a cell is shown;
in a page a chart goes into `report.Figure`.
"""

from longtail.report.figures.classes import class_accuracy_chart as class_accuracy_chart
from longtail.report.figures.classes import class_logits_chart as class_logits_chart
from longtail.report.figures.classes import counts_chart as counts_chart
from longtail.report.figures.classes import false_positives_chart as false_positives_chart
from longtail.report.figures.classes import mean_probability_chart as mean_probability_chart
from longtail.report.figures.classes import offsets_chart as offsets_chart
from longtail.report.figures.curves import group_curves_chart as group_curves_chart
from longtail.report.figures.curves import largest_distances_chart as largest_distances_chart
from longtail.report.figures.curves import margin_cdf_chart as margin_cdf_chart
from longtail.report.figures.curves import margins_chart as margins_chart
from longtail.report.figures.curves import reliability_chart as reliability_chart
from longtail.report.figures.curves import tau_error_chart as tau_error_chart
from longtail.report.figures.curves import tau_groups_chart as tau_groups_chart
from longtail.report.figures.curves import trained_tau_chart as trained_tau_chart
from longtail.report.figures.representations import cdnv_chart as cdnv_chart
from longtail.report.figures.representations import displacement_chart as displacement_chart
from longtail.report.figures.representations import projections_chart as projections_chart
from longtail.report.figures.representations import tsne_chart as tsne_chart
from longtail.report.figures.representations import variance_chart as variance_chart
from longtail.report.figures.representations import weight_norms_chart as weight_norms_chart
