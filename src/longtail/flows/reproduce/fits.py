"""Fit runs: every method of `longtail fit` on one set at one seed, its test scores kept in float16.

The seed draws the training samples, the folds and whatever is random in a fit. Weight decay and τ
are chosen on folds of the training samples, as `longtail fit` does; the test part decides nothing.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from longtail.core import Prior, Scores
from longtail.core.arrays import as_numpy
from longtail.flows.file_names import METRICS
from longtail.flows.fit_methods import METHODS, UNLABELLED, Aim
from longtail.flows.fit_problem import prepared, scores_by_method
from longtail.flows.reproduce.experiment import Fit
from longtail.flows.reproduce.fit_sets import SETS, long_tailed_set
from longtail.flows.reproduce.stored import halved
from longtail.flows.results import write_json

_FOLDS = 5
_QUADRATIC = ("metric_ncm", "metric_ncm_classes", "metric_ncm_eigen")  # D × D numbers, or C times


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
                halved(lowered(scores)).save(aside / f"{name}.safetensors")
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
