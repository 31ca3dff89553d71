r"""What of a table is noise: how sure a difference is, where seeds and samples both vary.

Runs s and samples i are crossed: x_si = μ + seed_s + sample_i + rest_si. The mean over S seeds and
n samples varies by

    σ²_seed/S + σ²_rest/(S·n)  +  σ²_sample/n  =  V_seeds + V_samples.

V_seeds is what the metric varies by from run to run, over S. What the samples' means over runs vary
by, over n, holds V_samples and the rest, and what is left of x_si after the means of seed and
sample says how much of it is rest. Samples are drawn within classes. The interval is Banerjee's
(1961), which is never too narrow whatever the shares of the two,

    difference ± √(t²(f_seeds) · V_seeds + t²(f_samples) · V_samples).

f_samples is the number of samples that speak, (Σ v_i)²/Σ v_i² − 1: where all but four samples
agree, those four decide. Runs are paired where those of equal seeds err together, as those of one
backbone with two heads do; else each method has a variance of its own, and f_seeds is Welch's.

Which method is the best is seen from the same data, so the correction is for all pairs of methods,
not only for those with the best.

To tell a difference d in four of five such comparisons its standard error has to fall to
D = d/(z(α) + z(0.2)). With more seeds V_seeds falls, with more samples V_samples and the rest.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
import numpy.typing as npt

from longtail import stats
from longtail.flows.compare_runs import BY_KEY, Floats, Run, SampleSet
from longtail.stats import Part

_RAREST, _HALVINGS = math.log(1e-12), 30
_TOGETHER = 0.2  # unrelated runs come to 1/√((S − 1) · n) of it by chance
_MOST_SEEDS, MOST_TIMES = 100, 1000  # more than that is out of reach
_POWER = 0.8  # how often a real difference should be found


@dataclass(frozen=True)
class Contrast:
    """The first method less the second, in one metric."""

    value: float  # the difference of their means
    seeds: Part | None  # its variance from seeds; None if no method has two of them
    samples: Part  # its variance from samples
    shared: float  # how much of V_seeds is rest, which more samples make smaller too
    runs: int  # the fewer runs of the two
    by_seed: bool  # whether runs of equal seeds were paired

    @cached_property
    def p(self) -> float:
        """How often chance alone gives as much, if the methods are alike."""
        if self.value == 0 or (self.seeds is None and self.samples.variance == 0):
            return float(self.value == 0)
        if self.seeds is None:
            error = math.sqrt(self.samples.variance)
            return stats.student_p(self.value / error, self.samples.freedom)
        low, high = _RAREST, 0.0  # logarithms of the probability
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            inside = self.reach(math.exp(middle)) > abs(self.value)
            low, high = (middle, high) if inside else (low, middle)
        return math.exp(high)

    def reach(self, level: float) -> float:
        """How far the difference may lie from its value, but for a probability of `level`."""
        parts = [self.samples] if self.seeds is None else [self.seeds, self.samples]
        squares = [stats.student_reach(level, part.freedom) ** 2 * part.variance for part in parts]
        return math.sqrt(sum(squares))


def seed_noise(methods: Sequence[Sequence[Run]], samples: SampleSet, key: str) -> Part | None:
    """How much a metric varies from run to run, pooled; None if no method has two runs."""
    weight = samples.weights(key)[samples.labels]
    squares, freedom = 0.0, 0
    for runs in methods:
        values = np.stack([run.terms(key) for run in runs]) @ weight
        squares += float(np.square(values - values.mean()).sum())
        freedom += len(runs) - 1
    return Part(squares / freedom, freedom) if freedom else None


def difference(
    first: Sequence[Run],
    second: Sequence[Run],
    samples: SampleSet,
    key: str,
    noise: Part | None = None,
) -> Contrast:
    """Compare the runs of two methods; `noise` stands in for the seeds of one with one run."""
    one, other = (np.stack([run.terms(key) for run in runs]) for runs in (first, second))
    weight = samples.weights(key)
    order = _err_together(first, second, one, other)
    if order is not None:
        paired = one - other[order]
        return spread(paired @ weight[samples.labels], paired, samples.labels, weight)
    apart = one.mean(0) - other.mean(0)
    both = stats.stratified_variance(apart, samples.labels, weight)
    seeds, shared = [], 0.0
    for part in (one, other):
        if len(part) > 1:
            values = part @ weight[samples.labels]
            seeds.append(Part(float(values.var(ddof=1)) / len(part), len(part) - 1))
            shared += _rest(part, samples.labels, weight)
        elif noise is not None:
            seeds.append(noise)
    shared = min(shared, both.variance)
    return Contrast(
        value=_rounded(float(apart @ weight[samples.labels])),
        seeds=_welch(seeds, shared) if seeds else None,
        samples=Part(both.variance - shared, both.freedom),
        shared=shared,
        runs=min(len(first), len(second)),
        by_seed=False,
    )


def _rounded(value: float) -> float:
    """What is left of equal sums is rounding."""
    return value if abs(value) > 1e-12 else 0.0


def _err_together(
    first: Sequence[Run], second: Sequence[Run], one: Floats, other: Floats
) -> list[int] | None:
    """Which of the second runs goes with each of the first, if runs of equal seeds belong together.

    What is left of runs after the means of sample and seed is unrelated between trainings.
    """
    places = {run.seed: at for at, run in enumerate(second)}
    alike = len(first) == len(second) == len(places) and {r.seed for r in first} == set(places)
    if not alike or len(first) < 2:
        return None
    order = [places[run.seed] for run in first]
    left, right = (part - part.mean(0) for part in (one, other[order]))
    left, right = (part - part.mean(1, keepdims=True) for part in (left, right))
    size = float(np.square(left).sum() * np.square(right).sum()) ** 0.5
    return order if float((left * right).sum()) > _TOGETHER * size > 0 else None


def spread(
    values: Floats, terms: Floats, labels: npt.NDArray[np.int64], weight: Floats
) -> Contrast:
    """The mean of one value a run, and how sure it is.

    Args:
        values: Of each run; a difference of two methods on equal seeds is one, too.
        terms: What each sample says of it, of shape (runs, samples).
        labels: The classes within which samples are drawn.
        weight: What a sample of each class counts. Apart from the terms, since a class with one
            sample is taken to vary as the others' samples do, not as their weighted ones.
    """
    both = stats.stratified_variance(terms.mean(0), labels, weight)
    seeds, shared = None, 0.0
    if len(values) > 1:
        shared = min(_rest(terms, labels, weight), both.variance)
        own = Part(float(values.var(ddof=1)) / len(values), len(values) - 1)
        seeds = _welch([own], shared)
    samples = Part(both.variance - shared, both.freedom)
    value = _rounded(float(values.mean()))
    return Contrast(value, seeds, samples, shared, len(values), by_seed=True)


def _rest(terms: Floats, labels: npt.NDArray[np.int64], weight: Floats) -> float:
    """The σ²_rest/(S·n) of terms of shape (runs, samples)."""
    counts = np.bincount(labels, minlength=len(weight))
    centred = terms - terms.mean(0)
    sums = np.stack([np.bincount(labels, row, minlength=len(counts)) for row in centred])
    left = centred - (sums / np.maximum(counts, 1))[:, labels]
    share = np.square(weight) * counts / np.maximum(counts - 1, 1)
    runs = len(terms)
    return float((np.square(left).sum(0) * share[labels]).sum()) / (runs * (runs - 1))


def _welch(parts: Sequence[Part], least: float) -> Part:
    """The sum of variances, not below what the samples say of it, with Welch's freedom."""
    total = sum(part.variance for part in parts)
    below = sum(part.variance**2 / part.freedom for part in parts)
    freedom = total**2 / below if below else min(part.freedom for part in parts)
    return Part(max(total, least), freedom)


@dataclass(frozen=True)
class BesideBest:
    """A method beside the best one, by one metric; the last three as `needed` says."""

    method: str  # its name
    behind: float  # how far it is behind, zero or more
    low: float  # the least that may be, at the level it was judged by; below zero if it may lead
    high: float  # the most
    p: float  # holm's adjusted probability
    told_apart: bool  # whether it is more than chance
    seeds: float | None = None
    samples: float | None = None
    both: float | None = None

    @property
    def enough_seeds(self) -> int | None:
        """How many seeds each would tell; None if no number that anyone trains would."""
        if self.seeds is None or self.seeds >= _MOST_SEEDS:
            return None
        return max(2, math.ceil(self.seeds))

    @property
    def enough_samples(self) -> float | None:
        """How many times the test samples would tell; None if none that anyone has."""
        times = self.samples
        return None if times is None or times >= MOST_TIMES else max(times, 1.1)

    @property
    def enough_of_both(self) -> float | None:
        """How many times the seeds and the test samples would."""
        return None if self.both is None or self.both >= MOST_TIMES else self.both


@dataclass(frozen=True)
class Verdict:
    """What a metric says of the methods."""

    key: str  # the metric
    best: str  # the method with the best mean
    others: tuple[BesideBest, ...]  # all other methods that could be compared, best first
    left_out: tuple[str, ...] = ()  # methods whose value is not finite
    with_seeds: bool = False  # whether the variation of seeds is in it

    @property
    def tied(self) -> tuple[str, ...]:
        """Methods that cannot be told apart from the best."""
        return tuple(each.method for each in self.others if not each.told_apart)

    @property
    def behind(self) -> tuple[str, ...]:
        """Methods that are behind by more than chance."""
        return tuple(each.method for each in self.others if each.told_apart)


def verdict(methods: Mapping[str, Sequence[Run]], samples: SampleSet, key: str) -> Verdict | None:
    """Compare all methods, given the runs of each, by a metric; None without a finite value."""
    metric = BY_KEY[key]
    weight = samples.weights(key)[samples.labels]
    means: dict[str, float] = {}
    for name, runs in methods.items():
        value = float(sum(run.terms(key) @ weight for run in runs)) / len(runs)
        if math.isfinite(value):
            means[name] = metric.ahead(round(value, 12))  # equal ones stay in the order given
    if not means:
        return None
    order = sorted(means, key=lambda name: -means[name])
    noise = seed_noise([methods[name] for name in order], samples, key)
    pairs = list(combinations(order, 2))
    differences = [difference(methods[a], methods[b], samples, key, noise) for a, b in pairs]
    judged = stats.holm([each.p for each in differences])
    others = [
        _beside_best(b, metric.ahead(differences[at].value), differences[at], judged[at])
        for at, (a, b) in enumerate(pairs)
        if a == order[0]
    ]
    left_out = tuple(name for name in methods if name not in means)
    return Verdict(key, order[0], tuple(others), left_out, noise is not None)


def _beside_best(
    method: str, behind: float, between: Contrast, judged: stats.HolmResult
) -> BesideBest:
    wide = between.reach(judged.level)
    ends = behind - wide, behind + wide
    if judged.real or behind <= 0:
        return BesideBest(method, behind, *ends, judged.p, judged.real)
    return BesideBest(method, behind, *ends, judged.p, False, *needed(between, judged.level))


def needed(between: Contrast, level: float) -> tuple[float | None, float | None, float | None]:
    """About what would tell a difference as large as the one seen; None if no number would.

    How many seeds each; how many times the samples, with the seeds there are; times both.
    """
    reach = stats.normal_quantile(1 - level / 2) + stats.normal_quantile(_POWER)
    wanted = (abs(between.value) / reach) ** 2
    more_samples = between.samples.variance + between.shared
    if between.seeds is None:
        return None, more_samples / wanted, None
    for_samples = wanted - max(between.seeds.variance - between.shared, 0.0)
    for_seeds = wanted - between.samples.variance
    return (
        between.runs * between.seeds.variance / for_seeds if for_seeds > 0 else None,
        more_samples / for_samples if for_samples > 0 else None,
        (between.seeds.variance + between.samples.variance) / wanted,
    )
