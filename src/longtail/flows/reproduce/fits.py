"""Fit runs: every method of `longtail fit` on one set at one seed, its test scores kept in float16.

The sets are features of a frozen network, or words of texts: TF-IDF weights of those that the drawn
training texts have most often. A seed draws the training samples, an exponential profile over the
classes by their size, where no class has more than it has; or, without a ratio, four fifths of
every class, so that seeds differ. It draws the folds and whatever is random in a fit, too. Weight
decay and τ are chosen on folds of the training samples, as `longtail fit` does; the test part stays
whole and decides nothing.
"""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from importlib.resources import as_file, files
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from longtail.core import Prior, Scores
from longtail.core.arrays import as_numpy
from longtail.data import Features, exponential_subset, long_tailed_subset, read_features
from longtail.data.tables.errors import reading
from longtail.data.tables.features import Parts, checked_features
from longtail.flows.file_names import METRICS
from longtail.flows.fit_methods import METHODS, UNLABELLED, Aim
from longtail.flows.fit_problem import prepared, scores_by_method
from longtail.flows.reproduce.experiment import Fit
from longtail.flows.reproduce.kept import in_float16
from longtail.flows.results import write_json

_FOLDS = 5
_QUADRATIC = ("metric_ncm", "metric_ncm_classes", "metric_ncm_eigen")  # D × D numbers, or C times
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


def run(
    fit_run: Fit,
    seed: int,
    folder: Path,
    data: Mapping[str, Path],
) -> None:
    """Write `folder`: METHOD.safetensors with test scores of each method, and metrics.json.

    Args:
        fit_run: Which set, and how far it is cut.
        seed: Draws the training samples, and all else that is drawn.
        folder: Made whole at the end; one that is there is finished and left as it is.
        data: The paths of the sets, by their names in `Needs`.
    """
    if is_finished(folder, METRICS):
        return
    features = long_tailed_set(fit_run, seed, data)
    is_text = SETS[fit_run.features].is_text
    left_out = (*UNLABELLED, *(_QUADRATIC if is_text else ()))
    methods = [name for name in METHODS if name not in left_out]
    aim, failed = Aim(Prior.uniform(features.num_classes)), {}
    problem = prepared(features, aim, _FOLDS, seed)
    with staged_folder(folder) as aside:
        for name, scores in scores_by_method(problem, methods):
            if isinstance(scores, Scores):
                in_float16(lowered(scores)).save(aside / f"{name}.safetensors")
            else:
                failed[name] = str(scores)
        about = {
            "set": fit_run.features,
            "imbalance_ratio": fit_run.imbalance_ratio,
            "seed": seed,
            "counts": features.counts.tolist(),
            "dim": features.dim,
            "folds": _FOLDS,
            "weight_decay": problem.choice.decay * problem.samples.unit**2,
            "failed": failed,
        }
        write_json(aside / METRICS, about)


def lowered(scores: Scores) -> Scores:
    """Each row less its largest logit, which changes no probability.

    As they are, distances of hundreds would be rounded to halves in float16.
    """
    logits = as_numpy(scores.logits).astype(np.float64)
    near = logits - logits.max(axis=1, keepdims=True)
    return replace(scores, logits=np.maximum(near, np.finfo(np.float16).min))


def is_finished(folder: Path, name: str) -> bool:
    """Whether a run is there, with the file of that name; a ValueError if something else is."""
    if (folder / name).is_file():
        return True
    if os.path.lexists(folder) and (not folder.is_dir() or os.listdir(folder)):
        raise ValueError(
            f"{folder} is there and is no finished run, which would have {name}; move it elsewhere"
        )
    return False


@contextmanager
def staged_folder(folder: Path) -> Iterator[Path]:
    """A folder to write to that takes its name when all is written."""
    aside = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    yield aside
    aside.rename(folder)


def long_tailed_set(run: Fit, seed: int, data: Mapping[str, Path]) -> Features:
    """The set of a run: its training samples as the seed draws them, and all of the test part."""
    fit_set = SETS[run.features]
    expected = f"{fit_set.expected}: {_TEXT_FILE}" if fit_set.is_text else fit_set.expected
    path = data.get(fit_set.data)
    if path is None and run.features != "caltech":
        raise ValueError(f"{fit_set.data} needs a path, {fit_set.data}=PATH, to {expected}")
    if path is not None and not path.is_file():
        raise FileNotFoundError(f"there is no file {path}; {fit_set.data} is {expected}")
    if fit_set.is_text and path is not None:
        return _texts(path, run, seed)
    whole = _features(path)
    if whole.num_classes != fit_set.num_classes or "test" not in whole.parts:
        raise ValueError(
            f"{path} has {whole.num_classes} classes and the parts {', '.join(whole.parts)}, but "
            f"{fit_set.data} is {expected}: {fit_set.num_classes} classes, train and test"
        )
    rows, labels = whole.part("train")
    kept = _drawn(labels, fit_set, run.imbalance_ratio, seed)
    parts: Parts = {"train": (rows[kept], labels[kept]), "test": whole.part("test")}
    return checked_features(parts, whole.num_classes, whole.classes, whole.made_by)


def _features(path: Path | None) -> Features:
    if path is not None:
        return read_features(path)
    with as_file(files("longtail.data") / "caltech101" / "features.npz") as packaged:
        return read_features(packaged)


def _drawn(
    labels: npt.NDArray[np.int64], fit_set: FitSet, ratio: float | None, seed: int
) -> npt.NDArray[np.int64]:
    if ratio is not None:
        return np.asarray(exponential_subset(labels, fit_set.largest, ratio, seed))
    counts = np.ceil(0.8 * np.bincount(labels, minlength=fit_set.num_classes)).astype(np.int64)
    return np.asarray(long_tailed_subset(labels, counts, seed))


def _texts(path: Path, run: Fit, seed: int) -> Features:
    try:
        from sklearn.feature_extraction.text import TfidfVectorizer
    except ImportError as error:
        raise ImportError(
            'TF-IDF is made by scikit-learn; install it: pip install "longtail[sklearn]"'
        ) from error
    fit_set = SETS[run.features]
    split, names, texts = _rows(path)
    classes, labels = np.unique(names, return_inverse=True)
    if len(classes) != fit_set.num_classes:
        raise ValueError(
            f"{path} has {len(classes)} labels, but {fit_set.expected} has {fit_set.num_classes}"
        )
    train, test = np.flatnonzero(split == "train"), np.flatnonzero(split == "test")
    train = train[_drawn(labels[train], fit_set, run.imbalance_ratio, seed)]
    words = TfidfVectorizer(sublinear_tf=True, max_features=_WORDS, dtype=np.float32)
    parts: Parts = {
        "train": (words.fit_transform(texts[train]).toarray(), labels[train]),
        "test": (words.transform(texts[test]).toarray(), labels[test]),
    }
    return checked_features(
        parts, classes=classes.tolist(), made_by=f"TF-IDF of {fit_set.expected}"
    )


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
