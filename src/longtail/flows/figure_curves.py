r"""The numbers that figures draw: classes along the tail, distributions, means and spreads.

A figure is given values and shows them; what is summed, ordered or averaged on the way is computed
here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from longtail.core import Prior, shot_groups
from longtail.core.arrays import ArrayLike, as_numpy
from longtail.core.labels import check_counts, check_labels
from longtail.metrics.accumulator import Reliability
from longtail.metrics.recall import check_mask, geometric_means, group_means
from longtail.metrics.representations import frequency_correlation

if TYPE_CHECKING:
    from longtail.posthoc import TauCurve

Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]
Masks: TypeAlias = dict[str, npt.NDArray[np.bool_]]
Values: TypeAlias = ArrayLike | Mapping[str, ArrayLike]  # of one run, or of several by their names
_OUTER = 0.002  # the share of samples on either side that may fall outside the frame


class Tail(NamedTuple):
    """The classes in the order of their training counts."""

    order: Integers
    counts: Floats
    names: list[str]

    @property
    def places(self) -> range:
        """1 for the most frequent class."""
        return range(1, len(self.order) + 1)

    @property
    def log_size(self) -> float:
        """The logarithm of the number of classes."""
        return float(np.log(len(self.order)))

    @property
    def positive_counts(self) -> Floats:
        """The counts, NaN for none: zero has no logarithm."""
        return np.where(self.counts > 0, self.counts, np.nan)

    @property
    def prior(self) -> Floats:
        """The training prior, in percent; NaN where all counts are zero."""
        return np.asarray(100 * self.counts / (self.counts.sum() or np.nan))

    @property
    def uniform(self) -> float:
        """What each class has under the uniform prior, in percent."""
        return 100 / len(self.order)

    def along(self, values: Floats, name: str) -> Floats:
        """One number a class, in class order, put into the order of the tail."""
        if values.shape != self.order.shape:
            raise ValueError(
                f"{name!r} must be one number for each of {len(self.order)} classes, "
                f"got shape {values.shape}"
            )
        return values[self.order]


def floats(values: ArrayLike) -> Floats:
    """Values as float64 NumPy numbers, for drawing."""
    return np.asarray(as_numpy(values), dtype=np.float64)


def by_name(values: Values, name: str = "model") -> dict[str, Floats]:
    """The values of each run under its name; those of a single run under `name`."""
    named = values if isinstance(values, Mapping) else {name: values}
    if not named:
        raise ValueError("a figure needs values, got none; give an array or a dict of arrays")
    return {key: floats(each) for key, each in named.items()}


def labels_of(counts: ArrayLike) -> Integers:
    """The labels of so many samples of each class, class by class."""
    samples = floats(counts).astype(np.int64)
    return np.repeat(np.arange(len(samples)), samples)


def descending(values: ArrayLike) -> Integers:
    """The classes from the largest value to the smallest, equal ones by their index."""
    return np.argsort(-floats(values), kind="stable")


def tail_of(counts: ArrayLike, classes: Sequence[str] | None = None) -> Tail:
    """The classes from the most frequent to the rarest, equal ones by their index."""
    samples = floats(check_counts(counts))
    if classes is not None and len(classes) != len(samples):
        raise ValueError(f"got {len(classes)} class names but {len(samples)} counts")
    order = descending(samples)
    names = [f"class {k}" if classes is None else classes[k] for k in order]
    return Tail(order, samples[order], names)


def masks_of(groups: Mapping[str, ArrayLike] | None, counts: ArrayLike) -> Masks:
    """A boolean mask over the classes for each group; by default many, medium and few."""
    size = len(check_counts(counts))
    if groups is None:
        return {name: mask for name, mask in shot_groups(counts).items() if mask.any()}
    return {name: check_mask(mask, size, name) for name, mask in groups.items()}


def with_all(masks: Masks, counts: ArrayLike) -> Masks:
    """All classes first, then the groups."""
    return {"all": np.ones(len(check_counts(counts)), dtype=bool), **masks}


def thinned(size: int, most: int) -> Integers:
    """Evenly spaced places among so many, the first and the last with them."""
    return np.unique(np.linspace(0, size - 1, min(size, most)).astype(np.int64))


def running_mean(values: Floats, window: int) -> Floats:
    """The mean over so many neighbours, fewer at the ends, NaN left out."""
    finite = ~np.isnan(values)
    sums, sizes = cumulated(np.where(finite, values, 0.0)), cumulated(finite)
    places = np.arange(len(values))
    low = np.maximum(places - window // 2, 0)
    high = np.minimum(places + window // 2 + 1, len(values))
    number = sizes[high] - sizes[low]
    mean: Floats = np.where(number > 0, (sums[high] - sums[low]) / np.maximum(number, 1), np.nan)
    return mean


def cumulated(values: Floats | npt.NDArray[np.bool_], share: bool = False) -> Floats:
    """The sums of the first 0, 1, 2 and so on; as a share in percent of all of them."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    return np.asarray(100 * sums / max(sums[-1], 1)) if share else sums


def mean_band(runs: Sequence[Floats]) -> tuple[Floats, Floats | None, Floats | None]:
    """The mean of runs, and one standard deviation on both sides of it where there are several."""
    stacked = np.stack(runs)
    middle, spread = stacked.mean(axis=0), stacked.std(axis=0)
    return (middle, middle - spread, middle + spread) if len(runs) > 1 else (middle, None, None)


def mean_and_spread(values: Sequence[float]) -> tuple[float, float]:
    """The mean and the standard deviation of trials; NaN where there are too few."""
    size = len(values)
    mean = float(np.mean(values)) if size else np.nan
    return mean, float(np.std(values, ddof=1)) if size > 1 else np.nan


def geometric_mean(recalls: Floats) -> float:
    """Of the classes that have samples, a recall of zero counting as 0.001."""
    return float(geometric_means(recalls[~np.isnan(recalls)]))


def group_accuracies(recalls: Iterable[ArrayLike], masks: Masks) -> dict[str, list[float]]:
    """The mean recall of each group, for each of several sets of recalls; NaN for none."""
    means = (group_means(floats(each), masks) for each in recalls)
    rows = [{name: np.nan if mean is None else mean for name, mean in m.items()} for m in means]
    return {name: [row[name] for row in rows] for name in masks}


def rank_correlation(values: Floats, counts: ArrayLike) -> float | None:
    """Spearman's, of a number a class with the class counts; None where there is none."""
    rank = frequency_correlation(values, floats(counts))
    return None if np.isnan(rank) else round(rank, 2) + 0.0


def block_means(
    values: Floats, most_rows: int, most_columns: int
) -> tuple[list[list[float]], list[Integers], list[Integers]]:
    """A matrix with neighbours averaged where there are more than fit, and who they are."""
    rows, columns = (
        np.array_split(np.arange(size), min(size, most))
        for size, most in zip(values.shape, (most_rows, most_columns), strict=True)
    )
    means = [[float(values[np.ix_(row, column)].mean()) for column in columns] for row in rows]
    return means, rows, columns


def density(values: Floats, places: Floats) -> Floats:
    """A histogram of bins around the places, with area one; NaN without values."""
    finite = values[np.isfinite(values)]
    step = places[1] - places[0]
    edges = np.append(places - step / 2, places[-1] + step / 2)
    heights: Floats = np.histogram(finite, edges)[0] / (step * (len(finite) or np.nan))
    return heights


def cumulative_share(values: Floats, places: Floats) -> Floats:
    """The share of values that are at most each place, in percent; NaN without values."""
    below = np.searchsorted(np.sort(values), places, side="right")
    return np.asarray(100 * below / (len(values) or np.nan))


def places_for(values: Iterable[Floats], number: int = 40) -> Floats:
    """Evenly spaced places from the lowest to the highest value, but for the outermost few."""
    every = np.concatenate(list(values))
    finite = every[np.isfinite(every)]
    low, high = 0.0, 1.0
    if len(finite):
        ends = np.quantile(finite, [_OUTER, 1 - _OUTER], method="closest_observation")
        room = 0.02 * (ends[1] - ends[0]) or 0.5
        low, high = ends[0] - room, ends[1] + room
    return np.linspace(low, high, number)


class GroupValues(NamedTuple):
    """One number a sample, of the samples of a group of classes."""

    name: str
    num_classes: int
    num_samples: int
    values: dict[str, Floats]  # of each run


def by_group(named: Mapping[str, Floats], labels: ArrayLike, masks: Masks) -> list[GroupValues]:
    """The values of each run parted by the group of each sample's class."""
    true = check_labels(labels, len(next(iter(masks.values()), ())))
    for name, values in named.items():
        if values.shape != true.shape:
            raise ValueError(
                f"{name!r} must be one number for each of {len(true)} labels, "
                f"got shape {values.shape}"
            )
    parts = []
    for group, mask in masks.items():
        inside = mask[true]
        own = {name: values[inside] for name, values in named.items()}
        parts.append(GroupValues(group, int(mask.sum()), int(inside.sum()), own))
    return parts


def taus_between(low: float, high: float, number: int) -> list[float]:
    """So many τ, evenly spaced."""
    if not low < high:
        raise ValueError(f"the axis must begin below its end, got τ from {low} to {high}")
    return [float(tau) for tau in np.linspace(low, high, number)]


def error_at(curve: TauCurve, taus: Sequence[float]) -> Floats:
    """The error at each τ, in percent."""
    pieces = np.searchsorted(floats(curve.taus), taus, side="right")
    return np.asarray(100 * (1 - floats(curve.accuracy)[pieces]))


def reliability_of(bins: Floats) -> Reliability:
    """That of its three rows: share, confidence and accuracy of each bin."""
    return Reliability(*bins)


def is_uniform(prior: Prior) -> bool:
    """Whether all classes are equally likely."""
    return prior.is_close(Prior.uniform(prior.num_classes))
