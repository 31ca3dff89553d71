"""Caltech-101 as frozen features: a real imbalanced problem that ships with the package.

101 classes, 256 numbers an image: EfficientNet-Lite0 trained on ImageNet, reduced by PCA and kept
as one byte each; the features are `stored · scale`. caltech101/ATTRIBUTION.md says whose images
these are (CC BY 4.0) and what was done to them. The test part is imbalanced like the training part,
so average over classes.
"""

from dataclasses import dataclass, replace
from importlib.resources import files

import numpy as np
import torch
from torch import Tensor

from longtail.core.labels import class_counts
from longtail.core.tensors import as_tensor
from longtail.data.profiles import exponential_counts
from longtail.data.subsets import long_tailed_subset, ranks_by_count


@dataclass(frozen=True, eq=False)
class LabelledFeatures:
    """Features and labels of a training and a test part.

    Attributes:
        train_features: Float32, shape (N, D).
        train_labels: Int64, shape (N,).
        test_features: Float32, shape (M, D).
        test_labels: Int64, shape (M,).
        classes: The names of the classes.
    """

    train_features: Tensor
    train_labels: Tensor
    test_features: Tensor
    test_labels: Tensor
    classes: tuple[str, ...]


def caltech101_features() -> LabelledFeatures:
    """All of Caltech-101: 5,784 training images, 534 to 21 a class, and 2,893 to test on.

    >>> data = caltech101_features()
    >>> tuple(data.train_features.shape), tuple(data.test_features.shape), len(data.classes)
    ((5784, 256), (2893, 256), 101)
    """
    place = files("longtail.data") / "caltech101" / "features.npz"
    with place.open("rb") as file, np.load(file, allow_pickle=False) as stored:
        return LabelledFeatures(
            train_features=torch.from_numpy(stored["train"] * stored["scale"]),
            train_labels=torch.from_numpy(stored["train_label"].astype(np.int64)),
            test_features=torch.from_numpy(stored["test"] * stored["scale"]),
            test_labels=torch.from_numpy(stored["test_label"].astype(np.int64)),
            classes=tuple(name.decode() for name in stored["label_names"].tolist()),
        )


def caltech101_long_tailed(seed: int = 0) -> LabelledFeatures:
    """Caltech-101 with a longer tail: 4,268 training images, 300 to 3 a class; the test part whole.

    The classes in the order of their size follow `exponential_counts(300, 101, 100)`; a class that
    has fewer images keeps all it has.

    Args:
        seed: Of the choice of images.

    >>> labels = caltech101_long_tailed().train_labels
    >>> len(labels), labels.bincount().max().item(), labels.bincount().min().item()
    (4268, 300, 3)
    """
    whole = caltech101_features()
    num_classes = len(whole.classes)
    available = np.asarray(class_counts(whole.train_labels, num_classes))
    profile = exponential_counts(300, num_classes, imbalance_ratio=100)
    counts = np.minimum(available, profile[ranks_by_count(available)])
    kept = as_tensor(long_tailed_subset(whole.train_labels, counts, seed))
    return replace(
        whole, train_features=whole.train_features[kept], train_labels=whole.train_labels[kept]
    )
