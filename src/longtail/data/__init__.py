"""Files of scores, labels and features; profiles, subsets, folds, synthetic sets, Caltech-101."""

from longtail.data.caltech import LabelledFeatures as LabelledFeatures
from longtail.data.caltech import caltech101_features as caltech101_features
from longtail.data.caltech import caltech101_long_tailed as caltech101_long_tailed
from longtail.data.profiles import exponential_counts as exponential_counts
from longtail.data.profiles import pareto_counts as pareto_counts
from longtail.data.profiles import step_counts as step_counts
from longtail.data.subsets import exponential_subset as exponential_subset
from longtail.data.subsets import long_tailed_subset as long_tailed_subset
from longtail.data.subsets import shifted_subset as shifted_subset
from longtail.data.subsets import stratified_folds as stratified_folds
from longtail.data.synthetic import TWO_GAUSSIANS_BAYES_ERROR as TWO_GAUSSIANS_BAYES_ERROR
from longtail.data.synthetic import two_gaussians as two_gaussians
from longtail.data.synthetic import two_gaussians_error as two_gaussians_error
from longtail.data.synthetic import two_moons as two_moons
from longtail.data.tables.costs import read_costs as read_costs
from longtail.data.tables.feature_arrays import read_feature_rows as read_feature_rows
from longtail.data.tables.feature_arrays import read_features as read_features
from longtail.data.tables.features import Features as Features
from longtail.data.tables.features import Part as Part
from longtail.data.tables.features import pack_features as pack_features
from longtail.data.tables.label_codes import LabelCounts as LabelCounts
from longtail.data.tables.label_codes import align_counts as align_counts
from longtail.data.tables.labels import read_label_counts as read_label_counts
from longtail.data.tables.labels import read_labels as read_labels
from longtail.data.tables.layout import Layout as Layout
from longtail.data.tables.score_table import Block as Block
from longtail.data.tables.score_table import Kind as Kind
from longtail.data.tables.score_table import ScoreTable as ScoreTable
from longtail.data.tables.score_table import ScoreWriter as ScoreWriter
from longtail.data.tables.score_table import open_score_writer as open_score_writer
from longtail.data.tables.scores import open_score_table as open_score_table
from longtail.public_names import public_names


def __dir__() -> list[str]:
    return public_names(globals())
