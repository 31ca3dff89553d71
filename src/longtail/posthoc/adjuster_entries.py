"""What an adjuster file says of each adjuster: its kind, and its arguments by their names."""

from math import inf
from typing import Any, TypeAlias

import msgspec
import numpy as np
from torch import Tensor

from longtail.core import Prior
from longtail.posthoc.adjuster import Adjuster, AffineAdjuster
from longtail.posthoc.bias_corrected_temperature import BiasCorrectedTemperature
from longtail.posthoc.logit_adjustment import LogitAdjustment
from longtail.posthoc.pc_softmax import PCSoftmax
from longtail.posthoc.tau.choice import TauChoice
from longtail.posthoc.temperature import Temperature
from longtail.posthoc.vector_scaling import VectorScaling
from longtail.posthoc.weight_normalization import WeightNormalization


class PriorEntry(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A prior: log-probabilities, null for a class that cannot occur, and counts where known."""

    log_probs: list[float | None]
    counts: list[int] | None = None


class Entry(msgspec.Struct, tag_field="kind", forbid_unknown_fields=True, omit_defaults=True):
    """An adjuster. The fields of each kind are the arguments that make it again."""


class LogitAdjustmentEntry(Entry, tag="logit_adjustment"):
    """f + τ·(log t − log π)."""

    prior: PriorEntry
    tau: float
    target: PriorEntry | None = None
    choice: TauChoice | None = None


class PCSoftmaxEntry(Entry, tag="pc_softmax"):
    """A move to the target."""

    target: PriorEntry


class WeightNormalizationEntry(Entry, tag="weight_normalization"):
    """f / ν^τ."""

    nu: list[float]
    tau: float
    choice: TauChoice | None = None


class TemperatureEntry(Entry, tag="temperature"):
    """f / T."""

    temperature: float
    source: PriorEntry | None = None


class BiasCorrectedTemperatureEntry(Entry, tag="bias_corrected_temperature"):
    """f / T + b."""

    temperature: float
    bias: list[float] | None = None
    source: PriorEntry | None = None
    carried: PriorEntry | None = None


class VectorScalingEntry(Entry, tag="vector_scaling"):
    """s · f + b."""

    scale: list[float] | None = None
    bias: list[float] | None = None
    source: PriorEntry | None = None
    carried: PriorEntry | None = None


AnyEntry: TypeAlias = (
    LogitAdjustmentEntry
    | PCSoftmaxEntry
    | WeightNormalizationEntry
    | TemperatureEntry
    | BiasCorrectedTemperatureEntry
    | VectorScalingEntry
)

_ENTRIES: dict[type[AffineAdjuster], type[AnyEntry]] = {
    LogitAdjustment: LogitAdjustmentEntry,
    PCSoftmax: PCSoftmaxEntry,
    WeightNormalization: WeightNormalizationEntry,
    Temperature: TemperatureEntry,
    BiasCorrectedTemperature: BiasCorrectedTemperatureEntry,
    VectorScaling: VectorScalingEntry,
}
_ADJUSTERS = {entry: adjuster for adjuster, entry in _ENTRIES.items()}


def entry_of(adjuster: Adjuster) -> AnyEntry:
    """What the file says of an adjuster, or a ValueError if it is none of ours."""
    for kind, entry in _ENTRIES.items():
        if type(adjuster) is kind:
            return entry(**{n: _plain(getattr(adjuster, n)) for n in entry.__struct_fields__})
    raise ValueError(
        f"an adjuster file holds adjusters of longtail.posthoc, got a {type(adjuster).__name__}"
    )


def adjuster_of(entry: AnyEntry) -> AffineAdjuster:
    """The adjuster again, or a ValueError by its own checks."""
    values = {name: getattr(entry, name) for name in entry.__struct_fields__}
    priors = {n: prior_of(v) for n, v in values.items() if isinstance(v, PriorEntry)}
    return _ADJUSTERS[type(entry)](**values | priors)


def entry_of_prior(prior: Prior) -> PriorEntry:
    """What the file says of a prior."""
    logs = [None if value == -inf else value for value in prior.log.tolist()]
    return PriorEntry(logs, None if prior.counts is None else prior.counts.tolist())


def prior_of(entry: PriorEntry) -> Prior:
    """The prior again, or a ValueError."""
    logs = [-inf if value is None else value for value in entry.log_probs]
    counts = None if entry.counts is None else np.array(entry.counts)
    return Prior(np.array(logs, np.float64), counts)


def _plain(value: Any) -> Any:
    if isinstance(value, Prior):
        return entry_of_prior(value)
    return value.tolist() if isinstance(value, Tensor) else value
