"""Many runs of `longtail train`, some at a time, each a process of one thread.

A finished run is never trained again, and one that broke off resumes from its checkpoint: the same
call can be made until all is done. What another process is at is waited for.
"""

from __future__ import annotations

import shlex
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, TypeAlias

import msgspec

from longtail.core.files import read_whole
from longtail.core.numbers import check_whole
from longtail.data.tables.errors import reading
from longtail.flows.file_names import METRICS, RECIPE
from longtail.flows.generation import settle
from longtail.flows.subprocesses import (
    TAKEN,
    Process,
    ended_together,
    is_taken,
    over,
    started,
    usable_cores,
)
from longtail.flows.train.recipe import Recipe
from longtail.flows.train.run_folder import (
    CHECKPOINT,
    check_data,
    check_folder,
    start_file,
    task_values,
    write_start,
)
from longtail.group_edges import GroupEdges

State: TypeAlias = Literal["finished", "begun", "new"]


class Job(NamedTuple):
    """A run to be there in the end."""

    recipe: Recipe  # with data.path
    folder: Path
    name: str  # what the recipe is called, which the folder keeps for comparisons


class Ended(NamedTuple):
    """A job that is over."""

    job: Job
    how: Literal["finished before", "trained", "failed"]
    error: str = ""  # what a failed one said


def train_many(
    jobs: Sequence[Job],
    at_once: int | None = None,
    progress: Callable[[Ended], None] = lambda ended: None,
) -> tuple[Ended, ...]:
    """Train what is not finished yet; how each ended, in the order of the jobs.

    A job that fails does not stop the others. An interrupt ends all, each with a checkpoint.

    Args:
        jobs: Each with a folder of its own. One that holds another run is refused before anything
            is trained.
        at_once: Processes at a time; None for as many as there are cores.
        progress: Told of each job that is over, those that were finished before first.
    """
    limit = usable_cores() if at_once is None else check_whole(at_once, "at_once", least=1)
    if len({job.folder.resolve() for job in jobs}) < len(jobs):
        raise ValueError("two jobs have one folder; give each its own")
    states = states_of(jobs)
    finished = [job for job, state in zip(jobs, states, strict=True) if state == "finished"]
    ended = {job.folder: Ended(job, "finished before") for job in finished}
    for early in ended.values():
        progress(early)
    waiting = [job for job in jobs if job.folder not in ended]
    errors: dict[Path, IO[bytes]] = {}
    running: dict[Process, Job] = {}
    with tempfile.TemporaryDirectory(prefix="longtail-") as private, ended_together(running):
        while waiting or running:
            for job in [each for each in waiting if not is_taken(each.folder)]:
                if len(running) < limit:
                    waiting.remove(job)
                    errors[job.folder] = tempfile.TemporaryFile()  # noqa: SIM115 - closed when read
                    own = Path(private) / str(jobs.index(job))
                    running[_started(job, own, errors[job.folder])] = job
            for job, code in over(running):
                message = _read(errors.pop(job.folder)) or f"it ended with code {code}"
                if code == TAKEN:  # another process was faster, or only looked just then
                    waiting.append(job)
                    continue
                ended[job.folder] = Ended(job, "failed", message) if code else Ended(job, "trained")
                progress(ended[job.folder])
    return tuple(ended[job.folder] for job in jobs)


def states_of(jobs: Sequence[Job]) -> list[State]:
    """How far runs are; a ValueError if a folder is of another run or data, or there are none.

    One that is to be measured in other groups has begun, and is resumed with that.
    """
    data: dict[bytes, dict[str, Any]] = {}  # read once for all runs that share them
    return [_state_of(job, data) for job in jobs]


def _state_of(job: Job, data: dict[bytes, dict[str, Any]]) -> State:
    check_data(job.recipe.data)
    start_file(job.recipe)
    if not check_folder(job.folder, job.recipe):
        return "new"
    file = job.folder / METRICS
    if not settle(job.folder) or not file.is_file():
        return "begun"
    _check_learned(job, data)
    with reading(file, "the metrics of a run"):
        edges = msgspec.json.decode(read_whole(file), type=_Measured).group_edges
    return "finished" if edges == str(GroupEdges.of(job.recipe.groups)) else "begun"


class _Measured(msgspec.Struct):
    """What is read of the METRICS of a run."""

    group_edges: str = ""


def _check_learned(job: Job, data: dict[bytes, dict[str, Any]]) -> None:
    """A ValueError if a run learned from other images, or began with another model."""
    from longtail.engine.training.checkpoint import check_stored, data_in_task  # imports torch
    from longtail.flows.train.building import build_normalize, read_data

    recipe = job.recipe
    key = msgspec.json.encode([recipe.data, recipe.normalize])
    if key not in data:
        images = read_data(recipe.data).train
        data[key] = data_in_task(images, build_normalize(recipe, images))
    check_stored(job.folder / CHECKPOINT, data[key] | {"recipe": task_values(recipe)})


def _started(job: Job, private: Path, errors: IO[bytes]) -> Process:
    """The process reads its recipe where no other writes: the run's folder is not locked."""
    recipe, folder = str(private / RECIPE), str(job.folder)
    command = [sys.executable, "-m", "longtail", "train", recipe, "-o", folder, "--quiet"]
    write_start(private, job.recipe, job.name, shlex.join(["longtail", *command[3:-1]]))
    return started(command, errors)


def _read(errors: IO[bytes]) -> str:
    with errors as file:
        file.seek(0)
        return file.read().decode("utf-8", "replace").strip()
