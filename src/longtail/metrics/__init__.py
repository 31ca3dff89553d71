"""How good scores are: recalls, accuracies, proper scores and calibration, under any prior."""

from longtail.metrics.calibration import classwise_ece as classwise_ece
from longtail.metrics.calibration import ece as ece
from longtail.metrics.class_logits import ClassLogits as ClassLogits
from longtail.metrics.class_logits import class_logits as class_logits
from longtail.metrics.comparison import Comparison as Comparison
from longtail.metrics.comparison import paired_gain as paired_gain
from longtail.metrics.evaluate import evaluate as evaluate
from longtail.metrics.false_positives import false_positives as false_positives
from longtail.metrics.proper import brier as brier
from longtail.metrics.proper import nll as nll
from longtail.metrics.recall import accuracy as accuracy
from longtail.metrics.recall import accuracy_under as accuracy_under
from longtail.metrics.recall import balanced_accuracy as balanced_accuracy
from longtail.metrics.recall import balanced_error as balanced_error
from longtail.metrics.recall import geometric_mean as geometric_mean
from longtail.metrics.recall import group_accuracies as group_accuracies
from longtail.metrics.recall import recalls as recalls
from longtail.metrics.recall import worst_class as worst_class
from longtail.metrics.reliability import Reliability as Reliability
from longtail.metrics.reliability import reliability as reliability
from longtail.metrics.representation_classes import class_means as class_means
from longtail.metrics.representation_margins import margin_cdf as margin_cdf
from longtail.metrics.representation_margins import margins as margins
from longtail.metrics.representation_separation import cdnv as cdnv
from longtail.metrics.representation_separation import (
    centroid_displacement as centroid_displacement,
)
from longtail.metrics.representation_separation import mean_cdnv as mean_cdnv
from longtail.metrics.representation_spread import intra_class_variance as intra_class_variance
from longtail.metrics.representation_spread import (
    largest_intra_class_distances as largest_intra_class_distances,
)
from longtail.metrics.representation_weights import class_offsets as class_offsets
from longtail.metrics.representation_weights import frequency_correlation as frequency_correlation
from longtail.metrics.representation_weights import weight_norms as weight_norms
from longtail.metrics.tally import Measured as Measured
from longtail.metrics.tally import Tally as Tally
