"""Features of a few classes in the plane by t-SNE (NCM fig. 1, ELM fig. 5)."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from longtail.core.arrays import Array, ArrayLike
from longtail.core.labels import check_num_classes
from longtail.core.tensors import as_rows, as_tensor, label_tensor
from longtail.metrics.class_rows import rows_at
from longtail.report.charts.chart import Chart
from longtail.report.charts.plane import Points, plane_chart
from longtail.report.figures.runs import Floats

_LEAST = 10  # fewer samples than this show no cluster


def tsne_chart(
    features: Array,
    labels: ArrayLike,
    *,
    chosen: Sequence[int] | None = None,
    classes: Sequence[str] | None = None,
    most: int = 200,
    perplexity: float = 30.0,
    seed: int = 0,
) -> Chart:
    """Where samples of a few classes lie, near ones staying near; needs the extra `sklearn`.

    Distances between clusters and their sizes mean little in t-SNE; which samples mix does.

    Args:
        features: Shape (N, D).
        labels: Class indices.
        chosen: Classes to show; by default the two most frequent and the two rarest, of those
            with ten samples or more.
        classes: The names of the classes.
        most: So many samples of a class at the most, drawn by the seed.
        perplexity: How many neighbours a sample has, about; no more than a third of the samples.
        seed: Of the draw and of t-SNE.
    """
    rows = as_rows(features)
    given = as_tensor(labels)
    known = label_tensor(given, check_num_classes(int(given.max()) + 1, len(given))).cpu().numpy()
    picked = _default(known) if chosen is None else list(chosen)
    source = np.random.default_rng(seed)
    places = [_some(np.flatnonzero(known == k), most, source) for k in picked]
    for label, own in zip(picked, places, strict=True):
        if not len(own):
            raise ValueError(f"class {label} has no samples here; choose classes that have some")
    every = rows_at(rows, np.concatenate(places))
    plane = np.split(
        _embedded(every, perplexity, seed), np.cumsum([len(own) for own in places])[:-1]
    )
    names = [f"class {k}" if classes is None else classes[k] for k in picked]
    sizes = [int((known == k).sum()) for k in picked]
    return plane_chart(
        [
            Points(f"{name} ({size:,})", at[:, 0], at[:, 1])
            for name, size, at in zip(names, sizes, plane, strict=True)
        ],
        title="Features of some classes by t-SNE",
        colored=True,
        axes=False,
    )


def _default(labels: npt.NDArray[np.int64]) -> list[int]:
    counts = np.bincount(labels)
    enough = [int(k) for k in np.argsort(-counts, kind="stable") if counts[k] >= _LEAST]
    if not enough:
        raise ValueError(f"no class has {_LEAST} samples; choose classes to show with `chosen`")
    return list(dict.fromkeys(enough[:2] + enough[-2:]))


def _some(
    places: npt.NDArray[np.int64], most: int, source: np.random.Generator
) -> npt.NDArray[np.int64]:
    if len(places) <= most:
        return places
    return np.sort(source.choice(places, most, replace=False))


def _embedded(rows: Floats, perplexity: float, seed: int) -> Floats:
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
    found: Floats = method.fit_transform(rows.astype(np.float32)).astype(np.float64)
    return found
