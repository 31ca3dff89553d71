"""Intervals, tests, corrections, ranks and draws, on NumPy and scipy.special."""

from longtail.stats.bootstrap import Replicates as Replicates
from longtail.stats.bootstrap import alike as alike
from longtail.stats.class_variance import Part as Part
from longtail.stats.class_variance import class_variances as class_variances
from longtail.stats.class_variance import share_interval as share_interval
from longtail.stats.class_variance import stratified_variance as stratified_variance
from longtail.stats.distributions import NORMAL as NORMAL
from longtail.stats.distributions import chi_square_quantile as chi_square_quantile
from longtail.stats.distributions import chi_square_score as chi_square_score
from longtail.stats.distributions import normal_quantile as normal_quantile
from longtail.stats.distributions import student_p as student_p
from longtail.stats.distributions import student_reach as student_reach
from longtail.stats.holm import HolmResult as HolmResult
from longtail.stats.holm import holm as holm
from longtail.stats.intervals import Estimate as Estimate
from longtail.stats.intervals import Interval as Interval
from longtail.stats.intervals import estimate as estimate
from longtail.stats.intervals import normal_interval as normal_interval
from longtail.stats.intervals import quantile_interval as quantile_interval
from longtail.stats.intervals import wilson as wilson
from longtail.stats.ranks import Ranks as Ranks
from longtail.stats.ranks import average_ranks as average_ranks
from longtail.stats.ranks import rank_correlation as rank_correlation
from longtail.stats.ranks import ranked as ranked
from longtail.stats.ranks import ranks as ranks
from longtail.stats.ranks import seed_blocks as seed_blocks
