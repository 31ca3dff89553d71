r"""LabelOdds: p(yes) of each of L labels that a sample may have together, kept as log odds.

    logit_l = log p(y_l = 1) − log p(y_l = 0),        a prior over no and yes for each label

One logit z a label is the pair of logits [0, z] of a prior [1 − p, p], so all that is true of a
`Prior` of two classes is true of every label by itself. What changes the odds of yes:

    positives that weigh w           odds · w
    keeping positives with a rate of r⁺, negatives with r⁻           odds · r⁺/r⁻
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, TypeAlias

import numpy as np

from longtail.core.arrays import ArrayLike, Floats, Indices, Numbers, as_numpy
from longtail.core.label_matrix import check_label_matrix
from longtail.core.labels import check_counts
from longtail.core.numbers import check_choice, check_number, check_per_class, check_whole
from longtail.core.prior import Prior

Zeros: TypeAlias = Literal["error", "smooth"]


@dataclass(frozen=True, eq=False, repr=False)
class LabelOdds:
    """The prior of yes for each of several yes/no labels. Two are equal if all their labels are.

    >>> odds = LabelOdds.from_counts([10, 500], total=1000)
    >>> odds
    LabelOdds([0.01, 0.5])
    >>> odds.reweighted([99, 1])                       # what pos_weight makes of it
    LabelOdds([0.5, 0.5])
    >>> odds.sampled(positives=1.0, negatives=0.1)     # one in ten of the others kept
    LabelOdds([0.0917, 0.909])
    """

    logit: Floats  # log p(yes) − log p(no), finite
    positives: Indices | None = None  # that it was made from
    total: int | None = None  # of how many samples

    def __post_init__(self) -> None:
        logit = as_numpy(self.logit).astype(np.float64)
        if logit.ndim != 1 or not len(logit) or not np.isfinite(logit).all():
            raise ValueError(
                "LabelOdds(logit) takes one finite number a label, log p(yes) − log p(no), got "
                f"{_shown(logit)} of shape {logit.shape}; make odds with LabelOdds.of, "
                "LabelOdds.from_counts or LabelOdds.from_labels"
            )
        object.__setattr__(self, "logit", logit)

    @classmethod
    def of(cls, probs: LabelOddsLike, classes: Sequence[str] | None = None) -> LabelOdds:
        """From the probability of yes of each label, in order or by name; odds as they are.

        Args:
            probs: Each above 0 and below 1.
            classes: The names of the labels in order, for probabilities by name.
        """
        if isinstance(probs, LabelOdds):
            return probs
        if isinstance(probs, Prior):
            raise ValueError(
                f"yes/no labels have a probability of yes each, which need not sum to one, and "
                f"{probs!r} is a prior over classes of which each sample has one; give "
                "LabelOdds.of(probs) or LabelOdds.from_counts(positives, total)"
            )
        if isinstance(probs, Mapping):
            probs = _in_order(probs, classes)
        if isinstance(probs, str):
            raise ValueError(f"odds are probabilities of yes, one a label, got {probs!r}")
        numbers = as_numpy(probs).astype(np.float64)
        if numbers.ndim != 1 or not len(numbers):
            raise ValueError(f"odds need one probability a label, got shape {numbers.shape}")
        if not ((numbers > 0) & (numbers < 1)).all():
            raise ValueError(
                "the probability of yes must be above 0 and below 1 for every label, got "
                f"{_shown(numbers)}; counts of positives are LabelOdds.from_counts(positives, "
                "total), with zeros='smooth' where a label is never or always yes"
            )
        return cls(np.log(numbers) - np.log1p(-numbers))

    @classmethod
    def from_counts(cls, positives: ArrayLike, total: int, zeros: Zeros = "error") -> LabelOdds:
        """From how many of `total` samples have each label.

        Args:
            positives: One number a label.
            total: How many samples there are.
            zeros: What to do with a label that no sample has, or every sample. "error" refuses it;
                "smooth" adds one half to the positives and the negatives of every label.
        """
        check_choice(zeros, Zeros, "zeros")
        counts, size = check_counts(positives), check_whole(total, "total", least=1)
        if (counts > size).any():
            at = int((counts > size).argmax())
            raise ValueError(
                f"label {at} has {counts[at]} positives of {size} samples; give total=, the number "
                "of samples, not of labels"
            )
        extreme = (counts == 0) | (counts == size)
        if extreme.any() and zeros == "error":
            labels = ", ".join(map(str, np.flatnonzero(extreme)[:10].tolist()))
            raise ValueError(
                f"every label must be yes for some samples and no for others, labels "
                f"{labels} are not; leave them out, or say zeros='smooth' to "
                "add one half to the positives and the negatives of every label"
            )
        half = 0.5 if zeros == "smooth" else 0.0
        return cls(np.log(counts + half) - np.log(size - counts + half), counts, size)

    @classmethod
    def from_labels(cls, labels: object, zeros: Zeros = "error") -> LabelOdds:
        """From labels of 0 and 1, a column a label; a vector is one label. `zeros` as in counts.

        >>> LabelOdds.from_labels([[1, 0], [0, 0], [0, 1], [0, 1]])
        LabelOdds([0.25, 0.5])
        """
        matrix = check_label_matrix(labels)
        return cls.from_counts(matrix.sum(axis=0, dtype=np.int64), len(matrix), zeros)

    @classmethod
    def even(cls, num_labels: int) -> LabelOdds:
        """Yes as likely as no for every label: what errors of both kinds weigh alike under."""
        return cls(np.zeros(check_whole(num_labels, "num_labels", least=1)))

    @property
    def probs(self) -> Floats:
        """The probabilities of yes, float64."""
        return np.exp(-np.logaddexp(0, -self.logit))

    @property
    def num_labels(self) -> int:
        """How many labels there are."""
        return len(self.logit)

    def tempered(self, power: float) -> LabelOdds:
        """Odds to a power: 1 gives the same, 0 even ones, -1 those of no."""
        return LabelOdds(check_number(power, "power") * self.logit)

    def reweighted(self, pos_weight: ArrayLike | float) -> LabelOdds:
        """What weights of the positives make of them; one number a label, or one for all."""
        return LabelOdds(self.logit + np.log(self._per_label(pos_weight, "pos_weight")))

    def sampled(
        self, positives: ArrayLike | float = 1.0, negatives: ArrayLike | float = 1.0
    ) -> LabelOdds:
        """What is left by keeping so large a share of the positives, and of the negatives.

        More than 1 means that samples are drawn several times.
        """
        kept = self._per_label(positives, "positives"), self._per_label(negatives, "negatives")
        return LabelOdds(self.logit + np.log(kept[0]) - np.log(kept[1]))

    def taken(self, labels: Sequence[int] | Indices) -> LabelOdds:
        """Those of some of the labels, by position."""
        at = np.asarray(labels, np.int64)
        return LabelOdds(
            self.logit[at], None if self.positives is None else self.positives[at], self.total
        )

    def is_close(self, other: LabelOdds, tolerance: float = 1e-6) -> bool:
        """Whether the two have the same log odds for every label, up to a tolerance."""
        return self is other or (
            self.num_labels == other.num_labels
            and np.allclose(self.logit, other.logit, rtol=0, atol=tolerance)
        )

    def _per_label(self, values: ArrayLike | float, name: str) -> Floats:
        numbers = np.asarray(values) if np.ndim(values) == 0 else as_numpy(values)  # type: ignore[arg-type]
        if numbers.ndim == 0:
            numbers = np.full(self.num_labels, numbers)
        return check_per_class(numbers, self.num_labels, name, what="labels")

    def __eq__(self, other: object) -> bool:
        return self.is_close(other, 1e-12) if isinstance(other, LabelOdds) else NotImplemented

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        raise ValueError(
            f"{self!r} is of yes/no labels, and no prior over classes of which each sample has "
            'one; it moves scores made with family="sigmoid"'
        )

    def __len__(self) -> int:
        return self.num_labels

    def __repr__(self) -> str:
        probs = self.probs
        if self.num_labels <= 10:
            return f"LabelOdds([{', '.join(f'{p:.3g}' for p in probs.tolist())}])"
        return f"LabelOdds({self.num_labels} labels, {probs.max():.3g} to {probs.min():.3g})"


# Odds, or the probability of yes of each label in order or by name.
LabelOddsLike: TypeAlias = LabelOdds | Prior | ArrayLike | Mapping[str, float]


def check_same_labels(num_labels: int, odds: LabelOdds, what: str, role: str = "the odds") -> None:
    """Raise unless the odds have that many labels; `what` opens the sentence ("logits have")."""
    if num_labels != odds.num_labels:
        raise ValueError(
            f"{what} {num_labels} labels but {role} {odds.num_labels}; both must list the same "
            "labels in the same order"
        )


def _in_order(probs: Mapping[str, float], classes: Sequence[str] | None) -> list[float]:
    if classes is None or probs.keys() != set(classes):
        raise ValueError(
            f"probabilities by name must name each label once and no other, got {list(probs)!r:.80}"
            f" for {'labels without names' if classes is None else list(classes)!r:.80}"
        )
    return [probs[name] for name in classes]


def _shown(values: Numbers) -> str:
    first = [f"{value:g}" for value in values.flatten()[:10].tolist()]
    return f"[{', '.join(first)}{', ...' if values.size > 10 else ''}]"
