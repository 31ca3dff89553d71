"""What `longtail reproduce --dry-run` says: runs, hours, what is missing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from longtail.flows.reproduce.dry_run import DryRun
    from longtail.flows.reproduce.plan import PlannedRun


def plan_in_words(dry: DryRun, jobs: int) -> Iterator[str]:
    """A line a run, then what they take and what is missing."""
    plan = dry.plan
    yield f"{plan.experiment.name}, setting: {plan.settled.setting}. {plan.settled.note}".strip()
    for each in plan.runs:
        yield _line(dry, each)
    if not plan.left:
        yield "Nothing is left to run."
    elif plan.hours is None:
        yield "How long it takes is not known: this setting is meant for a GPU."
    else:
        yield f"About {plan.hours:.1f} hours of one thread, {jobs} runs at a time."
    for name in plan.absent:
        yield f"Missing: {name}; give it with --data {name}=PATH"


def _line(dry: DryRun, each: PlannedRun) -> str:
    text = f"  {each.name}: {each.state}"
    if each.heads:
        text += f", then {len(each.heads)} heads on its features"
    if each.measures:
        text += f", then {', '.join(each.measures)}"
    if each.name in dry.refused:
        return f"{text}; cannot be built: {dry.refused[each.name]}"
    built = dry.built.get(each.name)
    if built is None:
        return text
    return (
        f"{text}; {built.training_images:,} images of {built.classes} classes, {built.steps:,} "
        f"steps, {built.parameters:,} parameters"
    )
