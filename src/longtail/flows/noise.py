r"""What of a table is noise: every method beside the best one, and what it would take to tell.

Which method is the best is seen from the same data, so the correction is for all pairs of methods,
not only for those with the best.

To tell a difference d in four of five such comparisons its standard error has to fall to
D = d/(z(α) + z(0.2)). With more seeds V_seeds falls, with more samples V_samples and the rest.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

from longtail.flows.compare_runs import BY_KEY, Run, SampleSet
from longtail.flows.differences import Difference, difference, seed_noise
from longtail.stats import HolmResult, holm, normal_quantile

_POWER = 0.8  # how often a real difference should be told


@dataclass(frozen=True)
class BesideBest:
    """A method beside the best one, by one metric.

    Attributes:
        method: Its name.
        behind: How far it is behind, zero or more.
        low: The least that may be, at the level it was judged by; below zero if it may be ahead.
        high: The most.
        p: Holm's adjusted probability.
        told_apart: Whether it is more than chance.
        seeds: About how many seeds each would tell, if the difference is real; None if no number
            would.
        samples: About how many times the samples would, with the seeds there are; likewise.
        both: About how many times the seeds and the samples would.
    """

    method: str
    behind: float
    low: float
    high: float
    p: float
    told_apart: bool
    seeds: float | None = None
    samples: float | None = None
    both: float | None = None


@dataclass(frozen=True)
class Verdict:
    """What a metric says of the methods.

    Attributes:
        key: The metric.
        best: The method with the best mean.
        others: All other methods that could be compared, best first.
        left_out: Methods whose value is not finite.
        with_seeds: Whether the variation of seeds is in it.
    """

    key: str
    best: str
    others: tuple[BesideBest, ...]
    left_out: tuple[str, ...] = ()
    with_seeds: bool = False

    @property
    def tied(self) -> tuple[str, ...]:
        """Methods that cannot be told apart from the best."""
        return tuple(each.method for each in self.others if not each.told_apart)

    @property
    def behind(self) -> tuple[str, ...]:
        """Methods that are behind by more than chance."""
        return tuple(each.method for each in self.others if each.told_apart)


def verdict(methods: Mapping[str, Sequence[Run]], samples: SampleSet, key: str) -> Verdict | None:
    """Compare all methods by a metric; None where it has no finite value.

    Args:
        methods: The runs of each.
        samples: What they were measured on.
        key: The metric.
    """
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
    found = [difference(methods[a], methods[b], samples, key, noise) for a, b in pairs]
    judged = holm([each.p for each in found])
    others = [
        _beside_best(b, metric.ahead(found[at].value), found[at], judged[at])
        for at, (a, b) in enumerate(pairs)
        if a == order[0]
    ]
    left_out = tuple(name for name in methods if name not in means)
    return Verdict(key, order[0], tuple(others), left_out, noise is not None)


def _beside_best(method: str, behind: float, found: Difference, judged: HolmResult) -> BesideBest:
    wide = found.reach(judged.level)
    ends = behind - wide, behind + wide
    open_still = not judged.real and behind > 0
    more = needed(found, judged.level) if open_still else Needed()
    return BesideBest(method, behind, *ends, judged.p, judged.real, *more)


class Needed(NamedTuple):
    """What would tell a difference: seeds, times the samples, times both; None if nothing would."""

    seeds: float | None = None
    samples: float | None = None
    both: float | None = None


def needed(found: Difference, level: float) -> Needed:
    """Roughly what would tell a difference that is as large as the one seen."""
    reach = normal_quantile(1 - level / 2) + normal_quantile(_POWER)
    wanted = (abs(found.value) / reach) ** 2
    more_samples = found.samples.variance + found.shared
    if found.seeds is None:
        return Needed(samples=more_samples / wanted)
    for_samples = wanted - max(found.seeds.variance - found.shared, 0.0)
    for_seeds = wanted - found.samples.variance
    return Needed(
        found.runs * found.seeds.variance / for_seeds if for_seeds > 0 else None,
        more_samples / for_samples if for_samples > 0 else None,
        (found.seeds.variance + found.samples.variance) / wanted,
    )
