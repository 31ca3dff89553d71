"""A plan that is looked at: each recipe and its data are read and built, and nothing is trained."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from longtail.flows.reproduce.experiment import Train
from longtail.flows.reproduce.plan import Plan
from longtail.flows.train.reading import overridden
from longtail.flows.train.recipe import Recipe
from longtail.flows.train.train import Plan as TrainingPlan
from longtail.flows.train.train import planned


@dataclass(frozen=True)
class DryRun:
    """What would run."""

    plan: Plan
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


def dry_run(plan: Plan, recipe_of: Callable[[Train], Recipe]) -> DryRun:
    """Build every training run whose data are there, once for all seeds."""
    built, refused = dict[str, TrainingPlan](), dict[str, str]()
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
