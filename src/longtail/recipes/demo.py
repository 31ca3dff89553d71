"""The experiment of `longtail demo`: two problems, and what is tried on each."""

from longtail.flows.demo import FeatureExperiment, FeatureMethod
from longtail.flows.two_gaussians import GaussianExperiment
from longtail.losses import Adaptive, CrossEntropy, Equalized, LogitAdjusted
from longtail.posthoc import LogitAdjustment

GAUSSIANS = GaussianExperiment(
    samples=10_000,
    losses={
        "ERM": CrossEntropy,
        "adaptive": Adaptive,
        "equalised": Equalized,
        "logit-adjusted": LogitAdjusted,
    },
    taus=tuple(step / 10 for step in range(31)),
)
CALTECH = FeatureExperiment(
    methods=(
        FeatureMethod("cross-entropy", CrossEntropy),
        FeatureMethod("post-hoc adjustment", CrossEntropy, LogitAdjustment),
        FeatureMethod("logit-adjusted loss", LogitAdjusted),
    ),
    weight_decays=(1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5),
    folds=3,  # the smallest class has three images
)
