"""Losses on logits, each of which says what a model trained with it carries, and regularizers."""

from longtail.core.class_weights import class_balanced_weights as class_balanced_weights
from longtail.losses.batch_terms import LiftedStructure as LiftedStructure
from longtail.losses.batch_terms import Range as Range
from longtail.losses.batch_terms import SpreadOut as SpreadOut
from longtail.losses.binary import BinaryLogitAdjusted as BinaryLogitAdjusted
from longtail.losses.binary import BinaryLoss as BinaryLoss
from longtail.losses.binary_baselines import Asymmetric as Asymmetric
from longtail.losses.binary_baselines import BinaryFocal as BinaryFocal
from longtail.losses.binary_baselines import ClassBalancedBinary as ClassBalancedBinary
from longtail.losses.center import DROLT as DROLT
from longtail.losses.center import Center as Center
from longtail.losses.center import EstimatedOffset as EstimatedOffset
from longtail.losses.change_of_prior import Balanced as Balanced
from longtail.losses.change_of_prior import BalancedSoftmax as BalancedSoftmax
from longtail.losses.change_of_prior import ConsistentMargin as ConsistentMargin
from longtail.losses.change_of_prior import CrossEntropy as CrossEntropy
from longtail.losses.change_of_prior import Experts as Experts
from longtail.losses.change_of_prior import LogitAdjusted as LogitAdjusted
from longtail.losses.change_of_prior import WeightedLogitAdjusted as WeightedLogitAdjusted
from longtail.losses.confidence import ClassBalanced as ClassBalanced
from longtail.losses.confidence import Focal as Focal
from longtail.losses.confidence import LabelAwareSmoothing as LabelAwareSmoothing
from longtail.losses.confidence import SigmoidFocal as SigmoidFocal
from longtail.losses.deferred import Deferred as Deferred
from longtail.losses.deferred import deferred_resampling as deferred_resampling
from longtail.losses.deferred import deferred_reweighting as deferred_reweighting
from longtail.losses.elm import ELM as ELM
from longtail.losses.elm import Pull as Pull
from longtail.losses.elm import pull_margins as pull_margins
from longtail.losses.lade import LADE as LADE
from longtail.losses.lade import LADER as LADER
from longtail.losses.linear_cross_entropy import linear_cross_entropy as linear_cross_entropy
from longtail.losses.loss import Loss as Loss
from longtail.losses.margins import CDT as CDT
from longtail.losses.margins import LDAM as LDAM
from longtail.losses.margins import VS as VS
from longtail.losses.margins import Adaptive as Adaptive
from longtail.losses.margins import LogitAdjustedAdaptive as LogitAdjustedAdaptive
from longtail.losses.margins import MarginLoss as MarginLoss
from longtail.losses.margins import TwoScale as TwoScale
from longtail.losses.pairwise import Equalized as Equalized
from longtail.losses.pairwise import PairwiseMargin as PairwiseMargin
from longtail.losses.proposals import LabelCounts as LabelCounts
from longtail.losses.regularizer import RegularizedLoss as RegularizedLoss
from longtail.losses.regularizer import Regularizer as Regularizer
from longtail.losses.sample_loss import SampleLoss as SampleLoss
from longtail.losses.sampled_softmax import SampledSoftmax as SampledSoftmax
from longtail.losses.with_terms import AddedTerm as AddedTerm
from longtail.losses.with_terms import LossWithTerms as LossWithTerms
from longtail.public_names import public_names


def __dir__() -> list[str]:
    return public_names(globals())
