r"""How τ was chosen on held-out samples, and how well they determine it.

    accuracy_under_target   Σ_y t(y)·recall_y, exactly (`curve`); balanced accuracy for uniform t
    nll, brier              proper scores (`proper`)
    ece                     calibration error with 20 bins (`ece`)

The best τ of a few samples, or of a short move, is mostly chance: the one that is used lies between
it and 1, by how well the samples determine it (`held_near_one`). Every criterion is meant under the
target t: a held-out sample of class y counts t(y)/n_y, whatever the held-out set's own frequencies.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import hypot, inf, isinf
from typing import Literal, NamedTuple, TypeAlias, get_args

import torch
from torch import Tensor

from longtail.core import Prior
from longtail.core.arrays import ArrayLike
from longtail.core.tensors import as_tensor
from longtail.posthoc.held_out import HeldOut, effective_samples
from longtail.posthoc.tau.curve import curve_along
from longtail.posthoc.tau.ece import ece_at, lowest_ece
from longtail.posthoc.tau.held_near_one import SPREAD, WIDE_SPREAD, held_near_one, least_error
from longtail.posthoc.tau.paths import Shift, TauPath
from longtail.posthoc.tau.proper import BRIER, NLL, Proper, lowest, places_of_change, scores_at
from longtail.posthoc.tau.weighted import Weighted
from longtail.stats import NORMAL

Criterion: TypeAlias = Literal["accuracy_under_target", "nll", "brier", "ece"]

_COARSE = 15  # points of the grid on which a score that is not convex is looked at first


@dataclass(frozen=True)
class TauChoice:
    """A τ, and what speaks for it.

    Attributes:
        tau: The τ chosen, between the optimum and 1.
        criterion: By what.
        value: The criterion at τ under the target, on the samples it was chosen on.
        standard_error: Of that value, if samples of each class were drawn again.
        optimum: The τ at which the criterion is best on these samples; 1 if none is better.
        trust: How far from 1 towards the optimum τ was let go: 0 not at all, 1 all the way.
        low: Where the 95 % interval of the optimum begins, by the error that trust follows from;
            None if there is none, as for "ece" or where nothing is known.
        high: Where it ends.
        effective_samples: How many equally weighted samples tell as much as these (Kish).
        effective_tail: The same of the rarer half of the classes; None if it is not known which.
    """

    tau: float
    criterion: Criterion
    value: float
    standard_error: float
    optimum: float
    trust: float
    low: float | None
    high: float | None
    effective_samples: float
    effective_tail: float | None

    @property
    def is_determined(self) -> bool:
        """Whether the samples had more to say about τ than that it should be near 1."""
        return self.trust >= 0.5


def choose_tau(
    path: TauPath,
    held: HeldOut,
    target: Prior,
    criterion: Criterion,
    training: Prior | None,
    within: ArrayLike | None = None,
) -> TauChoice:
    """The best τ along a path.

    Args:
        path: Where the logits go with τ.
        held: The samples to choose on.
        target: The prior under which the criterion is meant.
        criterion: What is to be as good as possible: an accuracy as high, the others as low.
        training: What tells which half of the classes is rarer, or None if nothing does.
        within: How much each sample counts among those of its class; all the same by default.
    """
    if criterion not in get_args(Criterion):
        names = ", ".join(f'"{name}"' for name in get_args(Criterion))
        raise ValueError(f"criterion must be one of {names}, got {criterion!r}")
    samples = Weighted.under(target, held.logits, held.labels, within).that_count()
    found = _FITS[criterion](path, samples, target)
    length, spread = path.length(samples.logits), WIDE_SPREAD
    if isinstance(path, Shift):
        length, spread = length / _size(samples.logits), SPREAD
    error = max(found.spread, least_error(samples.worth, path.reach(samples.logits)))
    tau, trust = held_near_one(found.optimum, error, length, spread)
    value, standard_error = found.at(tau)
    low, high = _interval(found, error)
    return TauChoice(
        tau=tau,
        criterion=criterion,
        value=value,
        standard_error=standard_error,
        optimum=found.optimum,
        trust=trust,
        low=low,
        high=high,
        effective_samples=effective_samples(samples.weights),
        effective_tail=None if training is None else _effective_tail(samples, training),
    )


def _size(logits: Tensor) -> float:
    """How far logits lie apart, 1 at the most: what no model's logits are right to is a part of it.

    A temperature of a hundred leaves logits, and τ, of a hundredth of the usual size.
    """
    finite = logits[logits.isfinite().all(dim=1)]
    size = float(finite.std(dim=1, correction=0).mean()) if len(finite) else 1.0
    return min(1.0, size) or 1.0


def _effective_tail(samples: Weighted, training: Prior) -> float:
    rarer = as_tensor(training.log.argsort(kind="stable"))[: (training.num_classes + 1) // 2]
    weights = samples.weights[torch.isin(samples.labels, rarer)]
    return effective_samples(weights) if len(weights) else 0.0


class _Found(NamedTuple):
    """The best τ, its standard error and interval, and the criterion at any τ with its own."""

    optimum: float
    spread: float
    at: Callable[[float], tuple[float, float]]
    low: float | None = None
    high: float | None = None


def _interval(found: _Found, error: float) -> tuple[float | None, float | None]:
    """The interval that was found, made as wide as the error that decides."""
    if found.low is None or found.high is None or isinf(error):
        return None, None
    half = NORMAL * error
    return min(found.low, found.optimum - half), max(found.high, found.optimum + half)


def _by_accuracy(path: TauPath, samples: Weighted, target: Prior) -> _Found:
    curve = curve_along(path, samples, target, samples.logits)
    drawn = curve.bootstrap()
    low, high = drawn.interval()

    def at(tau: float) -> tuple[float, float]:
        right = (path.predict(samples.logits, tau) == samples.labels).double()
        return samples.mean(right), samples.standard_error(right)

    spread = hypot(drawn.spread, _spread_within(*curve.best_interval))
    return _Found(curve.best_tau, spread, at, low, high)


def _spread_within(low: float, high: float) -> float:
    """The standard deviation of a τ that may lie anywhere between two ends alike.

    One end alone tells no width; there the point one inside is taken as it is.
    """
    return 0.0 if isinf(low) != isinf(high) else (high - low) / 12**0.5


def _by_nll(path: TauPath, samples: Weighted, target: Prior) -> _Found:
    own = samples.logits.gather(1, samples.labels.to(samples.logits.device)[:, None]).squeeze(1)
    if own.isneginf().any():
        at = int(own.isneginf().nonzero()[0])
        raise ValueError(
            f"the logits rule out the true class {int(samples.labels[at])} of a sample, whose "
            "log-loss is infinite whatever tau; give probabilities to Scores.from_probs, which "
            "floors zeros, or choose by another criterion"
        )
    convex = isinstance(path, Shift)
    return _by_score(path, samples, NLL, [1.0] if convex else _places(path, samples))


def _by_brier(path: TauPath, samples: Weighted, target: Prior) -> _Found:
    return _by_score(path, samples, BRIER, _places(path, samples))


def _by_score(path: TauPath, samples: Weighted, proper: Proper, starts: list[float]) -> _Found:
    def at(tau: float) -> tuple[float, float]:
        values = scores_at(tau, samples, path, proper).value
        return samples.mean(values), samples.standard_error(values)

    tau = lowest(samples, path, proper, starts)
    scores = scores_at(tau, samples, path, proper)
    bend = samples.mean(scores.bend)
    if not bend > 0:
        return _Found(tau, inf, at)
    # The minimum moves by the slope over the bend (the delta method).
    half = NORMAL * samples.standard_error(scores.slope) / bend
    # Where the score falls for ever both vanish, and the bend alone tells that nothing is known.
    spread = max(half / NORMAL, (samples.worth * bend) ** -0.5)
    return _Found(tau, spread, at, tau - half, tau + half)


def _by_ece(path: TauPath, samples: Weighted, target: Prior) -> _Found:
    right = path.intervals(samples.logits, samples.labels)
    return _Found(*lowest_ece(samples, path, right), lambda tau: ece_at(tau, samples, path, right))


def _places(path: TauPath, samples: Weighted) -> list[float]:
    return places_of_change(path.intervals(samples.logits, samples.labels), _COARSE)


_FITS: dict[str, Callable[[TauPath, Weighted, Prior], _Found]] = {
    "accuracy_under_target": _by_accuracy,
    "nll": _by_nll,
    "brier": _by_brier,
    "ece": _by_ece,
}
