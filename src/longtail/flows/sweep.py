"""sweep: a recipe at every point of a grid of values, and which point the validation part chooses.

    longtail sweep NAME loss.tau=0.5,1,1.5 --data PATH -o OUT

A run is a folder of its own in OUT/runs: what is finished is never trained again, what broke off
is resumed, and a later sweep with more values or seeds adds to it. Only the validation part
chooses: a point that was chosen on the test part would be no estimate of anything.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from longtail.core.files import read_whole
from longtail.core.scores import Split
from longtail.data.tables.errors import reading
from longtail.flows.file_names import METRICS
from longtail.flows.generation import generation
from longtail.flows.sweep_result import Accuracy, SweepPoint, SweepResult
from longtail.flows.train.many import Ended, Job, State, states_of, train_many
from longtail.flows.train.reading import RecipeError, overridden, recipe_from
from longtail.flows.train.recipe import Recipe
from longtail.stats import Estimate, Interval, estimate

RUNS = "runs"
_OPEN, _CLOSE = "[{(", "]})"
_NO_NAME = re.compile(r"[^\w.,=+-]+")  # what is no part of a folder's name


class SweptRun(NamedTuple):
    """A run of a sweep, and how far it is."""

    values: tuple[str, ...]  # of the keys that vary, as they were written
    seed: int
    job: Job
    state: State


def sweep(
    recipe: Recipe | Mapping[str, object],
    settings: Iterable[str],
    folder: str | os.PathLike[str],
    *,
    seeds: Sequence[int] | None = None,
    at_once: int | None = None,
    name: str = "recipe",
    page: Callable[[SweepResult, Path], object] = lambda result, folder: None,
    progress: Callable[[Ended], None] = lambda ended: None,
    command: str = "longtail.sweep",
) -> SweepResult:
    """Train the recipe at every point of a grid, and measure the points.

    Args:
        recipe: What to start from: a value, or the keys and values of a recipe file.
        settings: `key=value` as on the command line; several values have commas between them.
        folder: For the runs, and what is found; made if it is not there.
        seeds: Of the runs of each point; by default that of the recipe.
        at_once: Runs at a time, each a process of one thread; by default as many as cores.
        name: What the recipe is called.
        page: Writes a page on the result beside sweep.json: `longtail.report.save`.
        progress: Called for each run that is over.
        command: What the page says has made it.
    """
    changes = list(settings)
    keys, runs = planned_runs(recipe, changes, folder, seeds=seeds, name=name)
    ended = train_many([run.job for run in runs], at_once, progress)
    failed = tuple((each.job.folder.name, each.error) for each in ended if each.how == "failed")
    finished = [run for run, each in zip(runs, ended, strict=True) if each.how != "failed"]
    by_values: dict[tuple[str, ...], list[SweptRun]] = {}
    for run in finished:
        by_values.setdefault(run.values, []).append(run)
    uniform = all(run.job.recipe.target.prior == "uniform" for run in runs)
    accuracy: Accuracy = "balanced_accuracy" if uniform else "accuracy_under_target"
    points = tuple(_measured(values, own) for values, own in by_values.items())
    result = SweepResult(name, keys, points, accuracy, failed, command)
    if points:
        with generation(Path(folder), "sweep") as aside:
            result.write(aside)
            page(result, aside)
    return result


def planned_runs(
    recipe: Recipe | Mapping[str, object],
    settings: Sequence[str],
    folder: str | os.PathLike[str],
    *,
    seeds: Sequence[int] | None = None,
    name: str = "recipe",
) -> tuple[tuple[str, ...], list[SweptRun]]:
    """The keys that vary, and every run with how far it is; nothing is trained.

    >>> start = {"data": {"kind": "cifar100", "path": "."}, "loss": "elm"}
    >>> keys, runs = planned_runs(start, ["loss.lam=1e-3,1e-2", "epochs=3"], "out", seeds=[0, 1])
    >>> keys, [run.job.folder.name for run in runs][:2]
    (('loss.lam',), ['loss.lam=1e-3-s0', 'loss.lam=1e-3-s1'])
    """
    base = recipe if isinstance(recipe, Recipe) else recipe_from(recipe)
    choices: list[tuple[str, ...]] = []
    for setting in settings:
        choices.append(_choices(base, [each[0] for each in choices], setting))
    keys = tuple(each[0].partition("=")[0] for each in choices if len(each) > 1)
    drawn = [base.seed] if seeds is None else list(seeds)
    if not drawn or len(set(drawn)) < len(drawn):
        raise RecipeError(f"seeds must be one or more, each once, got {drawn}")
    if "seed" in keys and seeds is not None:
        raise RecipeError("seed has several values, and so do the seeds; give one of them")
    planned: list[tuple[tuple[str, ...], Job]] = []
    for point in product(*choices):
        varied = [each for each in point if each.partition("=")[0] in keys]
        values = tuple(each.partition("=")[2] for each in varied)
        title = _NO_NAME.sub("_", ",".join(varied) or name)
        for seed in drawn:
            seeded = [] if "seed" in keys or seeds is None else [f"seed={seed}"]
            made = overridden(base, [*point, *seeded])
            job = Job(made, Path(folder) / RUNS / f"{title}-s{made.seed}", name)
            planned.append((values, job))
    folders = {job.folder for _, job in planned}
    recipes = {msgspec.json.encode(replace(job.recipe, about="")) for _, job in planned}
    if min(len(folders), len(recipes)) < len(planned):  # 1 and 1.0 are one value
        raise RecipeError(f"a value is given twice in {' '.join(settings)}; give it once")
    states = states_of([job for _, job in planned])
    return keys, [
        SweptRun(values, job.recipe.seed, job, state)
        for (values, job), state in zip(planned, states, strict=True)
    ]


def _choices(recipe: Recipe, before: Sequence[str], setting: str) -> tuple[str, ...]:
    """A setting for each value; one that is a value as it is, such as groups=..., is one."""
    key, _, text = setting.partition("=")
    several = tuple(f"{key}={value}" for value in _split(text))
    if len(several) == 1:
        return (setting,)
    if key == "start" and not os.path.exists(text):  # any text would do
        return several
    try:
        overridden(recipe, [*before, setting])
    except RecipeError:
        return several
    return (setting,)


def _split(text: str) -> list[str]:
    """The values between commas, but for those in brackets.

    >>> _split("1e-3, 1e-2"), _split("[crop, flip],[]"), _split("uniform")
    (['1e-3', '1e-2'], ['[crop, flip]', '[]'], ['uniform'])
    """
    values, depth = [""], 0
    for sign in text:
        depth += (sign in _OPEN) - (sign in _CLOSE)
        if sign == "," and not depth:
            values.append("")
        else:
            values[-1] += sign
    return [value.strip() for value in values]


class _Metrics(msgspec.Struct):
    """What is read of the METRICS of a run."""

    headline: str
    metrics: dict[Split, dict[str, dict[str, Interval]]]


def _measured(values: tuple[str, ...], runs: Sequence[SweptRun]) -> SweepPoint:
    per_run = []
    for run in runs:
        file = run.job.folder / METRICS
        with reading(file, "the metrics of a run"):
            of_run = msgspec.json.decode(read_whole(file), type=_Metrics)
            per_run.append({key: each[of_run.headline] for key, each in of_run.metrics.items()})
    metrics: dict[Split, dict[str, Estimate]] = {
        split: {key: estimate([each[split][key] for each in per_run]) for key in keys}
        for split, keys in per_run[0].items()
    }
    seeds = tuple(run.seed for run in runs)
    return SweepPoint(values, seeds, of_run.headline, metrics)
