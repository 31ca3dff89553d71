"""The experiment of `longtail demo`: two problems, and what is tried on each."""

from longtail.flows.demo import FeatureExperiment, FeatureMethod
from longtail.flows.two_gaussians import LA_FIGURE_2
from longtail.losses import CrossEntropy, LogitAdjusted
from longtail.posthoc import LogitAdjustment

GAUSSIANS = LA_FIGURE_2
CALTECH = FeatureExperiment(
    methods=(
        FeatureMethod("cross-entropy", CrossEntropy),
        FeatureMethod("post-hoc adjustment", CrossEntropy, LogitAdjustment),
        FeatureMethod("logit-adjusted loss", LogitAdjusted),
    ),
    weight_decays=(1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5),
    folds=3,  # the smallest class has three images
)
