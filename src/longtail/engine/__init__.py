"""Training: heads on features that were computed once."""

from longtail.engine.feature_file import Features as Features
from longtail.engine.feature_file import pack_features as pack_features
from longtail.engine.linear import fit_linear as fit_linear
