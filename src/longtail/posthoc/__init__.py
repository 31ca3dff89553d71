"""After training: adjusters take Scores and return Scores, and what is carried moves with them.

The curve of τ and all that is fitted is imported when it is first used.
"""

import typing
from importlib import import_module as _import_module

from longtail.posthoc.adjuster import Adjuster as Adjuster
from longtail.posthoc.adjuster import Affine as Affine
from longtail.posthoc.adjuster import AffineAdjuster as AffineAdjuster
from longtail.posthoc.adjuster import chain_affine as chain_affine
from longtail.posthoc.adjuster import fold as fold
from longtail.posthoc.adjuster_file import StoredAdjusters as StoredAdjusters
from longtail.posthoc.adjuster_file import load_adjusters as load_adjusters
from longtail.posthoc.adjuster_file import save_adjusters as save_adjusters
from longtail.posthoc.adjusters import LogitAdjustment as LogitAdjustment
from longtail.posthoc.adjusters import PCSoftmax as PCSoftmax
from longtail.posthoc.adjusters import WeightNormalization as WeightNormalization
from longtail.posthoc.average import average as average
from longtail.posthoc.average import expert_weights as expert_weights
from longtail.posthoc.calibrators import BiasCorrectedTemperature as BiasCorrectedTemperature
from longtail.posthoc.calibrators import Calibrator as Calibrator
from longtail.posthoc.calibrators import Temperature as Temperature
from longtail.posthoc.calibrators import VectorScaling as VectorScaling
from longtail.posthoc.conformal import ConformalSets as ConformalSets
from longtail.posthoc.matching import MarginalMatching as MarginalMatching
from longtail.posthoc.tau import TauChoice as TauChoice
from longtail.posthoc.thresholds import Thresholds as Thresholds
from longtail.public_names import public_names

if typing.TYPE_CHECKING:
    from longtail.posthoc.tau.curve import TauCurve as TauCurve
    from longtail.posthoc.tau.curve import tau_curve as tau_curve
    from longtail.posthoc.tau.curve import weight_norm_curve as weight_norm_curve
_LATER = ("TauCurve", "tau_curve", "weight_norm_curve")
if not typing.TYPE_CHECKING:  # to type checkers every name would then exist

    def __getattr__(name):
        if name in _LATER:
            return getattr(_import_module("longtail.posthoc.tau.curve"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return public_names(globals(), *_LATER)
