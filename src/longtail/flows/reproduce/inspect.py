r"""What figures measure of a finished run: its features, its head, its scores and its log.

    variance            σ_y = max_k |Δ_k| of Σ_y = Q Δ Qᵀ                                (NCM eq. 1)
    local projections   σ(w_y) of d̂_xy about the class means, eigenvalues rising         (NCM eq. 4)
    displacement        ‖μ_y − μ̃_y‖ of learned centroids from the class means           (NCM fig. 6)
    CDNV                (Var_y + Var_y') / (2 ‖μ_y − μ_y'‖²), mean over pairs               (NCM §6)
    offsets             ½ μ̃_k·w_k empirical, ½ c_k·w_k estimated                      (EO fig. 1, 3)
    largest distance    max_{x⁺∈S_y} ‖Φ(x) − Φ(x⁺)‖ / max_{x∈S} ‖Φ(x)‖                  (ELM fig. 4)
    rise time           the share of the epochs after which half the last accuracy is reached, of
                        many, medium and few                                            (NCM fig. 4)

S is the training set, as are all features here. What papers average over classes comes as one
number a class, so that groups of classes can be averaged too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from longtail.core import Scores
from longtail.core.arrays import Floats, Indices, as_numpy
from longtail.data import Features
from longtail.data.tables.features import Part
from longtail.engine import fit_head
from longtail.flows.features import features as features_of
from longtail.flows.reproduce.measures import GROUPS
from longtail.flows.score_measures import SCORE_MEASURES, Value, class_averages
from longtail.flows.train.model_file import StoredModel, load_model
from longtail.flows.train.run_folder import read_log
from longtail.flows.tsne import tsne
from longtail.heads import Head, LearnedNCM, MetricNCM
from longtail.heads.head import LinearHead
from longtail.heads.offset import OffsetHead
from longtail.metrics import representations as measures

FEATURES = "features.safetensors"  # of a run, if they were kept beside it
_TENTH = 10


def measure(
    run: str | os.PathLike[str],
    names: Iterable[str],
    *,
    data: str | os.PathLike[str] | None = None,
    features: Features | None = None,
    scores: Scores[Any] | None = None,
    seed: int = 0,
) -> dict[str, Value]:
    """The measures of these names of a finished run; without those that it has nothing for.

    Only linear heads have offsets, estimated ones only those with learned centres; a run without
    validation part has no rise time; t-SNE needs scikit-learn. An unknown name is a ValueError.

    Args:
        run: The folder that `longtail train` wrote. It is left as it is.
        names: Those of `SCORE_MEASURES` and `RUN_MEASURES`.
        data: Where the images are, if no longer where the recipe says; what is measured of features
            computes them, unless the folder has a file of them, FEATURES.
        features: Those to measure instead. Then the folder need not have a model.
        scores: Those to measure instead of the test part's as trained.
        seed: Of fits on the features: the centroids and projections of NCM.
    """
    wanted = tuple(dict.fromkeys(names))
    unknown = [each for each in wanted if each not in SCORE_MEASURES and each not in RUN_MEASURES]
    if unknown:
        measurable = ", ".join([*SCORE_MEASURES, *RUN_MEASURES])
        raise ValueError(f"no run is measured by {unknown[0]!r}; the measures are {measurable}")
    finished = _Finished(Path(run), data, features, scores, seed)
    values: dict[str, Value] = {}
    for name in wanted:
        if name in SCORE_MEASURES:
            values[name] = SCORE_MEASURES[name](finished.test_scores)
        elif (value := RUN_MEASURES[name](finished)) is not None:
            values[name] = value
    return values


@dataclass(frozen=True, eq=False)
class _Finished:
    """The files of a run, each read when it is first asked for."""

    folder: Path
    data: str | os.PathLike[str] | None
    own_features: Features | None
    own_scores: Scores[Any] | None
    seed: int

    @cached_property
    def test_scores(self) -> Scores[Any]:
        if self.own_scores is not None:
            return self.own_scores
        return Scores.load(self.folder / "scores-test.safetensors")

    @cached_property
    def stored(self) -> StoredModel:
        return load_model(self.folder)

    @property
    def head(self) -> Head:
        return self.stored.model.head

    @property
    def num_classes(self) -> int:
        return self.features.num_classes

    @cached_property
    def features(self) -> Features:
        if self.own_features is not None:
            return self.own_features
        if (self.folder / FEATURES).is_file():
            return Features.load(self.folder / FEATURES)
        data = self.stored.recipe.data.path if self.data is None else self.data
        if data is None:
            raise ValueError(f"the recipe of {self.folder} does not say where its images are")
        with TemporaryDirectory() as aside:
            made = features_of(self.folder, data, Path(aside) / FEATURES)
            # Copied into memory, since the file goes.
            parts = {
                split: Part(np.array(part.features), np.array(part.labels))
                for split, part in made.parts.items()
            }
            return replace(made, parts=parts)

    @cached_property
    def train(self) -> tuple[Floats, Indices, int]:
        """Training features, their labels, and how many classes there are."""
        part = self.features.part("train")
        return np.asarray(part.features, np.float64), part.labels, self.num_classes

    @cached_property
    def means(self) -> Floats:
        return as_numpy(measures.class_means(*self.train))

    @cached_property
    def traces(self) -> Floats:
        return as_numpy(measures.intra_class_variance(*self.train, measure="trace"))

    @cached_property
    def distances(self) -> Floats:
        return as_numpy(measures.largest_intra_class_distances(*self.train))

    @cached_property
    def centroids(self) -> list[Floats]:
        """Those of learned NCM, as they start and after each epoch (NCM §5.2)."""
        head = LearnedNCM(self.features.dim, self.num_classes)
        kept = [self.means]

        def keep(_: object) -> None:
            kept.append(as_numpy(head.centers.detach()).astype(np.float64))

        part = self.features.part("train")
        fit_head(head, part.features, part.labels, seed=self.seed, progress=keep)
        return kept

    @cached_property
    def projections(self) -> Floats:
        """σ(w), shape (C, D). NCM gives no step for it; here the one of its learned centroids."""
        sizes, part = (self.features.dim, self.num_classes), self.features.part("train")
        head = MetricNCM(*sizes, metric="eigenbasis", learn_centers=False)
        fit_head(head, part.features, part.labels, sgd=LearnedNCM.sgd, seed=self.seed)
        return as_numpy(head.projections.detach()).astype(np.float64)

    @cached_property
    def group_curves(self) -> Floats | None:
        """A row for each epoch that was evaluated: its number, accuracy of many, medium and few."""
        rows = [
            [row["epoch"], *(row.get(f"val_{name}") for name in GROUPS)]
            for row in read_log(self.folder)
            if any(row.get(f"val_{name}") is not None for name in GROUPS)
        ]
        return np.array(rows, dtype=np.float64) if rows else None


def _bias(run: _Finished) -> Value | None:
    bias = getattr(run.head, "bias", None) if isinstance(run.head, LinearHead) else None
    return None if bias is None else as_numpy(bias.detach().double())


def _empirical(run: _Finished) -> Floats | None:
    if not isinstance(run.head, LinearHead):
        return None
    weight = run.head.affine(torch.float64)[0]
    return as_numpy(measures.class_offsets(as_numpy(weight.detach()), run.means))


def _estimated(run: _Finished) -> Floats | None:
    head = run.head
    return as_numpy(head.offset.detach().double()) if isinstance(head, OffsetHead) else None


def _offset_gap(run: _Finished) -> Value | None:
    estimated, empirical = _estimated(run), _empirical(run)
    return None if estimated is None or empirical is None else estimated - empirical


def _offset_spread(run: _Finished) -> Value | None:
    offsets = _empirical(run)
    return None if offsets is None else float(np.nanstd(offsets))


def _projection_weights(run: _Finished) -> Value:
    """The mean over the tenth of directions that vary most, which are the last."""
    shares = run.projections
    return np.asarray(shares[:, -max(1, round(shares.shape[1] / _TENTH)) :].mean(axis=1))


def _rise_times(run: _Finished) -> Value | None:
    curves = run.group_curves
    if curves is None:
        return None
    times = np.full(len(GROUPS), np.nan)
    for at, accuracies in enumerate(curves[:, 1:].T):
        seen = np.flatnonzero(~np.isnan(accuracies))
        if len(seen):
            first = seen[np.argmax(accuracies[seen] >= accuracies[seen[-1]] / 2)]
            times[at] = curves[first, 0] / curves[-1, 0]
    return times


def _tsne(run: _Finished) -> Value | None:
    rows, labels, _ = run.train
    try:
        return tsne(rows, labels, seed=run.seed).rows
    except ImportError:
        return None


RUN_MEASURES: dict[str, Callable[[_Finished], Value | None]] = {
    "weight_norm": lambda run: as_numpy(measures.weight_norms(run.head.rows.detach())),
    "bias": _bias,
    "empirical_offset": _empirical,
    "estimated_offset": _estimated,
    "offset_gap": _offset_gap,
    "offset_spread": _offset_spread,
    "intra_class_variance": lambda run: as_numpy(measures.intra_class_variance(*run.train)),
    "total_variance": lambda run: run.traces,
    "cdnv": lambda run: measures.mean_cdnv(run.traces, run.means),
    "cdnv_curve": lambda run: np.array(
        [measures.mean_cdnv(run.traces, each) for each in run.centroids]
    ),
    "centroid_displacement": lambda run: as_numpy(
        measures.centroid_displacement(run.centroids[-1], run.means)
    ),
    "projection_weight": _projection_weights,
    "largest_distance": lambda run: class_averages(run.distances, *run.train[1:]),
    "rise_time": _rise_times,
    # What pictures are drawn of.
    "counts": lambda run: run.features.counts,
    # Class by class, so that the training counts tell whose each is.
    "largest_distances": lambda run: run.distances[np.argsort(run.train[1], kind="stable")],
    "projections": lambda run: run.projections,
    "group_curves": lambda run: run.group_curves,
    "tsne": _tsne,
}
