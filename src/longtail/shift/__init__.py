"""Unknown target priors: estimated from unlabelled scores."""

from longtail.shift.em import StreamingPrior as StreamingPrior
from longtail.shift.estimate import PriorEstimate as PriorEstimate
from longtail.shift.estimate import estimate_prior as estimate_prior
from longtail.shift.only_prior import ShiftCheck as ShiftCheck
from longtail.shift.only_prior import check_only_prior_changed as check_only_prior_changed
