"""`longtail reproduce`: a table or a figure of a paper by its name, and the ledger of all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from longtail.cli import experiments, options, terminal
from longtail.cli.command import Command
from longtail.cli.errors import FAILURE, Interrupted
from longtail.flows import file_names

if TYPE_CHECKING:
    from longtail.flows.reproduce.experiment import Experiment
    from longtail.flows.reproduce.plan import ExperimentPlan
    from longtail.flows.reproduce.result import Reproduced
    from longtail.flows.reproduce.running import Progress

_LEDGER = Path("docs/ledger.md")


class _Asked(NamedTuple):
    """What was asked for, of an experiment."""

    quick: bool
    seeds: tuple[int, ...] | None
    data: Mapping[str, Path]
    jobs: int
    as_json: bool
    quiet: bool


@click.command(cls=Command, short_help="Make a paper's table or figure; judge its claims.")
@click.argument("name", required=False, shell_complete=experiments.complete_name)
@options.output_folder("Folder of all runs.", metavar="RESULTS", type=options.OUTPUT)
@click.option(
    "--data",
    type=options.NameAndPath(),
    multiple=True,
    help="Where data are: cifar100=PATH. Once for each that is needed.",
)
@click.option("--quick", is_flag=True, help="The setting for a CPU, where there is one.")
@click.option("--seeds", type=options.Seeds(), help="By default those of the setting.")
@click.option(
    "--jobs", type=click.IntRange(min=1), help="Runs at a time, by default as many as cores."
)
@click.option("--dry-run", is_flag=True, help="Say what would run and what is missing.")
@click.option("--table", is_flag=True, help="Print the table from what is finished; run nothing.")
@click.option(
    "--ledger",
    type=options.INPUT,
    metavar="RESULTS",
    help=f"Write a verdict on every claim to -o, by default {_LEDGER}.",
)
@click.option(
    "--keep", type=options.INPUT, metavar="RESULTS", help="Keep what tables need of runs, in -o."
)
@options.common
@click.pass_context
def reproduce(
    ctx: click.Context,
    name: str | None,
    output: Path | None,
    data: tuple[tuple[str, Path], ...],
    quick: bool,
    seeds: tuple[int, ...] | None,
    jobs: int | None,
    dry_run: bool,
    table: bool,
    ledger: Path | None,
    keep: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Make the table or figure NAME of a paper, with ours beside it and a verdict on each claim.

    Without a NAME all are listed. Runs go to RESULTS/runs: a finished one is not repeated, one that
    broke off is resumed. --table reads them, or what --keep has kept, such as results/scores.
    """
    _check_options(ctx)
    if ledger is not None:
        _write_ledger(ledger, output or _LEDGER, as_json, quiet)
    elif keep is not None:
        _keep(keep, output, as_json, quiet)
    elif name is None:
        experiments.show_all(output, as_json, quiet)
    else:
        from longtail.flows.subprocesses import usable_cores

        at_once = jobs or usable_cores()
        asked = _Asked(quick, seeds, dict(data), at_once, as_json, quiet)
        experiment = experiments.named(name)
        if dry_run:
            _show_plan(_planned(experiment, output, asked), asked)
            return
        if output is None:
            raise click.UsageError("say where runs and results are: -o RESULTS")
        if table and not output.is_dir():
            raise click.UsageError(f"there is no folder {output}; results/scores has what is kept")
        failed = [] if table else _run(experiment, output, asked)
        _show(experiment, output, asked, save=not table)
        if failed:
            ctx.exit(FAILURE)


def _check_options(ctx: click.Context) -> None:
    """A usage error for what would be ignored, and for data that nothing needs."""
    from typing import get_args

    from longtail.flows.reproduce.experiment import Needs

    used = {key for key, value in ctx.params.items() if value not in (None, False, ())}
    of_experiment = ("quick", "seeds", "jobs", "dry_run", "table", "data")
    for main in ("ledger", "keep", "table"):
        others = {
            "table": ("jobs", "dry_run", "data"),
            "keep": ("name", *of_experiment),
            "ledger": ("name", "keep", *of_experiment),
        }[main]
        for other in others if main in used else ():
            if other in used:
                what = "NAME" if other == "name" else f"--{other.replace('_', '-')}"
                raise click.UsageError(f"--{main} takes no {what}; leave one of them out")
    if "name" not in used and not {"ledger", "keep"} & used:
        for other in (each for each in of_experiment if each in used):
            option = f"--{other.replace('_', '-')}"
            raise click.UsageError(f"{option} is for one experiment; give its NAME")
    for name, _ in ctx.params["data"]:
        if name not in get_args(Needs):
            names = ", ".join(get_args(Needs))
            raise click.UsageError(f"no experiment needs data called {name}; there are {names}")


def _planned(experiment: Experiment, output: Path | None, asked: _Asked) -> ExperimentPlan:
    from longtail.flows.reproduce.plan import needed_data, plan

    return plan(
        experiment,
        output,
        experiments.run_names(),
        lambda run: needed_data(run.recipe, experiments.recipe_of(run)),
        quick=asked.quick,
        seeds=asked.seeds,
        data=asked.data,
    )


def _show_plan(plan: ExperimentPlan, asked: _Asked) -> None:
    from longtail.flows.reproduce.overview import dry_run
    from longtail.report.pages.reproduce import plan_in_words

    with terminal.status("Reading", asked.quiet):
        checked = dry_run(plan, experiments.recipe_of)
    if asked.as_json:
        terminal.print_json(checked.as_json())
    else:
        terminal.echo("\n".join(plan_in_words(checked, asked.jobs)))


def _run(experiment: Experiment, results: Path, asked: _Asked) -> list[str]:
    """Run what is not finished; the names of runs that failed."""
    from longtail.flows.reproduce import running
    from longtail.flows.reproduce.collecting import check_recipe

    plan = _planned(experiment, results, asked)
    if plan.absent:
        wanted = " ".join(f"--data {name}=PATH" for name in plan.absent)
        raise click.UsageError(f"say where the data are: {wanted}; or --table for what is finished")
    for each in plan.runs:
        check_recipe(results, each.name, each.run, each.seed, experiments.recipe_of)
    todo = running.tasks(plan, results)
    try:
        with _progress(len(todo), asked.quiet) as progress:
            failed = running.run_all(todo, asked.jobs, progress)
    except KeyboardInterrupt as error:
        import signal

        number = getattr(error, "signal", signal.SIGINT)
        raise Interrupted("the same command resumes it", number) from None
    for name in failed:
        terminal.echo(f"{name} failed: {running.log_file(results, name)} says why", err=True)
    return failed


@contextmanager
def _progress(total: int, quiet: bool) -> Iterator[Progress]:
    with terminal.bars(quiet) as bar:
        task = bar.add_task("runs", total=total, detail="")

        def progress(name: str, event: str) -> None:
            bar.update(task, detail=f"{name} {event}", advance=int(event in ("finished", "failed")))

        yield progress


def _reproduced(experiment: Experiment, results: Path, asked: _Asked) -> Reproduced:
    from longtail.flows.reproduce.collecting import kept_in
    from longtail.flows.reproduce.result import reproduced
    from longtail.recipes.experiments import EXPERIMENTS

    return reproduced(
        experiment,
        kept_in(results, experiments.run_names(), EXPERIMENTS.values(), experiments.recipe_of),
        experiments.recipe_of,
        quick=asked.quick,
        seeds=asked.seeds,
        command=terminal.command(),
    )


def _show(experiment: Experiment, results: Path, asked: _Asked, save: bool) -> None:
    from longtail.report.pages import reproduce as words

    with terminal.status("Measuring", asked.quiet):
        result = _reproduced(experiment, results, asked)
    if asked.as_json:
        terminal.print_json(result.as_json())
    else:
        shown = terminal.console()
        title = f"\n{experiment.paper}, {experiment.item}: {experiment.about}"
        rows, heads = words.table_rows(result), words.table_heads(result)
        if rows and len(heads) > 1:
            shown.print(terminal.rich_table(title, heads, rows, whole_words=True))
        claims = ("claim", "in the paper", "ours", "verdict")
        if result.outcomes:
            shown.print(terminal.rich_table("\nClaims", claims, words.claim_rows(result), left=4))
        terminal.echo("\n".join(words.notes(result)))
    if save:
        from longtail.report import save as save_page

        folder = results / "tables" / experiment.name
        save_page(result, folder)
        terminal.closing(folder, (file_names.PAGE,), as_json=asked.as_json, quiet=asked.quiet)


def _keep(results: Path, output: Path | None, as_json: bool, quiet: bool) -> None:
    from longtail.flows.reproduce.collecting import MOST_BYTES, keep
    from longtail.recipes.experiments import EXPERIMENTS

    if output is None:
        raise click.UsageError("say where to keep it: -o FOLDER")
    names, every = experiments.run_names(), list(EXPERIMENTS.values())
    with terminal.status("Keeping", quiet):
        kept = keep(results, output, names, every, experiments.recipe_of)
    if as_json:
        terminal.print_json(kept._asdict())
        return
    terminal.echo(f"{output}: {len(kept.names)} runs, {kept.total / 1e6:.1f} MB")
    if kept.without_scores:
        terminal.echo(
            f"Answers alone, since all would have more than {MOST_BYTES / 1e6:.0f} MB: "
            f"{', '.join(kept.without_scores)}"
        )


def _write_ledger(results: Path, output: Path, as_json: bool, quiet: bool) -> None:
    from longtail.flows.reproduce.collecting import check_any, kept_in
    from longtail.flows.reproduce.ledger import check_file, ledger
    from longtail.recipes.experiments import EXPERIMENTS
    from longtail.report.pages.ledger import in_words, write_ledger

    try:
        check_file(output, results)
    except ValueError as error:  # it is the option that is wrong
        raise click.UsageError(str(error)) from error
    names, every = experiments.run_names(), list(EXPERIMENTS.values())
    check_any(results, names, every)
    with terminal.status("Judging", quiet):
        kept = kept_in(results, names, every, experiments.recipe_of)
        made = ledger(every, kept, experiments.recipe_of, results)
    write_ledger(made, output)
    if as_json:
        terminal.print_json(made.as_json())
    else:
        terminal.echo(f"{output}: {in_words(made)}")
