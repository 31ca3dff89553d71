"""Caltech-101 as frozen features: a real imbalanced problem that ships with the package.

101 classes, 256 numbers an image: EfficientNet-Lite0 trained on ImageNet, reduced by PCA and kept
as one byte each; the features are `stored · scale`. caltech101/ATTRIBUTION.md says whose images
these are (CC BY 4.0) and what was done to them. The test part is imbalanced like the training part,
so average over classes.
"""

from dataclasses import dataclass, replace
from importlib.resources import files

import numpy as np
import numpy.typing as npt

from longtail.core.arrays import Indices
from longtail.data.subsets import exponential_subset


@dataclass(frozen=True, eq=False)
class LabelledFeatures:
    """Features (N, D) and labels (N,) of a training and a test part, and the class names."""

    train_features: npt.NDArray[np.float32]
    train_labels: Indices
    test_features: npt.NDArray[np.float32]
    test_labels: Indices
    classes: tuple[str, ...]


def caltech101_features() -> LabelledFeatures:
    """All of Caltech-101: 5,784 training images, 534 to 21 a class, and 2,893 to test on.

    >>> data = caltech101_features()
    >>> data.train_features.shape, data.test_features.shape, len(data.classes)
    ((5784, 256), (2893, 256), 101)
    """
    path = files("longtail.data") / "caltech101" / "features.npz"
    with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
        return LabelledFeatures(
            train_features=stored["train"] * stored["scale"],
            train_labels=stored["train_label"].astype(np.int64),
            test_features=stored["test"] * stored["scale"],
            test_labels=stored["test_label"].astype(np.int64),
            classes=tuple(name.decode() for name in stored["label_names"].tolist()),
        )


def caltech101_long_tailed(seed: int = 0, imbalance_ratio: float = 100) -> LabelledFeatures:
    """Caltech-101 with a longer tail: 4,268 training images, 300 to 3 a class; the test part whole.

    The classes in the order of their size follow `exponential_counts(300, 101, imbalance_ratio)`; a
    class that has fewer images keeps all it has.

    >>> counts = np.bincount(caltech101_long_tailed().train_labels)
    >>> int(counts.sum()), int(counts.max()), int(counts.min())
    (4268, 300, 3)
    """
    whole = caltech101_features()
    kept = np.asarray(exponential_subset(whole.train_labels, 300, imbalance_ratio, seed))
    return replace(
        whole, train_features=whole.train_features[kept], train_labels=whole.train_labels[kept]
    )
