"""Methods on one set of samples: ordered, with intervals, ranks, and what of it is noise."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from longtail.flows.changes import distinct_accuracies
from longtail.flows.compare_runs import BY_KEY, METRICS, Metric, Run, SampleSet
from longtail.flows.noise import BesideBest as BesideBest
from longtail.flows.noise import Verdict, verdict
from longtail.flows.samples import AS_TRAINED, UNDER_TARGET
from longtail.stats import Estimate as Estimate
from longtail.stats import Interval, average_ranks, estimate, seed_blocks
from longtail.stats import Ranks as Ranks

_NONE = Interval(None)
# Of two that are one number the first is shown.
_ACCURACIES = ("balanced_accuracy", "accuracy_under_target", "accuracy")


@dataclass(frozen=True, eq=False)
class Method:
    """A method and its runs."""

    name: str  # what it is called
    runs: tuple[Run, ...]  # all of them
    estimates: Mapping[str, Estimate]  # every metric over the runs, under the target
    as_trained: Mapping[str, Estimate]  # the same of the scores as they are

    @property
    def is_moved(self) -> bool:
        """Whether it is known what all of its scores carry, so that they could be moved."""
        return all(run.moved for run in self.runs)


@dataclass(frozen=True, eq=False)
class ComparedSet:
    """Methods on one set of samples."""

    samples: SampleSet  # the set
    by: Metric  # the metric that methods are ordered by
    methods: tuple[Method, ...]  # best first
    metrics: tuple[Metric, ...]  # what is shown, from left to right
    verdicts: Mapping[str, Verdict]  # what is noise, for each metric that is tested
    ranks: Ranks | None  # over seeds, where all methods have two of them in common
    copies: tuple[tuple[str, str], ...] = ()  # runs left out, each with one of the same scores

    @property
    def has_moved(self) -> bool:
        """Whether the move to the target changed any scores, so that there are two of each."""
        return any(run.as_trained is not run.metrics for m in self.methods for run in m.runs)

    @property
    def run_numbers(self) -> list[int]:
        """How many runs methods have, each number once, the smallest first."""
        return sorted({len(method.runs) for method in self.methods})

    @property
    def pairs(self) -> int:
        """How many pairs of methods there are."""
        return math.comb(len(self.methods), 2)

    def best_by(self, metric: Metric) -> tuple[str, ...]:
        """The best of several methods by a metric; more than one where it is not tested."""
        if len(self.methods) < 2:
            return ()
        if metric.key in self.verdicts:
            return (self.verdicts[metric.key].best,)
        ahead = {m.name: _ahead(m.estimates[metric.key].value, metric) for m in self.methods}
        return tuple(name for name, value in ahead.items() if value == max(ahead.values()))

    def tied_by(self, metric: Metric) -> tuple[str, ...]:
        """The methods that cannot be told apart from the best by a metric."""
        return self.verdicts[metric.key].tied if metric.key in self.verdicts else ()

    def as_json(self) -> dict[str, Any]:
        """Everything that is a number or a name."""
        return {
            "set": self.samples.name,
            "samples": len(self.samples.labels),
            "classes": self.samples.num_classes,
            "by": self.by.key,
            "group_edges": str(self.samples.edges),
            "methods": {method.name: self._method_json(method) for method in self.methods},
            "noise": {key: asdict(verdict) for key, verdict in self.verdicts.items()},
        }

    def _method_json(self, method: Method) -> dict[str, Any]:
        variants = {AS_TRAINED: method.as_trained}
        if self.samples.target is not None:
            variants[UNDER_TARGET] = method.estimates
        return {
            "runs": [{"seed": run.seed, "source": run.source} for run in method.runs],
            "moved_to_target": method.is_moved,
            "rank": None if self.ranks is None else self.ranks.mean[method.name],
            "metrics": {
                name: {metric.key: asdict(estimates[metric.key]) for metric in self.metrics}
                for name, estimates in variants.items()
            },
        }


def compare_set(samples: SampleSet, runs: Sequence[Run], by: str) -> ComparedSet:
    """Compare the methods of runs on the same samples; the runs of a method are its seeds."""
    metric = BY_KEY[by]
    by_method, copies = _by_method(runs)
    methods = []
    for name, own in by_method.items():
        under, as_trained = ([r.metrics for r in own], [r.as_trained for r in own])
        methods.append(Method(name, tuple(own), _estimates(under), _estimates(as_trained)))
    if all(method.estimates[by].value is None for method in methods):
        raise ValueError(
            f"no run has a value for {metric.name} ({by}); order the methods by another metric"
        )
    methods.sort(key=lambda method: -_ahead(method.estimates[by].value, metric))
    hidden = _shown_already(samples, by)
    shown = tuple(
        each
        for each in METRICS
        if each.key not in hidden and any(m.estimates[each.key].value is not None for m in methods)
    )
    ordered = {method.name: method.runs for method in methods}
    verdicts = {each.key: verdict(ordered, samples, each.key) for each in shown if each.tested}
    return ComparedSet(
        samples=samples,
        by=metric,
        methods=tuple(methods),
        metrics=shown,
        verdicts={key: value for key, value in verdicts.items() if value is not None},
        ranks=_seed_ranks(methods, metric),
        copies=tuple(copies),
    )


def set_ranks(sets: Sequence[ComparedSet]) -> Ranks | None:
    """Average ranks over several sets, of the methods that are on all of them."""
    names = set.intersection(*({method.name for method in each.methods} for each in sets))
    if len(sets) < 2 or len(names) < 2:
        return None
    blocks = []
    for each in sets:
        values = {m.name: _ahead(m.estimates[each.by.key].value, each.by) for m in each.methods}
        blocks.append({name: values[name] for name in sorted(names)})
    return average_ranks(blocks, "data sets")


def _ahead(value: float | None, metric: Metric) -> float:
    """The value turned so that more is better; none is the worst."""
    return -math.inf if value is None or math.isnan(value) else metric.ahead(value)


def _by_method(runs: Sequence[Run]) -> tuple[dict[str, list[Run]], list[tuple[str, str]]]:
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


def _shown_already(samples: SampleSet, by: str) -> set[str]:
    """The accuracies in which classes count as in another one, which is shown."""
    order = sorted(_ACCURACIES, key=lambda key: key != by)
    return set(order) - set(distinct_accuracies(samples.class_shares, order))


def _seed_ranks(methods: Sequence[Method], metric: Metric) -> Ranks | None:
    values = {}
    for method in methods:
        own = {run.seed: run.metrics.get(metric.key, _NONE).value for run in method.runs}
        values[method.name] = {s: metric.ahead(v) for s, v in own.items() if v is not None}
    blocks = seed_blocks(values)
    if len(methods) < 2 or len(blocks) < 2:
        return None
    return average_ranks(blocks, "seeds")
