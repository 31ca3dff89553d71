"""What there is to run: the list of all experiments, and a plan that is looked at.

The list is made without NumPy. For a plan each recipe and its data are read and built, and nothing
is trained.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from longtail.flows.file_names import METRICS
from longtail.flows.reproduce.experiment import Experiment, Inspect, Train
from longtail.flows.reproduce.plan import (
    KEPT,
    NUMBERS,
    RUNS,
    SCORES,
    ExperimentPlan,
    RunNames,
    settled,
)
from longtail.flows.train.recipe import Recipe

if TYPE_CHECKING:
    from longtail.flows.train.train import TrainingPlan


class Listed(NamedTuple):
    """An experiment in a line."""

    name: str
    paper: str
    item: str
    about: str
    needs: tuple[str, ...]  # in the paper's setting
    quick: bool  # whether there is another setting for a CPU
    quick_needs: tuple[str, ...]
    hours: float | None  # of one thread; None if nothing is run, or a GPU is meant
    cells: int  # of the setting for a CPU, if there is one
    finished: int | None  # of them; None without a folder of results


def listed(experiments: Iterable[Experiment], names: RunNames, folder: Path | None) -> list[Listed]:
    """Every experiment: what it takes, and what of it is finished in a folder of results."""
    rows = []
    for each in experiments:
        chosen = settled(each, quick=True)
        runs = {cell.run for cell in chosen.cells}
        there = {
            run
            for run in runs
            if isinstance(run, Inspect)
            or (folder and any(is_there(folder, names(run, seed)) for seed in chosen.seeds))
        }
        finished = sum(cell.run in there for cell in chosen.cells)
        quick_needs = each.quick.needs if each.quick else ()
        words = each.name, each.paper, each.item, each.about, each.needs
        starts = {first for run in runs if (first := names.start_of(run))} - runs
        hours = each.hours
        if hours is not None:
            hours += len(chosen.seeds) * sum(first.hours or 0.0 for first in starts)
        takes = each.quick is not None, quick_needs, hours, len(chosen.cells)
        rows.append(Listed(*words, *takes, None if folder is None else finished))
    return rows


def is_there(folder: Path, name: str) -> bool:
    """Whether a run is finished in a folder of results, or kept in it."""
    done = (folder / RUNS / name / each for each in (METRICS, NUMBERS))
    kept = (home / f"{name}.{end}" for home in (folder, folder / SCORES) for end in KEPT)
    return any(file.is_file() for file in (*done, *kept))


@dataclass(frozen=True)
class DryRun:
    """What would run."""

    plan: ExperimentPlan
    built: dict[str, TrainingPlan]  # by the run's name
    refused: dict[str, str]  # what cannot be built here, and why

    def as_json(self) -> dict[str, Any]:
        """Everything that is a number or a word."""
        return {
            "name": self.plan.experiment.name,
            "setting": self.plan.settled.setting,
            "note": self.plan.settled.note,
            "seeds": list(self.plan.seeds),
            "hours": self.plan.hours,
            "missing_data": list(self.plan.absent),
            "runs": [
                {
                    "name": each.name,
                    "state": each.state,
                    "hours": each.run.hours,
                    "data": each.needs,
                    "heads": [head for head, _ in each.heads],
                    "measures": list(each.measures),
                    "plan": self.built[each.name]._asdict() if each.name in self.built else None,
                    "error": self.refused.get(each.name),
                }
                for each in self.plan.runs
            ],
        }


def dry_run(plan: ExperimentPlan, recipe_of: Callable[[Train], Recipe]) -> DryRun:
    """Build every training run whose data are there, once for all seeds."""
    from longtail.flows.train.reading import overridden
    from longtail.flows.train.train import planned

    built: dict[str, TrainingPlan] = {}
    refused: dict[str, str] = {}
    of_run: dict[Train, str] = {}  # the first seed's name
    for each in plan.left:
        if not isinstance(each.run, Train) or each.needs not in plan.data:
            continue
        first = of_run.setdefault(each.run, each.name)
        if first != each.name:
            made, error = built.get(first), refused.get(first)
            built |= {each.name: made} if made else {}
            refused |= {each.name: error} if error else {}
            continue
        changes = [f"data.path={plan.data[each.needs]}", f"seed={each.seed}"]
        if each.run.start:  # what it begins with may not be trained yet
            changes.append("start=null")
        try:
            built[each.name] = planned(overridden(recipe_of(each.run), changes))
        except (ValueError, OSError, ImportError) as refusal:
            refused[each.name] = str(refusal)
    return DryRun(plan, built, refused)
