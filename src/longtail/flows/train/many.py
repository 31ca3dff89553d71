"""Many runs of `longtail train`, some at a time, each a process of one thread.

A finished run is never trained again, and one that broke off goes on from its checkpoint: the same
call can be made until all is done. What another process is at is waited for.
"""

from __future__ import annotations

import shlex
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Literal, NamedTuple, TypeAlias

from longtail.core.numbers import check_whole
from longtail.flows.file_names import METRICS, RECIPE
from longtail.flows.generation import settle
from longtail.flows.subprocesses import (
    Process,
    ended_together,
    is_taken,
    over,
    started,
    usable_cores,
)
from longtail.flows.train.recipe import Recipe
from longtail.flows.train.run_folder import check_data, check_folder, write_start

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
    states = [state_of(job) for job in jobs]
    finished = [job for job, state in zip(jobs, states, strict=True) if state == "finished"]
    ended = {job.folder: Ended(job, "finished before") for job in finished}
    for early in ended.values():
        progress(early)
    waiting = [job for job in jobs if job.folder not in ended]
    errors: dict[Path, IO[bytes]] = {}
    running: dict[Process, Job] = {}
    with ended_together(running):
        while waiting or running:
            for job in [each for each in waiting if not is_taken(each.folder)]:
                if len(running) < limit:
                    waiting.remove(job)
                    errors[job.folder] = tempfile.TemporaryFile()  # noqa: SIM115 - closed when read
                    running[_started(job, errors[job.folder])] = job
            for job, code in over(running):
                said = _read(errors.pop(job.folder)) or f"it ended with code {code}"
                if code and is_taken(job.folder):  # another process was faster
                    waiting.append(job)
                    continue
                ended[job.folder] = Ended(job, "failed", said) if code else Ended(job, "trained")
                progress(ended[job.folder])
    return tuple(ended[job.folder] for job in jobs)


def state_of(job: Job) -> State:
    """How far the run is; a RecipeError if its folder is of another one, or there are no data."""
    begun = check_folder(job.folder, job.recipe)
    if begun and settle(job.folder) and (job.folder / METRICS).is_file():
        return "finished"
    check_data(job.recipe.data)
    return "begun" if begun else "new"


def _started(job: Job, errors: IO[bytes]) -> Process:
    recipe, folder = str(job.folder / RECIPE), str(job.folder)
    command = [sys.executable, "-m", "longtail", "train", recipe, "-o", folder, "--quiet"]
    write_start(job.folder, job.recipe, job.name, shlex.join(["longtail", *command[3:-1]]))
    return started(command, errors)


def _read(errors: IO[bytes]) -> str:
    with errors as file:
        file.seek(0)
        return file.read().decode("utf-8", "replace").strip()
