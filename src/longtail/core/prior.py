"""Prior: p(y) over the classes, the value everything in longtail is tied to.

Kept as normalised log-probabilities in float64: a ratio of two classes survives any product,
power or difference of priors, where float32 probabilities of rare classes would not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

from longtail.core.arrays import ArrayLike, Floats, Indices, Numbers, as_numpy
from longtail.core.labels import MOST, check_counts, check_labels
from longtail.core.numbers import check_choice, check_number, check_per_class, check_whole
from longtail.core.softmax import log_softmax
from longtail.core.tracing import constant_when_traced, in_compiler

Zeros: TypeAlias = Literal["error", "smooth", "keep"]


@dataclass(frozen=True, eq=False, repr=False)
class Prior:
    """A label prior. Two are equal if they give every class the same probability.

    >>> prior = Prior.of([70, 25, 5])
    >>> prior
    Prior([0.7, 0.25, 0.05])
    >>> prior.tempered(0.5).reweighted([1, 1, 2])
    Prior([0.469, 0.28, 0.251])
    """

    log: Floats  # natural logarithms of the probabilities
    counts: Indices | None = None  # that it was made from
    has_zeros: bool = field(init=False)  # whether some class cannot occur

    def __post_init__(self) -> None:
        log = _check_log(self.log)
        total = float(np.exp(log).sum())
        if not abs(total - 1) <= 1e-6:
            raise ValueError(
                f"Prior(log) takes logarithms of probabilities that sum to one, got {_shown(log)}, "
                f"whose exponentials sum to {total:.3g}; make a prior with Prior.of from counts or "
                "probabilities, or with Prior.from_log from logarithms of any weights"
            )
        counts = None if self.counts is None else check_counts(self.counts, len(log))
        object.__setattr__(self, "log", log_softmax(log, axis=0))
        object.__setattr__(self, "counts", counts)
        object.__setattr__(self, "has_zeros", bool(np.isneginf(log).any()))

    @classmethod
    def of(
        cls, weights: PriorLike, zeros: Zeros = "error", classes: Sequence[str] | None = None
    ) -> Prior:
        """From class counts, probabilities or any non-negative weights.

        Whole numbers are taken for counts and kept as `counts`, if they are below 2**53.

        Args:
            weights: One number a class, in order or by class index or name. A Prior is returned as
                it is, but for zeros to smooth.
            zeros: What to do with a class of weight zero. "error" refuses it; "smooth" adds one
                half to every count (Jeffreys' rule; the kept `counts` stay as given); "keep" means
                that the class cannot occur, which only a target prior may say.
            classes: The names of the classes in order, for weights by name.

        >>> Prior.of({"dog": 1, "cat": 3}, classes=["cat", "dog"])
        Prior([0.75, 0.25])
        """
        if in_compiler() and isinstance(weights, Sequence | Mapping):
            return _constant_prior(weights, zeros, classes)
        if zeros != "error":
            check_choice(zeros, Zeros, "zeros")
        if isinstance(weights, Prior):
            if weights.has_zeros and zeros == "smooth":
                smooth = _without_zeros(weights.probs, weights.counts, zeros)
                return cls.from_log(np.log(smooth), weights.counts)
            return weights
        if isinstance(weights, str):
            raise ValueError(
                f"a prior is weights, one a class, or Prior.uniform(num_classes); got {weights!r}"
            )
        if isinstance(weights, Mapping):
            weights = _in_order(weights, classes)
        numbers = as_numpy(weights).astype(np.float64)
        if numbers.ndim != 1 or not len(numbers):
            raise ValueError(f"a prior needs one weight a class, got shape {numbers.shape}")
        if not (np.isfinite(numbers) & (numbers >= 0)).all() or not numbers.sum() > 0:
            raise ValueError(
                "the weights of a prior must be finite, none negative and not all zero, "
                f"got {_shown(numbers)}"
            )
        whole = (numbers == np.rint(numbers)) & (numbers < MOST)
        counts = check_counts(numbers) if whole.all() else None
        if (numbers == 0).any():
            numbers = _without_zeros(numbers, counts, zeros)
        with np.errstate(divide="ignore"):
            return cls.from_log(np.log(numbers), counts)

    @classmethod
    def from_log(cls, log: ArrayLike, counts: Indices | None = None) -> Prior:
        """From natural logarithms of weights of any total; -inf for a class that cannot occur."""
        return cls(log_softmax(_check_log(log), axis=0), counts)

    @classmethod
    def from_labels(cls, labels: ArrayLike, num_classes: int, zeros: Zeros = "error") -> Prior:
        """The class frequencies of integer labels; `zeros` as in `of`."""
        return cls.of(np.bincount(check_labels(labels, num_classes), minlength=num_classes), zeros)

    @classmethod
    def uniform(cls, num_classes: int) -> Prior:
        """Every class equally likely."""
        if in_compiler():
            return _constant_uniform(num_classes)
        return cls.from_log(np.zeros(check_whole(num_classes, "num_classes", least=1)))

    @property
    def probs(self) -> Floats:
        """The probabilities, float64."""
        return np.asarray(np.exp(self.log))

    @property
    def num_classes(self) -> int:
        """How many classes there are, those with probability zero included."""
        return len(self.log)

    def tempered(self, power: float) -> Prior:
        """The prior proportional to p(y)**power: 1 gives the same, 0 uniform, -1 the inverse."""
        power = check_number(power, "power")
        if self.has_zeros and power <= 0:
            raise ValueError(
                f"a prior with zeros has no power {power}; make it with zeros='smooth' instead"
            )
        return Prior.from_log(power * self.log)

    def reweighted(self, weights: ArrayLike) -> Prior:
        """The prior proportional to w(y)·p(y): what class weights or a sampler turn p into."""
        factors = check_per_class(weights, self.num_classes, "weights")
        return Prior.from_log(self.log + np.log(factors))

    def smoothed(self, epsilon: float) -> Prior:
        """(1−ε)·p + ε/C: the prior of labels that are smoothed by ε in [0, 1), of C classes.

        >>> Prior.of([70, 25, 5]).smoothed(0.3)
        Prior([0.59, 0.275, 0.135])
        """
        epsilon = check_number(epsilon, "label_smoothing", least=0, below=1)
        if not epsilon:
            return self
        uniform = math.log(epsilon / self.num_classes)
        return Prior.from_log(np.logaddexp(self.log + math.log1p(-epsilon), uniform))

    def is_close(self, other: Prior, tolerance: float = 1e-6) -> bool:
        """Whether the two give every class the same probability, up to a relative tolerance."""
        return self is other or (
            self.num_classes == other.num_classes
            and np.allclose(self.log, other.log, rtol=0, atol=tolerance)
        )

    def __eq__(self, other: object) -> bool:
        return self.is_close(other, 1e-12) if isinstance(other, Prior) else NotImplemented

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Numbers:
        return np.asarray(self.probs, dtype=dtype)

    def __len__(self) -> int:
        return self.num_classes

    def __repr__(self) -> str:
        probs = self.probs
        if self.num_classes <= 10:
            return f"Prior([{', '.join(f'{p:.3g}' for p in probs.tolist())}])"
        return f"Prior({self.num_classes} classes, {probs.max():.3g} to {probs.min():.3g})"


# A prior, class counts or other weights in order, or by class index or name.
PriorLike: TypeAlias = Prior | ArrayLike | Mapping[int, float] | Mapping[str, float]


_constant_prior = constant_when_traced(Prior.of)
_constant_uniform = constant_when_traced(Prior.uniform)


def full_prior(prior: PriorLike, role: str) -> Prior:
    """A prior in which every class can occur, or a ValueError that names its role."""
    is_known = role == "known"  # that samples follow it: there is nothing to smooth
    full = Prior.of(prior, zeros="keep" if is_known else "error")
    if full.has_zeros and is_known:
        raise ValueError(
            "the known prior must give every class a probability above zero, "
            f"classes {_zero_classes(full.probs)} have none, and samples without them do not say "
            "what logits carry for them; give those a small probability, or leave those classes out"
        )
    if full.has_zeros:
        raise ValueError(
            f"the {role} prior must give every class a probability above zero, "
            f"classes {_zero_classes(full.probs)} have none; only a target prior may keep zeros, "
            "so make this one with Prior.of(counts, zeros='smooth') or leave those classes out"
        )
    return full


def target_prior(target: PriorLike | None, num_classes: int, what: str) -> Prior:
    """The target, uniform by default, or a ValueError if it is of other classes."""
    goal = Prior.uniform(num_classes) if target is None else Prior.of(target)
    check_same_classes(num_classes, goal, what, "the target prior")
    return goal


def check_same_classes(num_classes: int, prior: Prior, what: str, role: str = "the prior") -> None:
    """Raise unless the prior has that many classes; `what` opens the sentence ("weight has")."""
    if num_classes != prior.num_classes:
        raise ValueError(
            f"{what} {num_classes} classes but {role} has {prior.num_classes}; "
            "both must list the same classes in the same order"
        )


def _in_order(
    weights: Mapping[int, float] | Mapping[str, float], classes: Sequence[str] | None
) -> list[float]:
    """Weights by class index or name, as a list in the order of the classes."""
    by_class: dict[Any, float] = dict(weights)
    order = range(len(by_class)) if classes is None else classes
    if classes is not None and all(isinstance(key, int) for key in by_class):
        order = range(len(classes))
    if by_class.keys() != set(order):
        expected = (
            f"class indices from 0 to {len(by_class) - 1}, or names with classes=[...] in the "
            "order of the logits' columns"
            if classes is None
            else f"each of the {len(classes)} classes once, with 0 for those without samples"
        )
        raise ValueError(
            f"weights by class must name {expected}; got {list(by_class)!r:.80}; leave none out"
        )
    return [by_class[key] for key in order]


def _check_log(log: ArrayLike) -> Floats:
    """Logarithms of weights as float64, or a ValueError."""
    numbers = as_numpy(log).astype(np.float64)
    if numbers.ndim != 1 or not len(numbers) or not np.isfinite(numbers.max()):
        raise ValueError(
            "a prior needs one logarithm a class, finite or -inf and not all -inf, "
            f"got {_shown(numbers)} of shape {numbers.shape}; "
            "make priors with Prior.of, Prior.from_labels or Prior.uniform"
        )
    return numbers


def _without_zeros(weights: Floats, counts: Indices | None, zeros: Zeros) -> Floats:
    if zeros == "keep":
        return weights
    if zeros == "error":
        raise ValueError(
            f"every class needs a weight above zero, classes {_zero_classes(weights)} have none; "
            "say zeros='smooth' to add one half to every count, "
            "or zeros='keep' for a target prior in which they cannot occur"
        )
    if counts is None:
        raise ValueError(
            f"zeros='smooth' adds one half to every class count, but {_shown(weights)} are no "
            "counts, or a prior that was not made from counts; give the counts"
        )
    return np.asarray(counts + 0.5)


def _zero_classes(weights: Floats) -> str:
    at = np.flatnonzero(weights == 0).tolist()
    return ", ".join(map(str, at[:10])) + (f" and {len(at) - 10} more" if len(at) > 10 else "")


def _shown(weights: Floats) -> str:
    values = [f"{w:g}" for w in weights.flatten()[:10].tolist()]
    return f"[{', '.join(values)}{', ...' if weights.size > 10 else ''}]"
