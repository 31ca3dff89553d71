"""How good scores are: recalls, accuracies, proper scores and calibration, under any prior."""

from longtail.metrics.calibration import classwise_ece as classwise_ece
from longtail.metrics.calibration import ece as ece
from longtail.metrics.comparison import Comparison as Comparison
from longtail.metrics.evaluate import evaluate as evaluate
from longtail.metrics.proper import brier as brier
from longtail.metrics.proper import nll as nll
from longtail.metrics.recall import accuracy_under as accuracy_under
from longtail.metrics.recall import balanced_accuracy as balanced_accuracy
from longtail.metrics.recall import balanced_error as balanced_error
from longtail.metrics.recall import geometric_mean as geometric_mean
from longtail.metrics.recall import group_accuracies as group_accuracies
from longtail.metrics.recall import recalls as recalls
from longtail.metrics.recall import top1 as top1
from longtail.metrics.recall import worst_class as worst_class
from longtail.metrics.tally import Measured as Measured
from longtail.metrics.tally import Tally as Tally
