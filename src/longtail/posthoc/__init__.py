"""After training: adjusters take Scores and return Scores, and what is carried moves with them."""

from longtail.posthoc.adjuster import Adjuster as Adjuster
from longtail.posthoc.adjuster import Affine as Affine
from longtail.posthoc.adjuster import AffineAdjuster as AffineAdjuster
from longtail.posthoc.logit_adjustment import LogitAdjustment as LogitAdjustment
from longtail.posthoc.pc_softmax import PCSoftmax as PCSoftmax
from longtail.posthoc.weight_normalization import WeightNormalization as WeightNormalization
