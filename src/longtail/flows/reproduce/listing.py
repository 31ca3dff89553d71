"""The list of all experiments: what each takes, and what of it is there. Without NumPy."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from longtail.flows.file_names import METRICS
from longtail.flows.reproduce.experiment import Experiment, Inspect
from longtail.flows.reproduce.plan import KEPT, NUMBERS, RUNS, SCORES, RunNames, settled


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
    finished: int | None  # of them; None where nobody said in which folder


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
    kept = (place / f"{name}.{end}" for place in (folder, folder / SCORES) for end in KEPT)
    return any(file.is_file() for file in (*done, *kept))
