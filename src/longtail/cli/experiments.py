"""The named experiments: found by name, listed, and their runs' names and recipes looked up."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from longtail.cli import terminal

if TYPE_CHECKING:
    from longtail.flows.reproduce.experiment import Experiment, Inspect, Train
    from longtail.flows.reproduce.overview import Listed
    from longtail.flows.reproduce.plan import RunNames
    from longtail.flows.train.recipe import Recipe


def complete_name(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The experiments whose names begin so."""
    from longtail.recipes.experiments import EXPERIMENTS

    return [CompletionItem(name) for name in EXPERIMENTS if name.startswith(incomplete)]


def named(name: str) -> Experiment:
    """The experiment of that name, or a usage error with the nearest one."""
    import difflib

    from longtail.recipes.experiments import EXPERIMENTS

    if name not in EXPERIMENTS:
        near = difflib.get_close_matches(name, EXPERIMENTS, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise click.UsageError(
            f"there is no experiment {name!r}; {hint}`longtail reproduce` lists all"
        )
    return EXPERIMENTS[name]


def run_names() -> RunNames:
    """What the folders of runs are called."""
    from longtail.flows.reproduce.plan import RunNames
    from longtail.recipes.experiments import named_runs

    return RunNames(named_runs())


def recipe_of(run: Train | Inspect) -> Recipe:
    """The recipe of a run, with what is changed in it."""
    from longtail.flows.train.reading import overridden
    from longtail.recipes.catalogue import read_recipe

    return overridden(read_recipe(run.recipe), run.overrides)


def show_all(results: Path | None, as_json: bool, quiet: bool) -> None:
    """List every experiment, and what of it is finished."""
    from longtail.flows.reproduce.overview import listed
    from longtail.recipes.experiments import EXPERIMENTS

    rows = listed(EXPERIMENTS.values(), run_names(), results)
    if as_json:
        terminal.print_json([row._asdict() for row in rows])
        return
    for row in rows:
        terminal.echo(_in_words(row))
    hint = (
        "\nlongtail reproduce NAME --quick --data NAME=PATH -o RESULTS makes one; --dry-run says "
        "what it would run."
    )
    terminal.note(hint, as_json=as_json, quiet=quiet)


def _in_words(row: Listed) -> str:
    """Two lines: the name and what it shows, then what it takes."""
    full = ", ".join(row.needs)
    if row.hours is None:
        takes = f"{full}; a GPU" if row.needs else "nothing to run"
    else:
        needs = ", ".join(row.quick_needs or row.needs) or "no data"
        setting = "quick" if row.quick else "as it is"
        takes = f"{setting}: {needs}, {row.hours:.1f} hours of one thread"
        takes += f"; in full: {full}, a GPU" if row.quick else ""
    done = "" if row.finished is None else f"; {row.finished} of {row.cells} cells finished"
    return f"{row.name:<16}{row.about}\n{'':<16}{takes}{done}"
