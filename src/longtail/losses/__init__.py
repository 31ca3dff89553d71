"""Losses on logits. Each says which prior a model trained with it carries: `loss.carried`."""

from longtail.losses.adaptive import Adaptive as Adaptive
from longtail.losses.adaptive import LogitAdjustedAdaptive as LogitAdjustedAdaptive
from longtail.losses.cross_entropy import Balanced as Balanced
from longtail.losses.cross_entropy import CrossEntropy as CrossEntropy
from longtail.losses.equalized import Equalized as Equalized
from longtail.losses.logit_adjusted import BalancedSoftmax as BalancedSoftmax
from longtail.losses.logit_adjusted import ConsistentMargin as ConsistentMargin
from longtail.losses.logit_adjusted import LogitAdjusted as LogitAdjusted
from longtail.losses.logit_adjusted import WeightedLogitAdjusted as WeightedLogitAdjusted
from longtail.losses.loss import Loss as Loss
from longtail.losses.margin import MarginLoss as MarginLoss
from longtail.losses.pairwise import PairwiseMargin as PairwiseMargin
from longtail.losses.scaled import CDT as CDT
from longtail.losses.scaled import VS as VS
from longtail.losses.smoothing import LabelAwareSmoothing as LabelAwareSmoothing
from longtail.losses.two_scale import TwoScale as TwoScale
