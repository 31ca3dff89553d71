"""Features of a few classes in the plane by t-SNE, which is scikit-learn's."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from longtail.core.arrays import Array, ArrayLike, as_numpy
from longtail.core.labels import check_labels, check_num_classes

_LEAST = 10  # fewer samples than this show no cluster


class TsneMap(NamedTuple):
    """Where samples lie."""

    labels: tuple[int, ...]  # the classes that are shown
    sizes: tuple[int, ...]  # how many samples each of them has
    places: tuple[npt.NDArray[np.float64], ...]  # of some samples of each class, shape (n, 2)

    @property
    def rows(self) -> npt.NDArray[np.float64]:
        """A row for each sample: where it lies, and its class."""
        own = np.repeat(self.labels, [len(places) for places in self.places])
        return np.column_stack([np.concatenate(self.places), own])

    @classmethod
    def of(cls, rows: npt.NDArray[np.float64], counts: npt.NDArray[np.float64]) -> "TsneMap":
        """The map of such rows; classes are shown in the order in which they come."""
        labels = list(dict.fromkeys(rows[:, 2].astype(int).tolist()))
        places = tuple(rows[rows[:, 2] == label, :2] for label in labels)
        return cls(tuple(labels), tuple(int(counts[k]) for k in labels), places)


def tsne(
    features: Array,
    labels: ArrayLike,
    *,
    chosen: Sequence[int] | None = None,
    most: int = 200,
    perplexity: float = 30.0,
    seed: int = 0,
) -> TsneMap:
    """Places of samples of a few classes, near ones staying near; needs the extra `sklearn`.

    Args:
        features: Shape (N, D).
        labels: Class indices.
        chosen: Classes to show; by default the two most frequent and the two rarest, of those
            with ten samples or more.
        most: So many samples of a class at the most, drawn by the seed.
        perplexity: How many neighbours a sample has, about; no more than a third of the samples.
        seed: Of the draw and of t-SNE.
    """
    numbers = as_numpy(labels)
    classes = check_labels(numbers, check_num_classes(int(numbers.max()) + 1, len(numbers)))
    counts = np.bincount(classes)
    picked = _default(counts) if chosen is None else list(chosen)
    random = np.random.default_rng(seed)
    rows = []
    for label in picked:
        own = np.flatnonzero(classes == label)
        if not len(own):
            raise ValueError(f"class {label} has no samples here; choose classes that have some")
        rows.append(own if len(own) <= most else np.sort(random.choice(own, most, replace=False)))
    plane = _embedded(as_numpy(features[np.concatenate(rows)]), perplexity, seed)
    places = np.split(plane, np.cumsum([len(own) for own in rows])[:-1])
    return TsneMap(tuple(picked), tuple(int(counts[k]) for k in picked), tuple(places))


def _default(counts: npt.NDArray[np.int64]) -> list[int]:
    enough = [int(k) for k in np.argsort(-counts, kind="stable") if counts[k] >= _LEAST]
    if not enough:
        raise ValueError(f"no class has {_LEAST} samples; choose classes to show with `chosen`")
    return list(dict.fromkeys(enough[:2] + enough[-2:]))


def _embedded(
    rows: npt.NDArray[np.floating], perplexity: float, seed: int
) -> npt.NDArray[np.float64]:
    try:
        from sklearn.manifold import TSNE
    except ImportError as error:
        raise ImportError(
            "t-SNE is scikit-learn's, which is not installed: pip install longtail[sklearn]"
        ) from error
    if len(rows) < 4:
        raise ValueError(f"t-SNE needs at least 4 samples, got {len(rows)}")
    fits = min(perplexity, (len(rows) - 1) / 3)
    # A start at the first two principal axes keeps the picture alike from one seed to the next.
    method = TSNE(perplexity=fits, init="pca", learning_rate="auto", random_state=seed)
    return np.asarray(method.fit_transform(rows.astype(np.float32)), dtype=np.float64)
