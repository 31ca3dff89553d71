"""Training: heads on features that were computed once."""

from longtail.engine.linear import fit_linear as fit_linear
