"""SweepResult: the points of a sweep, and which of them the validation part chooses."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias

from longtail import __version__
from longtail.core.scores import Split
from longtail.flows.file_names import SWEEP_RESULT
from longtail.flows.results import Result, write_json
from longtail.stats import Estimate

Accuracy: TypeAlias = Literal["balanced_accuracy", "accuracy_under_target"]


@dataclass(frozen=True, eq=False)
class SweepPoint:
    """One choice of values, measured over its finished runs."""

    values: tuple[str, ...]  # of the keys that vary
    seeds: tuple[int, ...]  # of the finished runs
    variant: str  # how its runs predict: as trained, or moved to the target
    metrics: Mapping[Split, Mapping[str, Estimate]]  # by part, each with its interval


@dataclass(frozen=True, eq=False)
class SweepResult(Result):
    """All points of a sweep that have a finished run."""

    recipe: str  # its name
    keys: tuple[str, ...]  # those that vary
    points: tuple[SweepPoint, ...]
    accuracy: Accuracy  # what points are chosen and shown by
    failed: tuple[tuple[str, str], ...]  # runs and what they said
    command: str = "longtail.sweep"

    kind: ClassVar[str] = "sweep"

    @property
    def chosen(self) -> SweepPoint | None:
        """The point that is the best on the validation part; None where there is no such part."""
        validated = [point for point in self.points if self._validated(point) is not None]
        return (
            max(validated, key=lambda point: self._validated(point) or 0.0) if validated else None
        )

    @property
    def overlapping(self) -> tuple[SweepPoint, ...]:
        """Other points whose intervals on the validation part overlap with that of the chosen.

        That is no test: points of the same samples may differ where their intervals overlap.
        """
        if (chosen := self.chosen) is None:
            return ()
        best = chosen.metrics["validation"][self.accuracy]
        others = (point for point in self.points if point is not chosen)
        return tuple(
            point
            for point in others
            if self.measure(point, "validation", self.accuracy).overlaps(best)
        )

    @property
    def axis(self) -> tuple[float, ...] | None:
        """The values of the key that varies, where it is a single one and they are numbers."""
        if len(self.keys) != 1:
            return None
        try:
            numbers = tuple(float(point.values[0]) for point in self.points)
        except ValueError:
            return None
        return numbers if len(numbers) > 1 and all(map(math.isfinite, numbers)) else None

    def measure(self, point: SweepPoint, split: Split, key: str) -> Estimate:
        """A metric of a point on a part; without a value where there is none."""
        return point.metrics.get(split, {}).get(key, Estimate(None))

    def _validated(self, point: SweepPoint) -> float | None:
        return self.measure(point, "validation", self.accuracy).value

    def as_json(self) -> dict[str, Any]:
        """Everything that is a number or a name."""
        chosen = self.chosen
        return {
            "recipe": self.recipe,
            "keys": list(self.keys),
            "accuracy": self.accuracy,
            "chosen_by": "validation",
            "chosen": None if chosen is None else list(chosen.values),
            "intervals_overlap": [list(point.values) for point in self.overlapping],
            "points": [
                {
                    "values": list(point.values),
                    "seeds": list(point.seeds),
                    "variant": point.variant,
                    "metrics": {
                        split: {key: asdict(value) for key, value in metrics.items()}
                        for split, metrics in point.metrics.items()
                    },
                }
                for point in self.points
            ],
            "failed": dict(self.failed),
        }

    def write(self, folder: Path) -> None:
        """Write sweep.json into a folder."""
        head = {"version": __version__, "command": self.command}
        write_json(folder / SWEEP_RESULT, head | self.as_json())
