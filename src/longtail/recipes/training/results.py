"""What a run came to: the scores of each variant, and their metrics under the target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import Tensor

from longtail.core import Prior, Scores
from longtail.core.scores import Split
from longtail.engine.training import Trained
from longtail.flows.samples import AS_TRAINED, UNDER_TARGET
from longtail.heads import Head
from longtail.metrics import Accumulator, Interval
from longtail.posthoc import TauChoice
from longtail.recipes.training.recipe import Recipe


@dataclass(frozen=True, eq=False)
class Variant:
    """One way to predict with what was trained.

    Attributes:
        name: What it is called.
        scores: Of validation and test, where they are.
        head: The second-stage head behind it, if there is one.
        tau: How far it was moved to the target from what was trained.
        choice: How that was chosen, where it was.
    """

    name: str
    scores: Mapping[Split, Scores]
    head: Head | None = None
    tau: float = 0.0
    choice: TauChoice | None = None


@dataclass(frozen=True, eq=False)
class RunResult:
    """A finished run.

    Attributes:
        recipe: What was done.
        folder: Where it is.
        classes: The names of the classes.
        counts: Training images of each class.
        target: The prior the metrics are under.
        trained: The rows of the log, and what the model carries.
        variants: All ways to predict, as trained first.
        weight: The rows of the head, for the picture of their norms.
    """

    recipe: Recipe
    folder: Path
    classes: tuple[str, ...]
    counts: Tensor
    target: Prior
    trained: Trained
    variants: list[Variant]
    weight: Tensor

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

    @cached_property
    def tallies(self) -> dict[str, dict[str, Accumulator]]:
        """The sums behind the metrics, by split and variant."""
        return {
            split: {
                variant.name: Accumulator.of(variant.scores[split], self.target, self.counts)
                for variant in self.variants
            }
            for split in self.variants[0].scores
        }

    @cached_property
    def metrics(self) -> dict[str, dict[str, dict[str, Interval]]]:
        """By split, variant and metric, each with its interval."""
        return {
            split: {name: tally.metrics() for name, tally in found.items()}
            for split, found in self.tallies.items()
        }

    def as_json(self) -> dict[str, Any]:
        """Everything that is a number or a word."""
        carried = self.trained.carried
        last = self.trained.history[-1] if self.trained.history else {}
        return {
            "about": self.recipe.about,
            "headline": self.headline,
            "judged_on": self.judged_on,
            "classes": len(self.classes),
            "training_images": int(self.counts.sum()),
            "carried": None if carried is None else carried.probs.tolist(),
            "target": self.target.probs.tolist(),
            "best_epoch": self.trained.best_epoch,
            "last_epoch": last,
            "seconds": sum(row["seconds"] or 0.0 for row in self.trained.history),
            "metrics": {
                split: {
                    name: {metric: asdict(measured) for metric, measured in found.items()}
                    for name, found in variants.items()
                }
                for split, variants in self.metrics.items()
            },
        }
