"""What is to be said of scores before and after: every number of the page, and no word of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from longtail.core import GroupEdges, GroupsLike, Prior, Scores
from longtail.core.arrays import as_numpy
from longtail.flows.carried_check import CarriedCheck, check_carried, estimated_prior, over_uniform
from longtail.flows.changes import GROUPS, Change, Outcome, change_of, shown_accuracies
from longtail.flows.label_profile import Profile, profile_of
from longtail.flows.paths import MOST_SAMPLES, TargetPath, TauPath, target_path, tau_path
from longtail.flows.results import Result
from longtail.flows.samples import BeforeAfter, Mistakes, Standing, mistakes_of
from longtail.metrics import Accumulator, Difference, Reliability, Sanity, ece, margins
from longtail.shift import PriorEstimate
from longtail.stats import Interval

_MISCALIBRATED = 0.05  # an ECE so much above what chance gives is mentioned
# The spread of a class with one or two samples is mostly borrowed from the others: right where
# classes vary alike, which cannot be seen if half of them have no more.
_TOO_FEW = 3
_IN_A_BIN = 100  # samples on average: the accuracy of such a bin is known to ten points
_FEW = 5  # of a class with fewer samples an interval knows little
SHOWN = (*GROUPS, "worst_class", "ece", "nll")  # beside the accuracies

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Judgement(Result):
    """Every number that is said of samples before and after."""

    samples: BeforeAfter  # what is judged; where the samples are very many, only some of them
    comparison: Difference  # the sums over all samples, from which the metrics follow
    scores_name: str = "these scores"  # what the scores are called
    command: str = "longtail.judge"  # what made it

    kind: ClassVar[str] = "scores"

    @classmethod
    def of(cls, samples: BeforeAfter) -> Judgement:
        """The judgement of all of the samples."""
        both = samples.before, samples.after
        return cls(samples, Difference.of(*both, samples.goal, samples.counts, samples.edges))

    @cached_property
    def label_counts(self) -> npt.NDArray[np.int64]:
        """How many of all samples are of each class."""
        return self.comparison.before.samples.astype(np.int64)

    @property
    def num_samples(self) -> int:
        """How many samples there are in all."""
        return int(self.label_counts.sum())

    @property
    def absent_classes(self) -> int:
        """How many classes have no sample."""
        return int((self.label_counts == 0).sum())

    @property
    def few_classes(self) -> int:
        """How many classes have samples, but fewer than five."""
        return int(((self.label_counts > 0) & (self.label_counts < _FEW)).sum())

    @cached_property
    def train(self) -> Profile | None:
        """How long the tail of the training set was; None if its counts are not known."""
        counts, classes = self.samples.counts, self.samples.classes
        return None if counts is None or not counts.any() else profile_of(counts, classes)

    @cached_property
    def shares(self) -> dict[str, Floats]:
        """What each class counts for in each accuracy that there is."""
        return self.comparison.before.class_shares

    @property
    def target(self) -> Prior | None:
        """What accuracy and calibration are meant under; None: the samples as they are."""
        return self.comparison.before.target

    @property
    def main_metric(self) -> str:
        """The accuracy that was asked for."""
        return self.accuracies[0]

    @cached_property
    def accuracies(self) -> tuple[str, ...]:
        """The accuracies that are shown, the main one first."""
        return tuple(shown_accuracies(self.shares, self.target))

    @cached_property
    def before(self) -> dict[str, Interval]:
        """Every metric before, with its interval."""
        return self.comparison.before.metrics()

    @cached_property
    def after(self) -> dict[str, Interval]:
        """Every metric after, with its interval."""
        return self.comparison.after.metrics()

    @cached_property
    def gains(self) -> dict[str, Interval]:
        """By how much each accuracy rose, and log-loss and Brier score fell, paired."""
        return self.comparison.gains()

    @property
    def gain(self) -> Interval:
        """By how much the main accuracy rose."""
        return self.gains[self.main_metric]

    @property
    def sanity(self) -> Sanity:
        """Whether these scores are better than those of no model."""
        return self.comparison.sanity

    @cached_property
    def metrics(self) -> tuple[str, ...]:
        """The metrics of the first table that there are, from top to bottom."""
        keys = (*self.accuracies, *SHOWN)
        return tuple(k for k in keys if k in self.before and self.before[k].value is not None)

    @cached_property
    def changes(self) -> dict[str, Change]:
        """The first table: each of the metrics before and after, and which way it went."""
        few = self.has_too_few
        return {
            key: change_of(key, self.before[key], self.after[key], self.gains.get(key), not few)
            for key in self.metrics
        }

    @cached_property
    def has_too_few(self) -> bool:
        """Whether half of the classes have so few samples that intervals say nothing."""
        present = self.label_counts[self.label_counts > 0]
        return bool(2 * int((present < _TOO_FEW).sum()) >= len(present))

    @cached_property
    def outcome(self) -> Outcome:
        """What came of it."""
        if not self.comparison.changed.any():
            was, now = (side["nll"].value or 0.0 for side in (self.before, self.after))
            return Outcome.SAME_AND_SURER if now < was else Outcome.SAME
        if self.has_too_few:
            return Outcome.TOO_FEW
        if self.gain.is_above_zero:
            return Outcome.GAIN
        return Outcome.LOSS if self.gain.is_below_zero else Outcome.CHANCE

    @cached_property
    def miscalibration(self) -> float | None:
        """The calibration error of the scores to be used, where it is more than chance gives."""
        stays = self.outcome in (Outcome.SAME, Outcome.LOSS) or not self.samples.is_changed
        sums = self.comparison.before if stays else self.comparison.after
        error = ece(sums)
        return error if error - sums.ece_by_chance >= _MISCALIBRATED else None

    @cached_property
    def sums(self) -> dict[str, Accumulator]:
        """The sums over all samples by side; one side where nothing was done."""
        both = (self.comparison.before, self.comparison.after)
        return dict(zip(self.samples.sides, both, strict=False))

    @cached_property
    def recalls(self) -> dict[str, Floats]:
        """The accuracy of each class by side; NaN for a class without samples."""
        return {name: sums.recalls for name, sums in self.sums.items()}

    @cached_property
    def false_positives(self) -> dict[str, Floats]:
        """By side, how many samples of other classes are taken for each class."""
        return {name: sums.false_positives for name, sums in self.sums.items()}

    @cached_property
    def reliability(self) -> dict[str, Reliability]:
        """Accuracy by confidence and side under the target, in as many bins as samples fill."""
        size = int(self.label_counts.sum())
        bins = next((bins for bins in (20, 10) if size >= bins * _IN_A_BIN), 5)
        return {name: sums.reliability.merged(bins) for name, sums in self.sums.items()}

    @cached_property
    def eces(self) -> dict[str, float]:
        """The calibration error of each side under the target, of 20 bins."""
        return {name: ece(sums) for name, sums in self.sums.items()}

    @cached_property
    def margins(self) -> dict[str, Floats]:
        """By side, each sample's logit of its class minus the highest other one."""
        return {name: as_numpy(margins(scores)) for name, scores in self.samples.sides.items()}

    @cached_property
    def carried_check(self) -> CarriedCheck:
        """What the logits carried before, declared and measured."""
        return check_carried(self.samples)

    @cached_property
    def carried_logs(self) -> dict[str, Floats | None]:
        """Declared, measured and target prior: the log of each share over that of uniform."""
        check, target = self.carried_check, self.samples.goal
        priors = {"declared": check.declared, "measured": check.measured, "target": target}
        return {name: None if p is None else over_uniform(p) for name, p in priors.items()}

    @property
    def standing(self) -> Standing:
        """Where the logits before stand, seen from the target."""
        return Standing.of(self.samples.before.carried, self.samples.goal)

    @property
    def estimate(self) -> PriorEstimate | None:
        """The prior of the samples, estimated without their labels; None if it cannot be."""
        return None if isinstance(self._estimated, str) else self._estimated

    @property
    def estimate_problem(self) -> str:
        """Why that prior cannot be estimated; empty if it can."""
        return self._estimated if isinstance(self._estimated, str) else ""

    @cached_property
    def _estimated(self) -> PriorEstimate | str:
        return estimated_prior(self.samples)

    @property
    def is_too_large_for_tau(self) -> bool:
        """Whether there are so many samples that no page could hold what becomes of each."""
        return len(self.samples.labels) > MOST_SAMPLES

    @cached_property
    def tau_path(self) -> TauPath | None:
        """Accuracy at every τ; None without a known prior or with too many samples."""
        return tau_path(self.samples, self.target, self.shares, (*self.accuracies, *GROUPS))

    @cached_property
    def target_path(self) -> TargetPath | None:
        """Accuracy and calibration as the labels' prior moves; None without a known prior."""
        return target_path(self.samples)

    @cached_property
    def mistakes(self) -> Mistakes:
        """Which classes are taken for which."""
        return mistakes_of(self.samples)

    def as_json(self) -> dict[str, Any]:
        """Whether to trust it, every metric before and after, and the gains with intervals."""
        return {"group_edges": str(self.samples.edges)} | self.comparison.as_json()


def judge(
    before: Scores,
    after: Scores | None = None,
    target: Prior | None = None,
    *,
    validation: Scores | None = None,
    names: tuple[str, str] = ("before", "after"),
    tau: float | None = None,
    is_cross_fitted: bool = False,
    groups: GroupsLike | None = None,
) -> Judgement:
    """Judge labelled scores: before and after something was done to them, or as they are.

    Args:
        before: Scores with labels.
        after: Of the same samples; None where nothing was done.
        target: The prior that accuracy and calibration are meant under, uniform by default.
        validation: Validation scores of the model that `before` is of, if there are any.
        names: What before and after are called.
        tau: How far `after` was moved towards the target, if it is such a move.
        is_cross_fitted: Whether parts of the samples were each moved by a τ of their own.
        groups: The edges of many, medium and few, such as "many=100,few=20,inclusive".

    >>> scores = Scores([[2.0, 1.0], [0.9, 0.0], [1.0, 0.7]], labels=[0, 0, 1], carried=[90, 10])
    >>> judgement = judge(scores, scores.under([1, 1]), tau=1.0)
    >>> judgement.main_metric, judgement.before["balanced_accuracy"].value, judgement.gain.value
    ('balanced_accuracy', 0.5, -0.0)
    """
    goal, other = target or Prior.uniform(before.num_classes), before if after is None else after
    edges = GroupEdges.of(groups)
    samples = BeforeAfter(before, other, goal, validation, names, tau, is_cross_fitted, edges)
    return Judgement.of(samples)


def judge_scores(
    before: Scores, after: Scores | None, target: Prior, groups: GroupsLike | None = None
) -> Judgement:
    """Judge scores beside those after; without any, moved to the target if that is known how."""
    if after is not None:
        return judge(before, after, target, groups=groups)
    if before.carried is not None and not before.carried.is_close(target):
        return judge(before, before.under(target), target, tau=1.0, groups=groups)
    names = ("as they are", "as they are")
    return judge(before, None, target, names=names, tau=0.0, groups=groups)
