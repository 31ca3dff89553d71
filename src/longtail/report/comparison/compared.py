"""Methods compared on one set of samples, and the same over several sets: values only."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from longtail.flows.changes import distinct_accuracies
from longtail.flows.samples import AS_TRAINED, UNDER_TARGET
from longtail.metrics.recall import class_shares
from longtail.report.comparison.columns import BY_KEY, METRICS, Metric
from longtail.report.comparison.noise import Verdict, verdict
from longtail.report.comparison.runs import Run, SampleSet
from longtail.stats import Estimate, Interval, Ranks, average_ranks, estimate, seed_blocks

_NONE = Interval(None)
# Of two that are one number the first is shown.
_ACCURACIES = ("balanced_accuracy", "accuracy_under_target", "accuracy")


@dataclass(frozen=True, eq=False)
class Method:
    """A method and its runs.

    Attributes:
        name: What it is called.
        runs: All of them.
        estimates: Every metric over the runs, under the target.
        as_trained: The same of the scores as they are.
    """

    name: str
    runs: tuple[Run, ...]
    estimates: Mapping[str, Estimate]
    as_trained: Mapping[str, Estimate]


@dataclass(frozen=True, eq=False)
class ComparedSet:
    """Methods on one set of samples.

    Attributes:
        samples: The set.
        by: The metric that methods are ordered by.
        methods: Best first.
        metrics: What is shown, from left to right.
        verdicts: What is noise, for each metric that is tested.
        ranks: Over seeds, where all methods have two of them in common.
        copies: Runs that were left out since another has the same scores, each with that one.
    """

    samples: SampleSet
    by: Metric
    methods: tuple[Method, ...]
    metrics: tuple[Metric, ...]
    verdicts: Mapping[str, Verdict]
    ranks: Ranks | None
    copies: tuple[tuple[str, str], ...] = ()

    @property
    def has_moved(self) -> bool:
        """Whether the move to the target changed any scores, so that there are two of each."""
        return any(
            run.as_trained is not run.metrics for method in self.methods for run in method.runs
        )

    def as_json(self) -> dict[str, Any]:
        """Everything that is a number or a word."""
        return {
            "set": self.samples.name,
            "samples": len(self.samples.labels),
            "classes": self.samples.num_classes,
            "by": self.by.key,
            "methods": {method.name: _shown(method, self) for method in self.methods},
            "noise": {key: asdict(found) for key, found in self.verdicts.items()},
        }


@dataclass(frozen=True, eq=False)
class Compared:
    """Methods on one set or more.

    Attributes:
        sets: In the order they were met.
        ranks: Over the sets, of the methods that are on all of them; None for one set.
        target: What the metrics are under, in words.
        notes: What the reader of the files has to say.
    """

    sets: tuple[ComparedSet, ...]
    ranks: Ranks | None
    target: str
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Everything that is a number or a word."""
        return {
            "target": self.target,
            "sets": [each.as_json() for each in self.sets],
            "ranks": None if self.ranks is None else asdict(self.ranks),
            "notes": list(self.notes),
        }


def compare_set(samples: SampleSet, runs: Sequence[Run], by: str) -> ComparedSet:
    """Compare the methods of runs that were measured on the same samples.

    Args:
        samples: What they were measured on.
        runs: In any order; those of one method are its seeds.
        by: The metric to order methods by.
    """
    metric = BY_KEY[by]
    grouped, copies = _grouped(runs)
    found = [
        Method(
            name,
            tuple(each),
            _estimates([run.metrics for run in each]),
            _estimates([run.as_trained for run in each]),
        )
        for name, each in grouped.items()
    ]
    if all(method.estimates[by].value is None for method in found):
        raise ValueError(
            f"no run has a value for {metric.name} ({by}); order the methods by another metric"
        )
    ordered = sorted(found, key=lambda method: _place(method.estimates[by], metric))
    hidden = _shown_already(samples, by)
    shown = tuple(each for each in METRICS if each.key not in hidden and _exists(each.key, ordered))
    by_name = {method.name: method.runs for method in ordered}
    verdicts = {each.key: verdict(by_name, samples, each.key) for each in shown if each.tested}
    return ComparedSet(
        samples=samples,
        by=metric,
        methods=tuple(ordered),
        metrics=shown,
        verdicts={key: value for key, value in verdicts.items() if value is not None},
        ranks=_seed_ranks(ordered, metric),
        copies=tuple(copies),
    )


def compare(sets: Sequence[ComparedSet], target: str, notes: Sequence[str] = ()) -> Compared:
    """Put sets beside each other, with ranks over them where there are several."""
    ranks = None
    if len(sets) > 1:
        names = set.intersection(*({method.name for method in each.methods} for each in sets))
        blocks = [_ahead({m.name: m for m in each.methods}, names, each.by) for each in sets]
        if len(names) > 1:
            ranks = average_ranks(blocks, f"{len(sets)} data sets")
    return Compared(tuple(sets), ranks, target, tuple(notes))


def _grouped(runs: Sequence[Run]) -> tuple[dict[str, list[Run]], list[tuple[str, str]]]:
    """The runs of each method, without those that have the scores of another."""
    grouped: dict[str, list[Run]] = {}
    copies = []
    for run in runs:
        others = grouped.setdefault(run.method, [])
        same = next((other for other in others if run.is_copy_of(other)), None)
        if same is None:
            others.append(run)
        else:
            copies.append((run.source or f"{run.method}, {run.seed}", same.source or same.seed))
    return grouped, copies


def _estimates(runs: Sequence[Mapping[str, Interval]]) -> dict[str, Estimate]:
    return {m.key: estimate([run.get(m.key, _NONE) for run in runs]) for m in METRICS}


def _exists(key: str, methods: Sequence[Method]) -> bool:
    return any(method.estimates[key].value is not None for method in methods)


def _shown_already(samples: SampleSet, by: str) -> set[str]:
    """The accuracies in which classes count as in another one, which is shown."""
    shares = class_shares(samples.label_counts.numpy(), samples.target)
    order = sorted(_ACCURACIES, key=lambda key: key != by)
    return set(order) - set(distinct_accuracies(shares, order))


def _place(found: Estimate, metric: Metric) -> float:
    if found.value is None or math.isnan(found.value):
        return math.inf
    return -metric.ahead(found.value)


def _seed_ranks(methods: Sequence[Method], metric: Metric) -> Ranks | None:
    blocks = seed_blocks({method.name: _by_seed(method, metric) for method in methods})
    if len(methods) < 2 or len(blocks) < 2:
        return None
    return average_ranks(blocks, f"{len(blocks)} seeds")


def _by_seed(method: Method, metric: Metric) -> dict[str, float]:
    """The value of each run that has one."""
    found = {run.seed: run.metrics.get(metric.key, _NONE).value for run in method.runs}
    return {seed: metric.ahead(value) for seed, value in found.items() if value is not None}


def _ahead(methods: Mapping[str, Method], names: set[str], metric: Metric) -> dict[str, float]:
    values = {name: methods[name].estimates[metric.key].value for name in sorted(names)}
    return {n: -math.inf if v is None else metric.ahead(v) for n, v in values.items()}


def _variants(method: Method, table: ComparedSet) -> dict[str, Mapping[str, Estimate]]:
    """As trained, and where there is a target under it, as the page of a run has them."""
    both = {AS_TRAINED: method.as_trained}
    return both if table.samples.target is None else both | {UNDER_TARGET: method.estimates}


def _shown(method: Method, table: ComparedSet) -> dict[str, Any]:
    return {
        "runs": [{"seed": run.seed, "source": run.source} for run in method.runs],
        "moved_to_target": all(run.moved for run in method.runs),
        "rank": None if table.ranks is None else table.ranks.mean[method.name],
        "metrics": {
            name: {m.key: asdict(found[m.key]) for m in table.metrics}
            for name, found in _variants(method, table).items()
        },
    }
