"""The sets that heads are fitted on: features of a frozen network, or words of texts.

A seed draws the training samples: an exponential profile over the classes by their size, where no
class has more than it has; or, without a ratio, four fifths of every class, so that seeds differ.
The test part stays whole. Texts become TF-IDF weights of the words that the drawn training texts
have most often.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from longtail.data import Features, exponential_subset, long_tailed_subset, read_features
from longtail.data.tables.errors import reading
from longtail.data.tables.features import Parts, checked_features

if TYPE_CHECKING:
    from longtail.flows.reproduce.experiment import Fit

_WORDS = 2000
_MOST_BYTES = 2**26
_SPLITS = ("train", "test")


class FitSet(NamedTuple):
    """What a set is found by and must have."""

    data: str  # the name under which its path is given
    largest: int  # training samples of the largest class
    num_classes: int
    expected: str  # in words
    is_text: bool = False


SETS = {
    "caltech": FitSet(
        "caltech-features", 300, 101, "features of Caltech-101; without a path those of the package"
    ),
    "cifar100": FitSet(
        "cifar100-features",
        500,
        100,
        "features of all 50,000 training and 10,000 test images of CIFAR-100, in a file as "
        "`longtail fit` reads it",
    ),
    "r52": FitSet("r52", 2840, 52, "Reuters-21578 R52", True),
    "banking77": FitSet("banking77", 120, 77, "BANKING77", True),
}
_TEXT_FILE = "lines of split (train or test), label and text, tab-separated, .tsv or .tsv.gz"


def long_tailed_set(run: Fit, seed: int, data: Mapping[str, Path]) -> Features:
    """The set of a run: its training samples as the seed draws them, and all of the test part."""
    known = SETS[run.features]
    expected = f"{known.expected}: {_TEXT_FILE}" if known.is_text else known.expected
    path = data.get(known.data)
    if path is None and run.features != "caltech":
        raise ValueError(f"{known.data} needs a path, {known.data}=PATH, to {expected}")
    if path is not None and not path.is_file():
        raise FileNotFoundError(f"there is no file {path}; {known.data} is {expected}")
    if known.is_text and path is not None:
        return _texts(path, run, seed)
    whole = _features(path)
    if whole.num_classes != known.num_classes or "test" not in whole.parts:
        raise ValueError(
            f"{path} has {whole.num_classes} classes and the parts {', '.join(whole.parts)}, but "
            f"{known.data} is {expected}: {known.num_classes} classes, train and test"
        )
    rows, labels = whole.part("train")
    kept = _drawn(labels, known, run.imbalance_ratio, seed)
    parts: Parts = {"train": (rows[kept], labels[kept]), "test": whole.part("test")}
    return checked_features(parts, whole.num_classes, whole.classes, whole.made_by)


def _features(path: Path | None) -> Features:
    if path is not None:
        return read_features(path)
    with as_file(files("longtail.data") / "caltech101" / "features.npz") as packaged:
        return read_features(packaged)


def _drawn(
    labels: npt.NDArray[np.int64], known: FitSet, ratio: float | None, seed: int
) -> npt.NDArray[np.int64]:
    if ratio is not None:
        return np.asarray(exponential_subset(labels, known.largest, ratio, seed))
    counts = np.ceil(0.8 * np.bincount(labels, minlength=known.num_classes)).astype(np.int64)
    return np.asarray(long_tailed_subset(labels, counts, seed))


def _texts(path: Path, run: Fit, seed: int) -> Features:
    try:
        from sklearn.feature_extraction.text import TfidfVectorizer
    except ImportError as error:
        raise ImportError(
            'TF-IDF is made by scikit-learn; install it: pip install "longtail[sklearn]"'
        ) from error
    known = SETS[run.features]
    split, names, texts = _rows(path)
    classes, labels = np.unique(names, return_inverse=True)
    if len(classes) != known.num_classes:
        raise ValueError(
            f"{path} has {len(classes)} labels, but {known.expected} has {known.num_classes}"
        )
    train, test = np.flatnonzero(split == "train"), np.flatnonzero(split == "test")
    train = train[_drawn(labels[train], known, run.imbalance_ratio, seed)]
    words = TfidfVectorizer(sublinear_tf=True, max_features=_WORDS, dtype=np.float32)
    parts: Parts = {
        "train": (words.fit_transform(texts[train]).toarray(), labels[train]),
        "test": (words.transform(texts[test]).toarray(), labels[test]),
    }
    return checked_features(parts, classes=classes.tolist(), made_by=f"TF-IDF of {known.expected}")


def _rows(path: Path) -> tuple[npt.NDArray[np.str_], ...]:
    """Splits, labels and texts."""
    unpacked = gzip.open if path.suffix == ".gz" else open
    with reading(path, "a set of texts"), unpacked(path, "rb") as file:
        stored = file.read(_MOST_BYTES + 1)  # what is packed may be a thousand times as large
        if len(stored) > _MOST_BYTES:
            raise ValueError(f"it has more than {_MOST_BYTES} bytes")
        text = stored.decode("utf-8")
    rows = [line.split("\t", 2) for line in text.splitlines()]
    wrong = next((k for k, row in enumerate(rows, 1) if len(row) < 3 or row[0] not in _SPLITS), 0)
    if wrong or not rows:
        raise ValueError(f"{path} must have {_TEXT_FILE}; line {wrong or 1} has not")
    return tuple(np.array(column) for column in zip(*rows, strict=True))
