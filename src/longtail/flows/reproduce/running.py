"""Runs as one job: so many processes of one thread each, and never one run in two of them.

A training run is `longtail train`, which resumes; what else there is to do for a run is done here,
`python -m longtail.flows.reproduce.running TASK`. Each process locks what it writes to, so that two
jobs on one folder share the work: what another is at is waited for, what it has finished is not
done again. Whatever ends a job leaves all that is finished, and the rest to be resumed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from longtail.flows.file_names import METRICS
from longtail.flows.reproduce.experiment import Fit, Synthetic, Train
from longtail.flows.reproduce.plan import (
    AFTER,
    LOCKS,
    LOGS,
    NUMBERS,
    RUNS,
    ExperimentPlan,
    changes_of,
    head_file,
    heads_left,
    measures_left,
    state_of,
)
from longtail.flows.subprocesses import Process, ended_together, is_taken, over, started

Event: TypeAlias = Literal["started", "finished", "failed", "elsewhere"]
Progress: TypeAlias = Callable[[str, Event], None]


class Task(msgspec.Struct, frozen=True):
    """What is to be done for one run of one seed, beside training it."""

    results: str
    name: str
    run: Train | Fit | Synthetic
    seed: int
    heads: tuple[tuple[str, str], ...]
    measures: tuple[str, ...]  # of a training run's features and head
    data: dict[str, str]
    path: str  # of the images of a training run

    @property
    def folder(self) -> Path:
        """Of the run."""
        return Path(self.results) / RUNS / self.name

    @property
    def numbers(self) -> Path:
        """Where its measures are."""
        return Path(self.results) / AFTER / self.name / NUMBERS

    @property
    def is_trained(self) -> bool:
        """Whether the run itself is finished."""
        return state_of(Path(self.results), self.name, self.run) == "finished"

    @property
    def heads_left(self) -> tuple[tuple[str, str], ...]:
        """Heads whose scores are not there."""
        return heads_left(Path(self.results), self.name, self.heads)

    @property
    def is_done(self) -> bool:
        """Whether there is nothing left to do."""
        return self.left == (False, (), ())

    @property
    def left(self) -> tuple[bool, tuple[tuple[str, str], ...], tuple[str, ...]]:
        """What is left to do: the run itself, heads, measures."""
        return not self.is_trained, self.heads_left, self.measures_left

    @property
    def measures_left(self) -> tuple[str, ...]:
        """Measures that were not looked for yet."""
        return measures_left(Path(self.results), self.name, self.measures)

    @property
    def is_elsewhere(self) -> bool:
        """Whether another process is at it."""
        return is_taken(self.folder) or is_taken(self.lock)

    @property
    def start(self) -> str:
        """The name of the run that has to be finished before; "" for none."""
        begins = self.run.start if isinstance(self.run, Train) else ""
        return f"{begins}-s{self.seed}" if begins else ""

    @property
    def is_ready(self) -> bool:
        """Whether what it begins with is there."""
        return not self.start or (Path(self.results) / RUNS / self.start / METRICS).is_file()

    @property
    def lock(self) -> Path:
        """What is locked while something beside training is done."""
        return Path(self.results) / LOCKS / self.name


def tasks(plan: ExperimentPlan, results: Path) -> list[Task]:
    """What is left of a plan to do."""
    paths = {name: os.path.abspath(path) for name, path in plan.data.items()}
    return [
        Task(
            os.path.abspath(results),
            each.name,
            each.run,
            each.seed,
            each.heads,
            each.measures,
            paths,
            paths.get(each.needs, ""),
        )
        for each in plan.left
    ]


def command(task: Task) -> list[str]:
    """What does the next step of a task."""
    if isinstance(task.run, Train) and not task.is_trained:
        train = [sys.executable, "-m", "longtail", "train", task.run.recipe, *task.run.overrides]
        where = ["--data", task.path, "-o", str(task.folder), "--quiet"]
        return [*train, *changes_of(task.run, task.seed, Path(task.results)), *where]
    return [
        sys.executable,
        "-m",
        "longtail.flows.reproduce.running",
        msgspec.json.encode(task).decode(),
    ]


def run_all(
    todo: Sequence[Task], jobs: int, progress: Progress = lambda name, event: None
) -> list[str]:
    """Do all tasks, so many at a time; the names of those that failed, whose logs say why."""
    waiting, failed = list(todo), list[str]()
    for log in (log_file(Path(task.results), task.name) for task in todo):
        if os.path.lexists(log) and not log.is_file():  # a pipe would be waited for
            raise ValueError(f"{log} is no plain file, and a log is to be written there; remove it")
    left = {task.name: task.left for task in todo}
    again: set[str] = set()  # a first failure may be that another looked at the folder just then

    running: dict[Process, Task] = {}
    with ended_together(running):
        while waiting or running:
            for task in [each for each in waiting if each.is_ready or each.start in failed]:
                if len(running) >= jobs:
                    break
                if task.is_elsewhere:
                    progress(task.name, "elsewhere")
                    continue
                waiting.remove(task)
                if task.start in failed:
                    failed.append(task.name)
                    progress(task.name, "failed")
                elif task.is_done:
                    progress(task.name, "finished")
                else:
                    running[_started(task)] = task
                    progress(task.name, "started")
            for task, code in over(running):
                before, left[task.name] = left[task.name], task.left
                if code == 0 and task.is_done:
                    progress(task.name, "finished")
                elif (code == 0 and task.left != before) or task.is_elsewhere or task.is_done:
                    waiting.append(task)  # the next step, or another process was faster
                elif task.name not in again:
                    again.add(task.name)
                    waiting.append(task)
                else:
                    failed.append(task.name)
                    progress(task.name, "failed")
    return failed


def log_file(results: Path, name: str) -> Path:
    """What a run's processes said."""
    return results / LOGS / f"{name}.log"


def _started(task: Task) -> Process:
    log = log_file(Path(task.results), task.name)
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as file:
        return started(command(task), file)


def work(task: Task) -> None:
    """All but the training of a run, in this process."""
    from longtail.core.files import locked

    with locked(task.lock):
        if isinstance(task.run, Train):
            if task.heads_left:
                fit_heads(Path(task.results), task.name, task.heads_left, Path(task.path))
            if task.measures_left:
                measure_run(task.folder, task.measures_left, Path(task.path), task.numbers)
        elif not task.is_trained:
            data = {name: Path(path) for name, path in task.data.items()}
            if isinstance(task.run, Fit):
                from longtail.flows.reproduce import fits

                fits.run(task.run, task.seed, task.folder, data)
            else:
                from longtail.flows.reproduce import synthetic

                synthetic.run(task.run, task.seed, task.folder)


def fit_heads(results: Path, name: str, heads: Sequence[tuple[str, str]], data: Path) -> None:
    """Write the scores of each head, given as a recipe writes it, with its batch norm.

    The head is no part of the run: whatever second stage its recipe has is left out.
    """
    from longtail.flows.reproduce.kept import model_of, sign
    from longtail.flows.train.building import read_data
    from longtail.flows.train.model_file import load_model
    from longtail.flows.train.reading import overridden
    from longtail.flows.train.scores import second_stage

    stored = load_model(results / RUNS / name)
    plain = overridden(stored.recipe, ["second_stage=null", f"data.path={data}"])
    images = read_data(plain.data)
    for batch_norm in dict.fromkeys(each for _, each in heads):
        chosen = [head for head, each in heads if each == batch_norm]
        recipe = overridden(
            plain,
            [f"second_stage.heads=[{', '.join(chosen)}]", f"second_stage.batch_norm={batch_norm}"],
        )
        made = second_stage(recipe, stored.model, images, stored.normalize)
        for head, variant in zip(chosen, made, strict=True):
            file = head_file(results, name, head, batch_norm)
            file.parent.mkdir(parents=True, exist_ok=True)
            variant.scores["test"].save(file)
            sign(file, model_of(results / RUNS / name))


def measure_run(folder: Path, names: Sequence[str], data: Path, output: Path) -> None:
    """Add measures of a run's features and head to a file of numbers; null for what it has not."""
    from longtail.flows.reproduce.inspect import measure
    from longtail.flows.reproduce.kept import check_signed, model_of, read_numbers
    from longtail.flows.results import write_json

    model, before = model_of(folder), dict[str, object]()
    if output.is_file():
        check_signed(output, model)
        before = read_numbers(output)
    made = measure(folder, names, data=data)
    output.parent.mkdir(parents=True, exist_ok=True)
    write_json(output, model | before | {name: _rounded(made.get(name)) for name in names})


def _rounded(value: object) -> object:
    """Six digits: numbers are kept as text."""
    if value is None:
        return None
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    if not isinstance(value, str) and hasattr(value, "tolist"):  # an array; NumPy is not imported
        return _rounded(value.tolist())
    return float(f"{float(str(value)):.6g}")


if __name__ == "__main__":
    work(msgspec.json.decode(sys.argv[1], type=Task))
