"""What is decided by costs, and the sets that hold the true class, beside what both came to."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from longtail.core import Prior, Scores
from longtail.core.arrays import Floats, Indices, as_numpy
from longtail.core.blocks import slices
from longtail.core.costs import UNDECIDED, Costs, CostsLike
from longtail.core.files import written_whole
from longtail.core.numbers import check_number
from longtail.data import read_costs
from longtail.flows.fix_steps import FOLDS, fold_numbers
from longtail.flows.judge import Judgement
from longtail.flows.score_sources import Source
from longtail.metrics import Interval, class_coverage, cost, evaluate_sets
from longtail.metrics.costs import mean_under
from longtail.posthoc import ConformalSets
from longtail.posthoc.conformal import Mode


@dataclass(frozen=True, eq=False)
class Decider:
    """How samples are decided where the target is the prior: by costs, as far as it pays."""

    costs: Costs
    abstain: float | None
    target: Prior

    @classmethod
    def of(
        cls, costs: CostsLike | str | Path | None, abstain: float | None, source: Source
    ) -> Decider | None:
        """What was asked for, checked; its target is not known yet."""
        if costs is None:
            if abstain is not None:
                raise ValueError("abstain is what not deciding costs: give the other costs, too")
            return None
        classes = source.num_classes
        if isinstance(costs, str | Path):
            costs = read_costs(costs, classes, source.classes)
        if abstain is not None:
            check_number(abstain, "abstain", 0)
        return cls(Costs.of(costs, classes, source.classes), abstain, Prior.uniform(classes))

    def __call__(self, scores: Scores) -> Indices:
        """The decisions: class indices, -1 where there is none."""
        is_there = scores.carried is None or scores.carried.is_close(self.target)
        moved = None if is_there else self.target
        return as_numpy(scores.decide(self.costs, moved, self.abstain))


@dataclass(frozen=True, eq=False)
class CostFacts:
    """What a sample costs on average, by what is done with it."""

    decider: Decider
    before: Interval  # the scores before, the most likely class
    after: Interval  # the adjusted scores, the most likely class
    decided: Interval  # the adjusted scores, by costs
    # Shares of samples, which count as they do in costs: those that costs decide otherwise than
    # probability, and those that are left undecided.
    changed: float
    undecided: float

    @classmethod
    def of(cls, judgement: Judgement, decider: Decider) -> CostFacts:
        """Of the samples of a judgement."""
        samples, target = judgement.samples, judgement.target
        likely = as_numpy(samples.after.predict())
        decided = decider(samples.after)

        def measured(decisions: Indices) -> Interval:
            return cost(
                decisions,
                samples.labels,
                costs=decider.costs,
                target=target,
                abstain=decider.abstain,
            )

        def share(answers: npt.NDArray[np.bool_]) -> float:
            truth, size = as_numpy(samples.labels), samples.after.num_classes
            return float(mean_under(answers.astype(np.float64), truth, size, target).value or 0.0)

        return cls(
            decider,
            before=measured(as_numpy(samples.before.predict())),
            after=measured(likely),
            decided=measured(decided),
            changed=share((decided != likely) & (decided != UNDECIDED)),
            undecided=share(decided == UNDECIDED),
        )

    def as_json(self) -> dict[str, Any]:
        """Everything that is a number or a word."""
        values = {name: asdict(getattr(self, name)) for name in ("before", "after", "decided")}
        return values | {
            "kind": "matrix" if self.decider.costs.is_matrix else "class",
            "abstain": self.decider.abstain,
            "changed": self.changed,
            "undecided": self.undecided,
        }


@dataclass(frozen=True, eq=False)
class SetFacts:
    """How good sets are, on samples that they were not fitted on."""

    sets: ConformalSets
    measured: dict[str, Interval]
    class_coverage: Floats  # NaN for a class without samples

    @classmethod
    def of(cls, judgement: Judgement, sets: ConformalSets) -> SetFacts:
        """Of the samples of a judgement; each fifth by the others if the sets were fitted on it."""
        samples = judgement.samples
        made = _cross_fitted if samples.is_cross_fitted else _sets_of
        inside = as_numpy(made(samples.after, sets))
        counts, edges = samples.counts, samples.edges
        measured = evaluate_sets(inside, samples.labels, judgement.target, counts, edges)
        return cls(sets, measured, class_coverage(inside, samples.labels))

    def as_json(self) -> dict[str, Any]:
        """Everything that is a number or a word."""
        return {
            "mode": self.sets.mode,
            "asked": self.sets.coverage,
            "measured": {name: asdict(value) for name, value in self.measured.items()},
        }


def fit_sets(held: Scores, coverage: float, mode: Mode, target: Prior) -> ConformalSets:
    """The sets by scores that nothing was fitted on, adjusted as those that they are for."""
    return ConformalSets.fit(_known(held, target), coverage, mode, target)


def write_decisions(
    path: Path, scores: Scores, decider: Decider | None, sets: ConformalSets | None
) -> None:
    """A row a sample: its id where there is one, what is decided, and the classes of its set."""
    names = np.array(scores.classes or range(scores.num_classes), dtype=object)
    columns = {"id": scores.ids is not None, "decision": decider, "set": sets}
    with written_whole(path) as part, part.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([name for name, is_there in columns.items() if is_there])
        for at in slices(len(scores), scores.num_classes):
            block = scores.take(at)
            own: list[Any] = [] if block.ids is None else [block.ids.tolist()]
            own += [] if decider is None else [_named(decider(block), names)]
            own += [] if sets is None else [_listed(_sets_of(block, sets), names)]
            writer.writerows(zip(*own, strict=True))


def _named(decided: Indices, names: Any) -> Iterator[object]:
    return ("" if index == UNDECIDED else names[index] for index in decided.tolist())


def _listed(inside: Any, names: Any) -> Iterator[str]:
    return (";".join(map(str, names[row])) for row in as_numpy(inside))


def _known(scores: Scores, target: Prior) -> Scores:
    """As adjusted to the target, also where the steps do not say so."""
    return scores if scores.carried is not None else scores._with(carried=target)


def _sets_of(scores: Scores, sets: ConformalSets) -> Any:
    return sets(_known(scores, sets.target))


def _cross_fitted(held: Scores, sets: ConformalSets) -> Any:
    folds = fold_numbers(as_numpy(held.labels), 0)
    inside = np.zeros((len(held), held.num_classes), bool)
    for fold in range(FOLDS):
        others = fit_sets(held.take(folds != fold), sets.coverage, sets.mode, sets.target)
        inside[folds == fold] = as_numpy(_sets_of(held.take(folds == fold), others))
    return inside
