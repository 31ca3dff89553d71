"""`longtail sweep`: a recipe at every point of a grid of values."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from longtail.cli import options, terminal
from longtail.cli.command import Command
from longtail.cli.errors import Interrupted
from longtail.flows import file_names
from longtail.group_edges import GroupEdges

if TYPE_CHECKING:
    from longtail.flows.sweep_result import SweepResult
    from longtail.flows.train.many import Ended
    from longtail.flows.train.recipe import Recipe

_SEEDS = "Seeds of every point, such as 0,1,2; by default that of the recipe."
_JOBS = "Runs at a time, each a process of one thread; by default as many as there are cores."


@click.command(
    cls=Command, files=file_names.SWEEP, short_help="Train a recipe at every point of a grid."
)
@click.argument("name", metavar="NAME|FILE.yaml", shell_complete=options.recipe_names)
@click.argument("settings", nargs=-1, metavar="[KEY=VALUE[,VALUE]...]...")
@click.option("--data", type=options.PATH, help="Where the images are: the recipe's data.path.")
@options.output_folder("Folder for the runs, sweep.json and report.html.", required=True)
@options.groups("those of the recipe")
@click.option("--seeds", type=options.Seeds(), help=_SEEDS)
@click.option("--jobs", type=click.IntRange(min=1), help=_JOBS)
@click.option("--dry-run", is_flag=True, help="List the runs and how far they are; train nothing.")
@options.common
def sweep(
    name: str,
    settings: tuple[str, ...],
    data: Path | None,
    output: Path,
    groups: GroupEdges | None,
    seeds: tuple[int, ...] | None,
    jobs: int | None,
    dry_run: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Train the recipe NAME of `longtail recipes`, or that of a file, at every point of a grid.

    KEY=VALUE is as in `longtail train`; several values with commas between them make the grid:
    loss.lam=1e-3,1e-2,1e-1. The validation part chooses a point. A finished run is never trained
    again, and the same command resumes one that was stopped.
    """
    from longtail.flows.train.reading import overridden
    from longtail.recipes.catalogue import read_recipe, recipe_name

    recipe, title = read_recipe(name), recipe_name(name)
    if groups is not None:  # not among the changes, where commas make a grid
        recipe = overridden(recipe, [f"groups={groups}"])
    changes = [*settings, *([] if data is None else [f"data.path={data}"])]
    if dry_run:
        _show_plan(recipe, changes, output, seeds, title, as_json)
        return
    try:
        with terminal.bars(quiet) as bar:
            from longtail.flows.sweep import planned_runs
            from longtail.flows.sweep import sweep as train_grid
            from longtail.report import save

            _, runs = planned_runs(recipe, changes, output, seeds=seeds, name=title)
            task = bar.add_task("runs", total=len(runs), detail="")

            def progress(ended: Ended) -> None:
                detail = f"{ended.job.folder.name}: {ended.how}"
                bar.update(task, advance=1, detail=detail)

            result = train_grid(
                recipe,
                changes,
                output,
                seeds=seeds,
                at_once=jobs,
                name=title,
                page=save,
                progress=progress,
                command=terminal.command(),
            )
    except KeyboardInterrupt as error:
        number = getattr(error, "signal", 2)
        raise Interrupted("the same command resumes what is not finished", number) from None
    _show(result, output, as_json, quiet)


def _show_plan(
    recipe: Recipe,
    settings: list[str],
    output: Path,
    seeds: tuple[int, ...] | None,
    name: str,
    as_json: bool,
) -> None:
    from longtail.flows.sweep import planned_runs

    keys, runs = planned_runs(recipe, settings, output, seeds=seeds, name=name)
    if as_json:
        listed = [{"folder": str(run.job.folder), "state": run.state} for run in runs]
        terminal.print_json({"recipe": name, "keys": list(keys), "runs": listed})
        return
    for run in runs:
        terminal.echo(f"{run.state:<10}{run.job.folder}")


def _show(result: SweepResult, output: Path, as_json: bool, quiet: bool) -> None:
    from longtail.report.pages import sweep as page

    if as_json:
        terminal.print_json(result.as_json())
    elif result.points:
        shown = terminal.console()
        heads, *rows = page.point_table(result)
        left = max(len(result.keys), 1)
        shown.print(terminal.rich_table("", heads, rows, left=left))
        shown.print(page.headline(result))
        for line in page.notes(result):
            shown.print(f"• {line}")
    if result.points:
        terminal.closing(output, file_names.SWEEP, as_json=as_json, quiet=quiet)
    if result.failed:
        names = ", ".join(name for name, _ in result.failed)
        raise click.ClickException(
            f"{len(result.failed)} of the runs failed: {names}. {result.failed[0][1]}"
        )
