"""What a run came to: the scores of each variant, their metrics under the target, its files."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from longtail import __version__
from longtail.core import Prior, Scores
from longtail.core.arrays import as_numpy
from longtail.core.files import read_whole
from longtail.core.scores import Split
from longtail.data.tables.features import SPLITS
from longtail.engine import load_head, save_head
from longtail.engine.training import Trained
from longtail.flows.changes import headline_key, shown_accuracies
from longtail.flows.judge import Judgement, judge
from longtail.flows.results import Result, write_json
from longtail.flows.samples import AS_TRAINED, UNDER_TARGET
from longtail.flows.train.building import build_target
from longtail.flows.train.model_file import StoredModel, load_model
from longtail.flows.train.reading import plain
from longtail.flows.train.recipe import Recipe, Target
from longtail.flows.train.run_folder import METRICS, read_log
from longtail.heads import Head
from longtail.metrics import Accumulator, Interval
from longtail.metrics.representations import weight_norms
from longtail.posthoc import LogitAdjustment, TauChoice


@dataclass(frozen=True, eq=False)
class Variant:
    """One way to predict with what was trained."""

    name: str
    scores: Mapping[Split, Scores]  # of validation and test, where they are
    head: Head | None = None  # the second-stage head behind it
    tau: float = 0.0  # how far it was moved to the target from what was trained
    choice: TauChoice | None = None  # how that was chosen, where it was


@dataclass(frozen=True, eq=False)
class TrainResult(Result):
    """A finished run."""

    model: StoredModel  # with recipe, classes and counts, and all it takes to predict
    folder: Path
    target: Prior  # the metrics are under it
    trained: Trained  # the rows of the log, and what the model carries
    variants: tuple[Variant, ...]  # as trained first
    command: str

    kind: ClassVar[str] = "train"

    @property
    def recipe(self) -> Recipe:
        """What was done."""
        return self.model.recipe

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        """Training images of each class."""
        return np.array(self.model.counts)

    @property
    def judged_on(self) -> Split | None:
        """The part that the headline is of: test if there is one."""
        splits = self.variants[0].scores
        return next((split for split in ("test", "validation") if split in splits), None)

    @property
    def headline(self) -> str:
        """The name of the variant that the run is for: under the target if it can be moved."""
        names = [variant.name for variant in self.variants]
        return UNDER_TARGET if UNDER_TARGET in names else AS_TRAINED

    @property
    def accuracy(self) -> str:
        """The accuracy that was asked for: that under the target."""
        return headline_key(self.target)

    @property
    def carries_target(self) -> bool:
        """Whether the logits carry the target as they were trained."""
        carried = self.trained.carried
        return carried is not None and carried.is_close(self.target)

    @property
    def recipe_values(self) -> dict[str, Any]:
        """The recipe as plain values, by its keys."""
        return plain(self.recipe)

    @cached_property
    def metrics(self) -> dict[Split, dict[str, dict[str, Interval]]]:
        """By split, variant and metric, each with its interval."""
        return {
            split: {name: sums.metrics() for name, sums in by_name.items()}
            for split, by_name in self._sums.items()
        }

    @cached_property
    def accuracies(self) -> dict[Split, list[str]]:
        """By split the accuracies that are shown: the one that was asked for, and others."""
        return {
            split: shown_accuracies(by_name[AS_TRAINED].class_shares, self.target)
            for split, by_name in self._sums.items()
        }

    @cached_property
    def judgement(self) -> Judgement | None:
        """As trained beside under the target, on the part that the headline is of."""
        split = self.judged_on
        if split is None:
            return None
        by_name = {variant.name: variant for variant in self.variants}
        trained, shown = by_name[AS_TRAINED], by_name[self.headline]
        return judge(
            trained.scores[split],
            shown.scores[split],
            self.target,
            validation=trained.scores.get("validation") if split == "test" else None,
            names=(AS_TRAINED, self.headline),
            tau=shown.tau,
        )

    def as_json(self) -> dict[str, Any]:
        """Everything that is a number or a name."""
        carried, history = self.trained.carried, self.trained.history
        return {
            "about": self.recipe.about,
            "headline": self.headline,
            "judged_on": self.judged_on,
            "classes": len(self.model.classes),
            "training_images": int(self.counts.sum()),
            "carried": None if carried is None else carried.probs.tolist(),
            "target": self.target.probs.tolist(),
            "best_epoch": self.trained.best_epoch,
            "last_epoch": history[-1] if history else {},
            "seconds": sum(row["seconds"] or 0.0 for row in history),
            "metrics": {
                split: {
                    name: {metric: asdict(measured) for metric, measured in metrics.items()}
                    for name, metrics in variants.items()
                }
                for split, variants in self.metrics.items()
            },
        }

    def write(self, folder: Path) -> None:
        """Scores, second-stage heads and metrics.json, into a folder that nothing is in yet."""
        about = {"classes": self.model.classes, "counts": self.counts.tolist()}
        for variant in self.variants:
            # What is under the target follows from the scores as they were trained.
            if variant.head is None and variant is not self.variants[0]:
                continue
            name = "" if variant.head is None else f"-{variant.name}"
            for split, scores in variant.scores.items():
                scores.save(folder / f"scores-{split}{name}.safetensors")
            if variant.head is not None:
                save_head(variant.head, folder / f"head{name}.safetensors", about)
        write_json(folder / METRICS, {"version": __version__} | self.as_json())

    @cached_property
    def weight_norms(self) -> npt.NDArray[np.float64]:
        """The norm of each row of the head."""
        return as_numpy(weight_norms(self.model.model.head.rows.detach()))

    @cached_property
    def _sums(self) -> dict[Split, dict[str, Accumulator]]:
        """The sums behind the metrics, by split and variant."""
        return {
            split: {
                variant.name: Accumulator.of(variant.scores[split], self.target, self.counts)
                for variant in self.variants
            }
            for split in self.variants[0].scores
        }


def variants_of(
    option: Target, carried: Prior | None, target: Prior, scores: Mapping[Split, Scores]
) -> list[Variant]:
    """The scores as trained, and moved to the target unless they carry it, or nothing known."""
    trained = Variant(AS_TRAINED, scores)
    if carried is None or (carried.is_close(target) and option.tau != "auto"):
        return [trained]
    if option.tau == 1:
        moved = {split: part.under(target) for split, part in scores.items()}
        return [trained, Variant(UNDER_TARGET, moved, tau=1.0)]
    if option.tau == "auto":  # there is a validation part: that was checked before training
        adjuster = LogitAdjustment.fit(scores["validation"], carried, target, option.criterion)
    else:
        adjuster = LogitAdjustment(carried, option.tau, target)
    moved = {split: adjuster(part) for split, part in scores.items()}
    return [trained, Variant(UNDER_TARGET, moved, tau=adjuster.tau, choice=adjuster.choice)]


def read_run(folder: str | os.PathLike[str], command: str = "longtail.report") -> TrainResult:
    """The result of a finished run, as `train` returned it; `command` is for the page."""
    run = Path(folder)
    scores = _read_scores(run, "")
    if not scores:
        raise ValueError(
            f"{run} has no scores: the run has not finished, or has no validation and no test "
            "part; start the same longtail train command again, and it goes on"
        )
    stored = load_model(run)
    recipe, carried = stored.recipe, stored.model.carried
    target = build_target(recipe, Prior.of(stored.counts))
    heads = [
        Variant(name, _read_scores(run, f"-{name}"), load_head(file).head)
        for file in sorted(run.glob("head-*.safetensors"))
        if (name := file.stem.removeprefix("head-"))
    ]
    metrics = json.loads(read_whole(run / METRICS))
    return TrainResult(
        model=stored,
        folder=run,
        target=target,
        trained=Trained(carried, metrics.get("best_epoch"), read_log(run), finished=True),
        variants=(*variants_of(recipe.target, carried, target, scores), *heads),
        command=command,
    )


def _read_scores(folder: Path, name: str) -> dict[Split, Scores]:
    files = {split: folder / f"scores-{split}{name}.safetensors" for split in SPLITS[1:]}
    return {split: Scores.load(file) for split, file in files.items() if file.is_file()}
