"""Runs as one job: so many processes of one thread each, and never one run in two of them.

A training run is `longtail train`, which resumes; what else there is to do for a run is done here,
`python -m longtail.flows.reproduce.running TASK`. Each process locks what it writes to, so that two
jobs on one folder share the work: what another is at is waited for, what it has finished is not
done again. Whatever ends a job leaves all that is finished, and the rest to be resumed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from longtail.flows.file_names import METRICS
from longtail.flows.generation import check_free
from longtail.flows.reproduce.experiment import Fit, Synthetic, Train
from longtail.flows.reproduce.plan import (
    AFTER,
    LOCKS,
    LOGS,
    NUMBERS,
    RUNS,
    PlannedRun,
    changes_of,
    head_file,
    state_of,
)

_PAUSE = 0.2  # seconds between two looks at what runs
_PATIENCE = 10.0  # seconds that a process is given to end
_THREADS = {name: "1" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
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
        results = Path(self.results)
        return tuple(
            each for each in self.heads if not head_file(results, self.name, *each).is_file()
        )

    @property
    def is_done(self) -> bool:
        """Whether there is nothing left to do."""
        return self.is_trained and not self.heads_left and not self.measures_left

    @property
    def measures_left(self) -> tuple[str, ...]:
        """Measures that nobody has looked for: of those that a run cannot have there is none."""
        if not self.measures:
            return ()
        from longtail.flows.reproduce.stored import read_numbers

        try:
            looked = read_numbers(self.numbers) if self.numbers.is_file() else {}
        except ValueError:  # which the process of the run says, and no other run ends with
            looked = {}
        return tuple(each for each in self.measures if each not in looked)

    @property
    def is_elsewhere(self) -> bool:
        """Whether another process is at it."""
        try:
            for folder in (self.folder, self.lock):
                check_free(folder)
        except BlockingIOError:
            return True
        return False

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


def tasks(
    runs: Sequence[PlannedRun],
    results: Path,
    data: Mapping[str, Path],
    measures: Mapping[str, Sequence[str]],
) -> list[Task]:
    """The tasks of a plan; `measures` are those asked of each run, by its name without seed."""
    paths = {name: os.path.abspath(path) for name, path in data.items()}
    return [
        Task(
            os.path.abspath(results),
            each.name,
            each.run,
            each.seed,
            each.heads,
            tuple(measures.get(each.name, ())) if isinstance(each.run, Train) else (),
            paths,
            paths.get(each.needs, ""),
        )
        for each in runs
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
    waiting, running, failed = list(todo), dict[subprocess.Popen[bytes], Task](), list[str]()
    again: set[str] = set()  # a first failure may be that another looked at the folder just then
    try:
        while waiting or running:
            for task in list(waiting):
                if len(running) >= jobs:
                    break
                if task.start in failed:
                    waiting.remove(task)
                    failed.append(task.name)
                    progress(task.name, "failed")
                    continue
                if not task.is_ready:
                    continue
                if task.is_elsewhere:
                    progress(task.name, "elsewhere")
                    continue
                waiting.remove(task)
                if not task.is_done:
                    running[_started(task)] = task
                    progress(task.name, "started")
            time.sleep(_PAUSE)
            for process in [each for each in running if each.poll() is not None]:
                task = running.pop(process)
                if process.returncode == 0 and task.is_done:
                    progress(task.name, "finished")
                elif process.returncode == 0 or task.is_elsewhere or task.is_done:
                    waiting.append(task)  # the next step, or somebody else was faster
                elif task.name not in again:
                    again.add(task.name)
                    waiting.append(task)
                else:
                    failed.append(task.name)
                    progress(task.name, "failed")
    finally:
        for process in running:
            process.terminate()
        for process in running:
            _ended(process)
    return failed


def log_file(results: Path, name: str) -> Path:
    """What a run's processes said."""
    return results / LOGS / f"{name}.log"


def _started(task: Task) -> subprocess.Popen[bytes]:
    log = log_file(Path(task.results), task.name)
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as file:
        return subprocess.Popen(
            command(task),
            env=os.environ | _THREADS | {"OMP_WAIT_POLICY": "PASSIVE"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=file,
            start_new_session=True,  # Ctrl-C is for the job, which then ends them
        )


def _ended(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def work(task: Task) -> None:
    """All but the training of a run, in this process."""
    from longtail.core.files import locked

    with locked(task.lock):
        if isinstance(task.run, Train):
            if task.heads_left:
                from longtail.flows.reproduce.afterwards import fit_heads

                fit_heads(Path(task.results), task.name, task.heads_left, Path(task.path))
            if task.measures_left:
                from longtail.flows.reproduce.afterwards import measure_run

                measure_run(task.folder, task.measures_left, Path(task.path), task.numbers)
        elif not task.is_trained:
            data = {name: Path(path) for name, path in task.data.items()}
            if isinstance(task.run, Fit):
                from longtail.flows.reproduce import fits

                fits.run(task.run, task.seed, task.folder, data)
            else:
                from longtail.flows.reproduce import synthetic

                synthetic.run(task.run, task.seed, task.folder, data)


if __name__ == "__main__":
    work(msgspec.json.decode(sys.argv[1], type=Task))
