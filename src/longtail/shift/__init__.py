"""Unknown target priors: estimated from unlabelled scores."""

from longtail.shift.em import StreamingPrior as StreamingPrior
from longtail.shift.estimate import PriorEstimate as PriorEstimate
from longtail.shift.estimate import estimate_prior as estimate_prior
