"""Long-tailed and shifted data: profiles, subsets, samplers, synthetic sets, Caltech-101."""

from longtail.data import images as images
from longtail.data.caltech import LabelledFeatures as LabelledFeatures
from longtail.data.caltech import caltech101_features as caltech101_features
from longtail.data.caltech import caltech101_long_tailed as caltech101_long_tailed
from longtail.data.folds import stratified_folds as stratified_folds
from longtail.data.profiles import exponential_counts as exponential_counts
from longtail.data.profiles import pareto_counts as pareto_counts
from longtail.data.profiles import step_counts as step_counts
from longtail.data.subsets import long_tailed_subset as long_tailed_subset
from longtail.data.subsets import shifted_subset as shifted_subset
from longtail.data.synthetic import TWO_GAUSSIANS_BAYES_ERROR as TWO_GAUSSIANS_BAYES_ERROR
from longtail.data.synthetic import two_gaussians as two_gaussians
from longtail.data.synthetic import two_gaussians_error as two_gaussians_error
from longtail.data.synthetic import two_moons as two_moons
