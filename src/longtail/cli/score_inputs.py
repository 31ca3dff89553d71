"""Files of scores as commands take them: what they hold, what they carry, where they should go."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from longtail.cli.options import INPUT, WordOrFile

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from longtail.core import Prior
    from longtail.data.score_tables import Kind, ScoreTable

Command = TypeVar("Command", bound=Callable[..., Any])


def score_options(command: Command) -> Command:
    """What is said of a file of scores that does not say it itself."""
    for option in reversed(
        (
            click.option(
                "--kind",
                type=click.Choice(["logits", "probs"]),
                help="What the files hold. Not needed for files that longtail wrote.",
            ),
            click.option(
                "--labels", type=INPUT, help="The labels of SCORES, if it does not hold them."
            ),
            click.option(
                "--label-column", help="Which column, by name or place, or array holds the labels."
            ),
            click.option(
                "--classes", type=INPUT, help="The class names in the order of the columns."
            ),
            click.option(
                "--counts", type=INPUT, help="Training samples of each class, or training labels."
            ),
            click.option(
                "--carried",
                type=WordOrFile(("auto", "counts", "uniform", "measure")),
                default="auto",
                show_default=True,
                help="The prior the scores carry: what the file says, else the counts; uniform for "
                "a model trained by a balancing loss; measure to fit it on SCORES.",
            ),
        )
    ):
        command = option(command)
    return command


def open_table(
    path: Path, kind: Kind | None, labels: Path | None, classes: Path | None, column: str | None
) -> ScoreTable:
    """The file of scores, or a usage error where it is not known what it holds."""
    from longtail.data.score_tables import Layout, open_score_table

    if kind is None and path.suffix.lower() == ".safetensors":
        kind = "logits"
    if kind is None:
        raise click.UsageError(
            f"say what {path} holds: --kind logits or --kind probs; it is not guessed"
        )
    place = int(column) if column and column.isdigit() else column
    return open_score_table(path, kind, labels, classes, Layout(labels=place))


def target_prior(target: str | Path, table: ScoreTable) -> Prior:
    """The uniform prior, or that of a file."""
    from longtail.core import Prior
    from longtail.recipes.fix_inputs import read_prior

    if target == "uniform":
        return Prior.uniform(table.num_classes)
    return read_prior(Path(target), table)


def carried_prior(
    carried: str | Path,
    table: ScoreTable,
    counts: npt.NDArray[np.int64] | None,
    zeros: str = "error",
) -> Prior | None:
    """What the scores carry; None if "auto" finds nothing that says it."""
    from longtail.core import Prior, measure_carried
    from longtail.recipes.fix_inputs import read_prior
    from longtail.recipes.fix_tables import scores_to_fit_on

    if carried == "auto" and (table.carried is not None or counts is None):
        return table.carried
    if carried in ("auto", "counts"):
        if counts is None:
            raise click.UsageError("--carried counts needs the training counts: --counts FILE")
        return Prior.of(counts, zeros=zeros)  # type: ignore[arg-type]
    if carried == "uniform":
        return Prior.uniform(table.num_classes)
    if carried == "measure":
        held_out = scores_to_fit_on(table, None, counts, seed=0)
        if held_out.labels is None:
            raise click.UsageError("--carried measure needs labels")
        return measure_carried(held_out.logits, held_out.labels)
    return read_prior(Path(carried), table)
