"""What a run came to: the scores of each variant, their metrics under the target, its files."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import numpy as np
import numpy.typing as npt

from longtail import __version__
from longtail.core import GroupEdges, GroupsLike, Prior, Scores
from longtail.core.arrays import as_numpy
from longtail.core.files import read_whole
from longtail.core.scores import Split
from longtail.data.tables.errors import reading
from longtail.data.tables.features import SPLITS
from longtail.engine import load_head, save_head
from longtail.engine.training import Trained
from longtail.flows.changes import main_accuracy, shown_accuracies
from longtail.flows.file_names import METRICS
from longtail.flows.judge import Judgement, judge
from longtail.flows.results import Result, write_json
from longtail.flows.samples import AS_TRAINED
from longtail.flows.score_measures import Value, measure_scores
from longtail.flows.shifted_sets import ShiftedSet, shifted_sets
from longtail.flows.train.building import build_target
from longtail.flows.train.model_file import StoredModel, load_model
from longtail.flows.train.reading import plain
from longtail.flows.train.recipe import Recipe
from longtail.flows.train.run_folder import read_log
from longtail.flows.train.variants import Variant, variants_of
from longtail.group_edges import DEFAULT_EDGES
from longtail.heads import Experts
from longtail.heads.head import LinearHead
from longtail.metrics import Accumulator, Interval
from longtail.metrics.representations import weight_norms


@dataclass(frozen=True, eq=False)
class TrainResult(Result):
    """A finished run."""

    model: StoredModel  # with recipe, classes and counts, and all it takes to predict
    folder: Path
    target: Prior  # the metrics are under it
    trained: Trained  # the rows of the log, and what the model carries
    variants: tuple[Variant, ...]  # as trained first
    command: str
    edges: GroupEdges = DEFAULT_EDGES  # of many, medium and few

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
    def num_images(self) -> int:
        """Training images in all."""
        return int(self.counts.sum())

    @property
    def judged_on(self) -> Split | None:
        """The part that the headline is of: test if there is one."""
        splits = self.variants[0].scores
        return next((split for split in ("test", "validation") if split in splits), None)

    @property
    def main_variant(self) -> str:
        """The name of the variant that the run is for: moved to the target if it can be."""
        moved = (variant.name for variant in self.variants[1:] if variant.head is None)
        return next(moved, AS_TRAINED)

    @property
    def is_cross_fitted(self) -> bool:
        """Whether it is of samples that chose something, each fifth by what the others choose."""
        chosen = any(each.choice for each in self.variants) or self.expert_weights is not None
        return self.judged_on == "validation" and chosen

    @property
    def expert_weights(self) -> list[float] | None:
        """What the validation part lets each expert weigh, if it was asked."""
        if self.recipe.expert_weights == "equal":
            return None
        head = self.model.model.head
        weights = head.expert_weights if isinstance(head, Experts) else None
        return None if weights is None else weights.tolist()

    @property
    def accuracy(self) -> str:
        """The accuracy that was asked for: that under the target."""
        return main_accuracy(self.target)

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
        trained, shown = by_name[AS_TRAINED], by_name[self.main_variant]
        return judge(
            trained.scores[split],
            shown.scores[split],
            self.target,
            validation=trained.scores.get("validation") if split == "test" else None,
            names=(AS_TRAINED, self.main_variant),
            tau=shown.tau,
            is_cross_fitted=self.is_cross_fitted,
            groups=self.edges,
        )

    @cached_property
    def shifted_sets(self) -> tuple[ShiftedSet, ...]:
        """The scores as trained on shifted sets of a test part that is balanced."""
        test, validation = (self.variants[0].scores.get(split) for split in ("test", "validation"))
        return shifted_sets(test, self.counts, validation, self.recipe.seed)

    def as_json(self) -> dict[str, Any]:
        """Everything that is a number or a name."""
        carried, history = self.trained.carried, self.trained.history
        return {
            "about": self.recipe.about,
            "headline": self.main_variant,
            "judged_on": self.judged_on,
            "cross_fitted": self.is_cross_fitted,
            "classes": len(self.model.classes),
            "training_images": int(self.counts.sum()),
            "carried": None if carried is None else carried.probs.tolist(),
            "target": self.target.probs.tolist(),
            "group_edges": str(self.edges),
            "expert_weights": self.expert_weights,
            "norm_taus": {
                each.name: each.norm_tau for each in self.variants if each.norm_tau is not None
            },
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
            "shifted_sets": [asdict(each) for each in self.shifted_sets],
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
                save_head(variant.head, _head_file(folder, variant.name), about)
        write_json(folder / METRICS, {"version": __version__} | self.as_json())

    @cached_property
    def weight_norms(self) -> npt.NDArray[np.float64]:
        """The norm of each row of the head."""
        return as_numpy(weight_norms(self.model.model.head.rows.detach()))

    @cached_property
    def class_values(self) -> dict[str, dict[str, Value]]:
        """What the network makes of each class: as trained, and as the headline's variant.

        `mean_probability` of both where the test part is balanced, since it follows the labels of
        that part too; `class_logits` of the headline's; the trained `bias`. Empty without scores.
        """
        split, by_name = self.judged_on, {each.name: each for each in self.variants}
        if split is None:
            return {}
        probability = ("mean_probability",) if self.shifted_sets else ()
        values = {AS_TRAINED: measure_scores(by_name[AS_TRAINED].scores[split], probability)}
        names = (*probability, "positive_logit", "class_logits")
        shown = measure_scores(by_name[self.main_variant].scores[split], names)
        values.setdefault(self.main_variant, {}).update(shown)
        head = self.model.model.head
        bias = getattr(head, "bias", None) if isinstance(head, LinearHead) else None
        if bias is not None:
            values[AS_TRAINED]["bias"] = as_numpy(bias.detach().double())
        return values

    @cached_property
    def _sums(self) -> dict[Split, dict[str, Accumulator]]:
        """The sums behind the metrics, by split and variant."""
        return {
            split: {
                each.name: Accumulator.of(
                    each.scores[split], self.target, self.counts, groups=self.edges
                )
                for each in self.variants
            }
            for split in self.variants[0].scores
        }


class _Metrics(msgspec.Struct):
    """What of METRICS is not in the other files of a run."""

    best_epoch: int | None = None


def read_run(
    folder: str | os.PathLike[str],
    command: str = "longtail.report",
    groups: GroupsLike | None = None,
) -> TrainResult:
    """The result of a finished run, as `train` returned it, or with groups of other edges."""
    run = Path(folder)
    scores = _read_scores(run, "")
    if not scores:
        raise ValueError(
            f"{run} has no scores: the run has not finished, or has no validation and no test "
            "part; start the same longtail train command again to finish it"
        )
    stored = load_model(run)
    recipe, carried = stored.recipe, stored.model.carried
    target = build_target(recipe, Prior.of(stored.counts))
    names = [head.full_name for head in recipe.second_stage.heads] if recipe.second_stage else []
    heads = [
        Variant(name, _read_scores(run, f"-{name}"), load_head(_head_file(run, name)).head)
        for name in names
    ]
    with reading(run / METRICS, "the metrics of a run"):
        metrics = msgspec.json.decode(read_whole(run / METRICS), type=_Metrics)
    return TrainResult(
        model=stored,
        folder=run,
        target=target,
        trained=Trained(carried, metrics.best_epoch, read_log(run), finished=True),
        variants=(*variants_of(recipe.target, carried, target, scores), *heads),
        command=command,
        edges=GroupEdges.of(recipe.groups if groups is None else groups),
    )


def _head_file(folder: Path, name: str) -> Path:
    return folder / f"head-{name}.safetensors"


def _read_scores(folder: Path, name: str) -> dict[Split, Scores]:
    files = {split: folder / f"scores-{split}{name}.safetensors" for split in SPLITS[1:]}
    return {split: Scores.load(file) for split, file in files.items() if file.is_file()}
