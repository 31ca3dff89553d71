"""Intervals, tests, corrections, ranks and draws, on NumPy and scipy.special."""

from longtail.public_names import public_names
from longtail.stats.comparisons import HolmResult as HolmResult
from longtail.stats.comparisons import Ranks as Ranks
from longtail.stats.comparisons import average_ranks as average_ranks
from longtail.stats.comparisons import holm as holm
from longtail.stats.comparisons import rank_correlation as rank_correlation
from longtail.stats.comparisons import ranked as ranked
from longtail.stats.comparisons import seed_blocks as seed_blocks
from longtail.stats.distributions import NORMAL as NORMAL
from longtail.stats.distributions import chi_square_quantile as chi_square_quantile
from longtail.stats.distributions import chi_square_score as chi_square_score
from longtail.stats.distributions import normal_quantile as normal_quantile
from longtail.stats.distributions import student_p as student_p
from longtail.stats.distributions import student_reach as student_reach
from longtail.stats.intervals import Estimate as Estimate
from longtail.stats.intervals import Interval as Interval
from longtail.stats.intervals import correlation_interval as correlation_interval
from longtail.stats.intervals import estimate as estimate
from longtail.stats.intervals import normal_interval as normal_interval
from longtail.stats.intervals import quantile_interval as quantile_interval
from longtail.stats.intervals import wilson as wilson
from longtail.stats.within_classes import Part as Part
from longtail.stats.within_classes import Replicates as Replicates
from longtail.stats.within_classes import alike as alike
from longtail.stats.within_classes import class_variances as class_variances
from longtail.stats.within_classes import share_interval as share_interval
from longtail.stats.within_classes import stratified_variance as stratified_variance


def __dir__() -> list[str]:
    return public_names(globals())
