"""What an experiment comes to here: its runs, each once, what there is of them, what they need.

Cells share runs, and so do experiments: a run is its recipe and what is changed in it, and its
folder is called the same whichever experiment asks for it. Nothing here imports NumPy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from longtail.flows.file_names import METRICS, VERSIONS
from longtail.flows.reproduce.experiment import (
    Cell,
    Experiment,
    Fit,
    Inspect,
    Run,
    Synthetic,
    Train,
)
from longtail.flows.train.recipe import Cifar10, CifarSet, Recipe

Setting: TypeAlias = Literal["the paper's", "ours", "quick"]
State: TypeAlias = Literal["finished", "begun", "to do"]
RUNS, SCORES, AFTER, LOCKS, LOGS = "runs", "scores", "after", "locks", "logs"
NUMBERS = "numbers.json"
KEPT = ("safetensors", "answers.safetensors", "json")  # how files that are kept of a run end
_FEATURES = {"cifar100": "cifar100-features", "caltech": ""}  # Caltech's are in the package
_LISTS = ("imagenet-lt", "places-lt", "inaturalist", "sun397")
_NO_NAME = re.compile(r"[^\w.,=-]+")


class Settled(NamedTuple):
    """An experiment in one of its settings."""

    setting: Setting
    cells: tuple[Cell, ...]
    seeds: tuple[int, ...]
    note: str  # what stands in for what


def settled(experiment: Experiment, quick: bool) -> Settled:
    """The paper's setting, or the one for a CPU, which of some experiments is the paper's."""
    if quick and experiment.quick is not None:
        small = experiment.quick
        return Settled("quick", small.cells, small.seeds, small.note)
    own: Setting = "ours" if experiment.paper == "ours" else "the paper's"
    return Settled(own, experiment.cells, experiment.seeds, "")


class RunNames:
    """What the folders of runs are called: as they are named, or else as they are set.

    >>> names = RunNames({"ce": Train("cifar100-lt-ce-quick", hours=1.0)})
    >>> names(Train("cifar100-lt-ce-quick"), 0), names(Fit("cifar100", 100.0), 1)
    ('ce-s0', 'fit-cifar100-100-s1')
    >>> names(Train("cifar100-lt-ce-quick", ("loss=focal", "epochs=3")), 0)
    'cifar100-lt-ce-quick,loss=focal,epochs=3-s0'
    """

    def __init__(self, named: Mapping[str, Run]) -> None:
        self._named = named
        self._names = {_described(run): name for name, run in named.items()}

    def __call__(self, run: Run, seed: int) -> str:
        """That of one seed."""
        text = _described(run)
        return f"{self._names.get(text) or _NO_NAME.sub('-', text).strip('-')}-s{seed}"

    def start_of(self, run: Run) -> Train | None:
        """The run whose backbone it begins with, if any."""
        first = self._named[run.start] if isinstance(run, Train) and run.start else None
        return first if isinstance(first, Train) else None


def _described(run: Run) -> str:
    if isinstance(run, Fit):
        ratio = "" if run.imbalance_ratio is None else f"-{run.imbalance_ratio:g}"
        return f"fit-{run.features}{ratio}"
    if isinstance(run, Synthetic):
        return f"{run.problem}-{run.trials}"
    begun = (f"start={run.start}",) if isinstance(run, Train) and run.start else ()
    return ",".join((run.recipe, *run.overrides, *begun))


def changes_of(run: Train, seed: int, folder: Path | None) -> list[str]:
    """What is changed in the recipe of a run for a seed: where there are results, the start too."""
    if folder is None or not run.start:
        return [f"seed={seed}"]
    return [f"seed={seed}", f"start={folder / RUNS / run.start}-s{seed}"]


def head_name(head: str, batch_norm: str = "keep") -> str:
    """What the file of a second-stage head is called.

    >>> head_name("{name: learned_ncm, tau: 0.125}", "reestimate")
    'name-learned_ncm,-tau-0.125+bn'
    """
    name = _NO_NAME.sub("-", head).strip("-")
    return name + batch_norm.replace("keep", "").replace("reestimate", "+bn")


@dataclass(frozen=True)
class PlannedRun:
    """A run of one seed, and what is still to be done of it."""

    name: str
    run: Train | Fit | Synthetic
    seed: int
    state: State
    heads: tuple[tuple[str, str], ...]  # second-stage heads that are not there, and batch norm
    measures: tuple[str, ...]  # of features and head, that were not looked for yet
    needs: str  # the data, "" for none

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to do."""
        return self.state == "finished" and not self.heads and not self.measures


@dataclass(frozen=True)
class ExperimentPlan:
    """The runs of an experiment in one setting."""

    experiment: Experiment
    settled: Settled
    seeds: tuple[int, ...]
    runs: tuple[PlannedRun, ...]
    data: Mapping[str, Path]

    @cached_property
    def left(self) -> tuple[PlannedRun, ...]:
        """What is not finished."""
        return tuple(run for run in self.runs if not run.is_done)

    @property
    def absent(self) -> tuple[str, ...]:
        """Data that what is left needs and whose place is unknown."""
        needed = {run.needs for run in self.left if run.needs}
        return tuple(sorted(needed - set(self.data)))

    @property
    def hours(self) -> float | None:
        """About how long one thread takes for runs that are not finished; None on a GPU."""
        to_do = [each.run.hours for each in self.left if each.state != "finished"]
        return None if None in to_do else sum(hours or 0.0 for hours in to_do)


def plan(
    experiment: Experiment,
    folder: Path | None,
    names: RunNames,
    data_of: Callable[[Train], str],
    *,
    quick: bool = False,
    seeds: Sequence[int] | None = None,
    data: Mapping[str, Path] | None = None,
) -> ExperimentPlan:
    """The runs that an experiment asks for, and what of them is in the folder of results.

    Args:
        experiment: What to plan.
        folder: Of results; None if there is none yet.
        names: What runs are called.
        data_of: Which data a training run needs, as `needed_data` says.
        quick: The setting for a CPU.
        seeds: By default those of the setting.
        data: Where data are, by the names of `Needs`.
    """
    from longtail.flows.reproduce.ways import measures_asked  # which imports NumPy

    chosen = settled(experiment, quick)
    drawn = chosen.seeds if seeds is None else tuple(seeds)
    runs: dict[str, tuple[Train | Fit | Synthetic, list[tuple[str, str]]]] = {}
    for cell in chosen.cells:
        if isinstance(cell.run, Inspect):
            continue
        _, heads = runs.setdefault(names(cell.run, 0), (cell.run, []))
        asked = (cell.head, cell.batch_norm)
        if isinstance(cell.run, Train) and cell.head and asked not in heads:
            heads.append(asked)
    measures = {names(run, 0): of_run for run, of_run in measures_asked([experiment]).items()}

    def of_seed(run: Train | Fit | Synthetic, seed: int) -> PlannedRun:
        name, first = names(run, seed), names(run, 0)
        heads = runs[first][1] if first in runs else []
        return _planned(name, run, seed, folder, heads, measures.get(first, ()), data_of)

    planned: dict[str, PlannedRun] = {}
    for seed in drawn:
        for run, _ in runs.values():
            made, begins_with = of_seed(run, seed), names.start_of(run)
            if begins_with is not None and made.state != "finished":
                planned.setdefault(names(begins_with, seed), of_seed(begins_with, seed))
            planned[made.name] = made
    return ExperimentPlan(experiment, chosen, drawn, tuple(planned.values()), dict(data or {}))


def _planned(
    name: str,
    run: Train | Fit | Synthetic,
    seed: int,
    folder: Path | None,
    heads: Sequence[tuple[str, str]],
    measures: Sequence[str],
    data_of: Callable[[Train], str],
) -> PlannedRun:
    if isinstance(run, Train):
        needs = data_of(run)
    else:
        needs = _FEATURES.get(run.features, run.features) if isinstance(run, Fit) else ""
    heads = heads_left(folder, name, heads)
    measures = measures_left(folder, name, measures) if isinstance(run, Train) else ()
    return PlannedRun(name, run, seed, state_of(folder, name, run), heads, measures, needs)


def state_of(folder: Path | None, name: str, run: Run) -> State:
    """What there is of a run, which is finished with the file that its executor writes last."""
    run_folder = None if folder is None else folder / RUNS / name
    if run_folder is None or not run_folder.is_dir():
        return "to do"
    if (run_folder / (NUMBERS if isinstance(run, Synthetic) else METRICS)).is_file():
        return "finished"
    return "begun" if (run_folder / VERSIONS).is_file() else "to do"


def head_file(folder: Path, name: str, head: str, batch_norm: str) -> Path:
    """Where the test scores of a second-stage head are."""
    return folder / AFTER / name / f"{head_name(head, batch_norm)}.safetensors"


def heads_left(
    folder: Path | None, name: str, heads: Sequence[tuple[str, str]]
) -> tuple[tuple[str, str], ...]:
    """Heads whose scores are not there."""
    return tuple(
        head for head in heads if folder is None or not head_file(folder, name, *head).is_file()
    )


def measures_left(folder: Path | None, name: str, measures: Sequence[str]) -> tuple[str, ...]:
    """Measures that were not looked for yet; those that a run cannot have were, and are null."""
    file = None if folder is None else folder / AFTER / name / NUMBERS
    if not measures or file is None or not file.is_file():
        return tuple(measures)
    try:
        looked = msgspec.json.decode(file.read_bytes(), type=dict[str, object])
    except msgspec.MsgspecError:  # the process of the run says it, and no other ends with it
        looked = {}
    return tuple(each for each in measures if each not in looked)


def needed_data(name: str, recipe: Recipe) -> str:
    """The data that a recipe is for: one on list files says so by how its name begins."""
    if isinstance(recipe.data, CifarSet):
        return "cifar10" if isinstance(recipe.data, Cifar10) else "cifar100"
    return next((each for each in _LISTS if name.startswith(each)), name)
