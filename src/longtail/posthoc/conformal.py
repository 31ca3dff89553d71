r"""Sets of classes that hold the true one as often as asked: conformal prediction for long tails.

Class y is in the set of x where its probability under the uniform prior, p(y|x), is q_y or more.
With F_c(s) the share of the validation samples of c whose own class has a probability above s,

    q_y = min { s : L_y(s) < level },        L_y(s) = Σ_c a_yc F_c(s),

where F_y counts the sample that is asked about among n_y + 1, as one with no probability at all:
that, and the strict inequality, is the correction for a finite sample. The weights decide what is
covered as often as `coverage` says:

    marginal   a_y = t, the target             Σ_y t(y) · coverage_y, for t uniform macro-coverage
    class      a_y = 1 for y alone             every class; sets are large where n_y is small
    tail       a_y = (1 − λ_y) t + λ_y 1_y     macro-coverage, classes the more alike the larger n_y

with λ_y = n_y / (n_y + 40). What lies between two quantiles that cover (Ding et al., 2025) need not
cover as often, and here covers more: so the level of `tail` is not the coverage but what gives it.
Each validation sample has its u_i = L_y(s_i) by the other samples, and these are covered marginally
in their turn. A class without samples has its `marginal` threshold. The 40 was chosen on training
images of CIFAR-100: from 20 samples a class sets are about two thirds as large as those of `class`,
and classes are covered more alike than by `marginal` (results/conformal.md).

Samples of class y count t(y)/n_y, which is right under label shift from the validation samples to
the target (Podkopaev and Ramdas, 2021), whatever the labels of the validation samples follow.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias, cast

import numpy as np

from longtail.core import Prior, PriorLike, Scores
from longtail.core.arrays import ArrayLike, ArrayT, Floats, Indices, as_numpy, like
from longtail.core.files import read_whole, written_whole
from longtail.core.labels import check_counts
from longtail.core.numbers import check_choice, check_number, check_per_class, check_seed
from longtail.core.prior import target_prior
from longtail.core.tensor_file import Format, Versioned, decode_header
from longtail.posthoc.adjuster_file import written_out
from longtail.posthoc.validation import Validation, check_validation

Mode: TypeAlias = Literal["marginal", "class", "tail"]

_PULL = 40  # samples of a class that count as much as all others do
_NEVER = 2.0  # the threshold of a class that the target rules out
_ROUNDING = 1e-12
_FORMAT = Format("sets", "ConformalSets.save")
_MOST_BYTES = 2**28


class _Content(Versioned, forbid_unknown_fields=True):
    mode: Mode
    coverage: float
    thresholds: list[float]
    counts: list[int]
    target: list[float]
    classes: list[str] | None = None


@dataclass(frozen=True, init=False, eq=False)
class ConformalSets:
    """Makes of scores the sets of classes that hold the true one as often as `coverage` says.

    >>> logits = [[2.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, 2.0], [1.0, 0.0]] * 10
    >>> validation = Scores(logits, [0, 0, 0, 1, 1, 1] * 10, carried=[1, 1])
    >>> sets = ConformalSets.fit(validation, coverage=0.6)
    >>> sets.thresholds.tolist()
    [0.731, 0.731]
    >>> sets(Scores([[3.0, 0.0], [0.0, 0.5]], carried=[1, 1])).tolist()
    [[True, False], [False, False]]
    """

    thresholds: Floats  # q_y: 0 is always in the set, above 1 never
    coverage: float
    mode: Mode
    target: Prior  # that coverage is meant under
    counts: Indices  # validation samples of each class
    classes: tuple[str, ...] | None

    def __init__(
        self,
        thresholds: ArrayLike,
        coverage: float,
        mode: Mode = "tail",
        target: PriorLike | None = None,
        counts: ArrayLike | None = None,
        classes: tuple[str, ...] | None = None,
    ) -> None:
        size = len(as_numpy(thresholds))
        if classes is not None and len(classes) != size:
            raise ValueError(f"there are {size} thresholds, but {len(classes)} class names")
        vars(self).update(
            thresholds=check_per_class(thresholds, size, "thresholds", "zero"),
            coverage=check_asked(coverage, mode),
            mode=mode,
            target=target_prior(target, size, "the sets have"),
            counts=check_counts(np.zeros(size) if counts is None else counts, size),
            classes=classes,
        )

    @classmethod
    def fit(
        cls,
        validation: Scores,
        coverage: float = 0.9,
        mode: Mode = "tail",
        target: PriorLike | None = None,
        seed: int | None = None,
    ) -> Self:
        """The sets that labelled scores ask for, of samples that the model was not trained on.

        Args:
            validation: Their labels may follow any prior; it must be known what the logits carry.
            coverage: How often the true class is to be in its set.
            mode: What is covered so often: "marginal" and "tail" samples that follow the target,
                the latter with classes more alike; "class" those of each class.
            target: Uniform by default, which is macro-coverage: every class counts the same.
                For samples that follow another prior that one, known or estimated
                (`shift.estimate_prior`).
            seed: Draws by how much each threshold is moved towards the next, so that coverage is
                not above what is asked for: exact on average where all classes have as many
                validation samples, and somewhat below where some have few. Without one nothing
                is random, and coverage is at least that.
        """
        checked = check_validation(validation, "a set")
        check_asked(coverage, mode)
        size = validation.num_classes
        goal = target_prior(target, size, "the scores have")
        counts = np.bincount(checked.labels, minlength=size)
        rows = np.arange(len(checked.labels)), checked.labels
        own = as_numpy(_uniform_probs(validation))[rows].astype(np.float64)
        chance = np.zeros(size)
        if seed is not None:
            chance = np.random.default_rng(check_seed(seed)).random(size)
        alone = {"marginal": 0.0, "class": 1.0}.get(mode)
        mix = counts / (counts + _PULL) if alone is None else np.full(size, alone)
        levels, none = np.full(size, coverage), np.zeros(size)
        ranks = _Ranks.of(-own, checked, goal)
        if coverage == 1:
            reach = none
        elif mode != "tail":
            reach = ranks.reach(mix, levels, chance)
        else:
            covered = _Ranks.of(ranks.mixed(mix), checked, goal).reach(none, levels, chance)
            reach = ranks.reach(mix, covered + 2 * _ROUNDING, none)  # the last one is covered, too
            if not counts.all():  # which there is nothing to mix with
                reach = np.where(counts > 0, reach, ranks.reach(none, levels, chance))
        thresholds = np.where(goal.probs > 0, np.clip(-reach, 0.0, _NEVER) + 0.0, _NEVER)
        return cls(thresholds, coverage, mode, goal, counts, validation.classes)

    def __call__(self, scores: Scores[ArrayT]) -> ArrayT:
        """Of each sample and class whether it is in the set: (N, C), boolean, in their kind."""
        if scores.num_classes != len(self.thresholds):
            raise ValueError(
                f"these sets are of {len(self.thresholds)} classes, the scores have "
                f"{scores.num_classes}; give scores of the same model"
            )
        if self.classes and scores.classes and self.classes != scores.classes:
            raise ValueError(
                f"these sets are of the classes {', '.join(self.classes):.200}, but the scores of "
                f"{', '.join(scores.classes):.200}; both must have the same in the same order"
            )
        probs: Any = _uniform_probs(scores)
        return cast(ArrayT, probs >= like(self.thresholds, probs))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one JSON file that a person can read; it replaces an existing one whole."""
        content = _Content(
            version=_FORMAT.versions[-1],
            mode=self.mode,
            coverage=self.coverage,
            thresholds=self.thresholds.tolist(),
            counts=self.counts.tolist(),
            target=self.target.probs.tolist(),
            classes=None if self.classes is None else list(self.classes),
        )
        with written_whole(path) as part:
            part.write_text(written_out(content) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ConformalSets:
        """Read what `save` wrote, or raise a ValueError that says what is wrong with it."""
        path = Path(path)
        if not path.is_file():
            raise FileNotFoundError(f"there is no file of sets at {path}")
        held = decode_header(read_whole(path, _MOST_BYTES), _Content, path, _FORMAT)
        try:
            target, names = Prior.of(held.target, zeros="keep"), held.classes
            return cls(
                held.thresholds,
                held.coverage,
                held.mode,
                target,
                held.counts,
                None if names is None else tuple(names),
            )
        except ValueError as error:
            raise ValueError(f"{path} holds values that cannot be: {error}") from error


@dataclass(frozen=True, eq=False)
class _Ranks:
    """Scores of validation samples, the higher the less likely, that are covered from below."""

    values: Floats  # different ones, ascending
    at: Indices  # which of them each sample has
    labels: Indices
    weights: Floats  # of the samples, summing to one: t(y)/n_y
    shares: Floats  # the target, over the classes that have samples

    @classmethod
    def of(cls, scores: Floats, samples: Validation, target: Prior) -> _Ranks:
        values, at = np.unique(scores, return_inverse=True)
        labels, weights = samples.labels, samples.weights_to(target)
        present = np.bincount(labels, minlength=target.num_classes) > 0
        return cls(values, at, labels, weights, target.probs / target.probs[present].sum())

    def below(self, weights: Floats, at: Indices) -> Floats:
        """By value, the weight of the samples that have a lower one."""
        mass = np.bincount(at, weights, len(self.values))
        return np.concatenate([[0.0], mass.cumsum()[:-1]])

    def own(self, label: int) -> tuple[Floats, int]:
        """By value, how many samples of a class have a lower one; and how many there are."""
        at = self.at[self.labels == label]
        return self.below(np.ones(len(at)), at), len(at)

    def mixed(self, mix: Floats) -> Floats:
        """The u of each sample: what of its class's weights lies below it, itself left out."""
        whole = self.below(self.weights, self.at)[self.at]
        for label in np.unique(self.labels):
            mine = self.labels == label
            own, size = self.own(label)
            share = own[self.at[mine]] / size
            whole[mine] += mix[label] * (share - whole[mine])
        return whole

    def reach(self, mix: Floats, levels: Floats, chance: Floats) -> Floats:
        """For each class the highest value whose L is below the level; infinite if all are."""
        whole, reached = self.below(self.weights, self.at), np.empty(len(mix))
        for label, (part, level, drawn) in enumerate(zip(mix, levels, chance, strict=True)):
            own, size = self.own(label)
            if size:
                mass = ((1 - part) * self.shares[label] + part) / (size + 1)
                apart = mass - (1 - part) * self.shares[label] / size
                lower = (1 - part) * whole + apart * own
            else:
                mass = part + (1 - part) * self.shares[label] / (1 + self.shares[label])
                lower = (1 - part) * whole / (1 + self.shares[label])
            # Above all values lies what is left but the sample itself.
            ends = np.append(lower, 1 - mass) + drawn * mass
            allowed = int(np.searchsorted(ends, level - _ROUNDING))
            values = np.append(self.values, np.inf)
            reached[label] = values[allowed - 1] if allowed else -np.inf
        return reached


def _uniform_probs(scores: Scores[ArrayT]) -> ArrayT:
    return scores.under(Prior.uniform(scores.num_classes)).probs()


def check_asked(coverage: float, mode: Mode) -> float:
    """The coverage, or a ValueError if such sets cannot be made."""
    check_choice(mode, Mode, "mode")
    if check_number(coverage, "coverage", 0, 1) == 0:
        raise ValueError("coverage must be above 0, got 0; sets that are all empty cover nothing")
    return coverage
