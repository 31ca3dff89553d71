"""Prior: p(y) over the classes, the value everything in longtail is tied to.

Kept as normalised log-probabilities in float64: a ratio of two classes survives any product,
power or difference of priors, where float32 probabilities of rare classes would not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from longtail.core.arrays import ArrayLike, as_tensor
from longtail.core.labels import check_counts, check_labels

Zeros: TypeAlias = Literal["error", "smooth", "keep"]


@dataclass(frozen=True, eq=False, repr=False)
class Prior:
    """A label prior.

    Attributes:
        log: Natural logarithms of the probabilities, float64, on the CPU.
        counts: The class counts it was made from, or None if it was not made from counts.

    >>> prior = Prior.of([70, 25, 5])
    >>> prior
    Prior([0.7, 0.25, 0.05])
    >>> prior.tempered(0.5).reweighted([1, 1, 2])
    Prior([0.469, 0.28, 0.251])
    """

    log: Tensor
    counts: Tensor | None = None

    def __post_init__(self) -> None:
        log = self.log.detach().to("cpu", torch.float64)
        if log.dim() != 1 or not len(log) or log.isnan().any() or not log.max().isfinite():
            raise ValueError(
                "a prior needs one log-probability a class, finite or -inf and not all -inf, "
                f"got {self.log}; make priors with Prior.of, Prior.from_labels or Prior.uniform"
            )
        object.__setattr__(self, "log", torch.log_softmax(log, dim=0))

    @classmethod
    def of(cls, weights: PriorLike, zeros: Zeros = "error") -> Prior:
        """From class counts, probabilities or any non-negative weights.

        Whole numbers are taken for counts and kept as `counts`.

        Args:
            weights: One number a class. A Prior is returned as it is.
            zeros: What to do with a class of weight zero. "error" refuses it; "smooth" adds one
                half to every count (Jeffreys' rule; the kept `counts` stay as given); "keep" means
                that the class cannot occur, which only a target prior may say.
        """
        if isinstance(weights, Prior):
            return weights
        if zeros not in ("error", "smooth", "keep"):
            raise ValueError(f'zeros must be "error", "smooth" or "keep", got {zeros!r}')
        given = as_tensor(weights).detach().to("cpu", torch.float64)
        if given.dim() != 1 or not len(given):
            raise ValueError(
                f"a prior needs one weight a class, got an array of shape {tuple(given.shape)}"
            )
        if not (given.isfinite() & (given >= 0)).all() or not given.sum() > 0:
            raise ValueError(
                "the weights of a prior must be finite, none negative and not all zero, "
                f"got {_shown(given)}"
            )
        counts = check_counts(given) if (given == given.round()).all() else None
        if (given == 0).any():
            given = _without_zeros(given, counts, zeros)
        return cls(given.log(), counts)

    @classmethod
    def from_labels(cls, labels: ArrayLike, num_classes: int, zeros: Zeros = "error") -> Prior:
        """The class frequencies of integer labels; `zeros` as in `of`."""
        return cls.of(
            torch.bincount(check_labels(labels, num_classes), minlength=num_classes), zeros
        )

    @classmethod
    def uniform(cls, num_classes: int) -> Prior:
        """Every class equally likely."""
        if num_classes < 1:
            raise ValueError(f"a prior needs at least one class, got {num_classes}")
        return cls(torch.zeros(num_classes, dtype=torch.float64))

    @property
    def probs(self) -> Tensor:
        """The probabilities, float64."""
        return self.log.exp()

    @property
    def num_classes(self) -> int:
        """How many classes there are, those with probability zero included."""
        return len(self.log)

    @property
    def has_zeros(self) -> bool:
        """Whether some class cannot occur."""
        return bool(self.log.isinf().any())

    def tempered(self, power: float) -> Prior:
        """The prior proportional to p(y)**power: 1 gives the same, 0 uniform, -1 the inverse."""
        if self.has_zeros and power <= 0:
            raise ValueError(
                f"a prior with zeros has no power {power}; make it with zeros='smooth' instead"
            )
        return Prior(power * self.log)

    def reweighted(self, weights: ArrayLike) -> Prior:
        """The prior proportional to w(y)·p(y): what class weights or a sampler turn p into."""
        factors = as_tensor(weights).detach().to("cpu", torch.float64)
        check_same_classes(len(factors), self, "weights have")
        if not (factors.isfinite() & (factors > 0)).all():
            raise ValueError(
                f"weights must be positive and finite, one a class, got {_shown(factors)}"
            )
        return Prior(self.log + factors.log())

    def is_close(self, other: Prior, tolerance: float = 1e-6) -> bool:
        """Whether the two give every class the same probability, up to a relative tolerance."""
        return self.num_classes == other.num_classes and torch.allclose(
            self.log, other.log, rtol=0, atol=tolerance
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.asarray(self.probs.numpy(), dtype=dtype)

    def __len__(self) -> int:
        return self.num_classes

    def __repr__(self) -> str:
        probs = self.probs
        if self.num_classes <= 10:
            return f"Prior([{', '.join(f'{p:.3g}' for p in probs.tolist())}])"
        return f"Prior({self.num_classes} classes, {probs.max():.3g} to {probs.min():.3g})"


PriorLike: TypeAlias = Prior | ArrayLike


def full_prior(prior: PriorLike, role: str) -> Prior:
    """A prior in which every class can occur, or a ValueError that names its role."""
    full = Prior.of(prior)
    if full.has_zeros:
        raise ValueError(
            f"the {role} prior must give every class a probability above zero, "
            f"classes {_zero_classes(full.probs)} have none; only a target prior may keep zeros, "
            "so make this one with Prior.of(counts, zeros='smooth') or leave those classes out"
        )
    return full


def check_same_classes(num_classes: int, prior: Prior, what: str) -> None:
    """Raise unless the prior has that many classes; `what` opens the sentence."""
    if num_classes != prior.num_classes:
        raise ValueError(
            f"{what} {num_classes} classes but the prior has {prior.num_classes}; "
            "both must list the same classes in the same order"
        )


def _without_zeros(weights: Tensor, counts: Tensor | None, zeros: Zeros) -> Tensor:
    if zeros == "keep":
        return weights
    if zeros == "smooth" and counts is not None:
        return weights + 0.5
    if zeros == "smooth":
        raise ValueError(
            "zeros='smooth' adds one half to every class count, "
            f"but these weights are no counts: {_shown(weights)}; give counts"
        )
    raise ValueError(
        f"every class needs a weight above zero, classes {_zero_classes(weights)} have none; "
        "say zeros='smooth' to add one half to every count, "
        "or zeros='keep' for a target prior in which they cannot occur"
    )


def _zero_classes(weights: Tensor) -> str:
    at = (weights == 0).nonzero().flatten().tolist()
    return ", ".join(map(str, at[:10])) + (f" and {len(at) - 10} more" if len(at) > 10 else "")


def _shown(weights: Tensor) -> str:
    values = [f"{w:g}" for w in weights.flatten()[:10].tolist()]
    return f"[{', '.join(values)}{', ...' if weights.numel() > 10 else ''}]"
