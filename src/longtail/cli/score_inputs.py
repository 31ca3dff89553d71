"""Files of scores as commands take them: what they hold, what they carry, where they should go."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from longtail.cli.options import INPUT, INPUT_FILE, WordOrFile, name_or_place

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from longtail.core import Prior
    from longtail.data import Kind, ScoreTable

_AUTO = "auto"


@dataclass(frozen=True)
class Said:
    """What is said of a file of scores that does not say it itself; as the options below."""

    kind: Kind | None
    labels: Path | None
    label_column: str | None
    array: str | None
    skip: str
    header: bool | None
    delimiter: str | None
    classes: Path | None
    counts: Path | None
    carried: str | Path
    zeros: Literal["error", "smooth"]

    def options(self) -> list[str]:
        """The options that were given, by name."""
        unsaid = (None, "", _AUTO, "error")
        given = [field.name for field in fields(self) if getattr(self, field.name) not in unsaid]
        return [f"--{name.replace('_', '-')}" for name in given]


def _delimiter(context: click.Context, option: click.Parameter, given: str | None) -> str | None:
    """One character that can stand between fields; a tab may be written as a word."""
    if given is None:
        return None
    found = {"tab": "\t", "\\t": "\t"}.get(given, given)
    if len(found) != 1 or found.isalnum() or found in "\"'\r\n.-+":
        raise click.BadParameter("it is one character such as ; or |, or the word tab")
    return found


_OPTIONS = (
    click.option(
        "--kind",
        type=click.Choice(["logits", "probs"]),
        help="What the files hold. Not needed for files that longtail wrote.",
    ),
    click.option(
        "--labels", type=INPUT_FILE, help="The labels of SCORES, if it does not hold them."
    ),
    click.option(
        "--label-column", help="Which column, by name or place, or array holds the labels."
    ),
    click.option(
        "--array", help="Which array, or column of lists, holds the scores; by default logits."
    ),
    click.option(
        "--skip",
        default="",
        metavar="COLUMN,...",
        help="Columns, by name or place, that hold neither scores nor labels.",
    ),
    click.option(
        "--header/--no-header",
        default=None,
        help="Whether the first line of a table names its columns. By default it does if some of "
        "it is no number.",
    ),
    click.option(
        "--delimiter",
        callback=_delimiter,
        metavar="CHARACTER",
        help="What stands between the fields of a table, such as ; or tab. By default a tab in "
        ".tsv, else a comma.",
    ),
    click.option("--classes", type=INPUT_FILE, help="The class names in the order of the columns."),
    click.option("--counts", type=INPUT, help="Training samples a class, or training labels."),
    click.option(
        "--zeros",
        type=click.Choice(["error", "smooth"]),
        default="error",
        show_default=True,
        help="Classes without training samples: refuse them, or add one half to every count.",
    ),
    click.option(
        "--carried",
        type=WordOrFile((_AUTO, "counts", "uniform", "measure")),
        default=_AUTO,
        show_default=True,
        help="The prior the scores carry: what the file says, else the counts; uniform for "
        "a model trained by a balancing loss; measure to fit it on SCORES.",
    ),
)


def score_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options of Said: the command takes said."""

    @functools.wraps(command)
    def with_said(**given: Any) -> None:
        said = Said(**{field.name: given.pop(field.name) for field in fields(Said)})
        command(said=said, **given)

    made: Callable[..., None] = with_said
    for option in reversed(_OPTIONS):
        made = option(made)
    return made


def open_table(
    path: Path, said: Said, labels: Path | None, usual_classes: Sequence[str] | None = None
) -> ScoreTable:
    """The file of scores, or a usage error where it is not known what it holds.

    Args:
        path: The file.
        said: What is said of it.
        labels: A file of its labels, if it does not hold them.
        usual_classes: The names of its classes, where nothing else says them.
    """
    from longtail.data import Layout, open_score_table

    kind = said.kind
    if kind is None and path.suffix.lower() == ".safetensors":
        kind = "logits"
    if kind is None:
        raise click.UsageError(
            f"say what {path} holds: --kind logits or --kind probs; it is not guessed"
        )
    layout = Layout(
        scores=said.array,
        labels=None if said.label_column is None else name_or_place(said.label_column),
        skip=[name_or_place(name.strip()) for name in said.skip.split(",") if name.strip()],
        header=said.header,
        delimiter=said.delimiter,
    )
    return open_score_table(path, kind, labels, said.classes, layout, usual_classes)


def known_counts(table: ScoreTable, said: Said) -> npt.NDArray[np.int64] | None:
    """Training samples of each class: those of --counts, else those the file of scores has."""
    from longtail.recipes.fix_inputs import read_counts

    return table.counts if said.counts is None else read_counts(said.counts, table)


def target_prior(target: str | Path, table: ScoreTable) -> Prior:
    """The uniform prior, or that of a file."""
    from longtail.core import Prior
    from longtail.recipes.fix_inputs import read_prior

    if target == "uniform":
        return Prior.uniform(table.num_classes)
    return read_prior(Path(target), table)


def carried_prior(
    said: Said, table: ScoreTable, counts: npt.NDArray[np.int64] | None
) -> Prior | None:
    """What the scores carry; None if "auto" finds nothing that says it."""
    from longtail.core import Prior, measure_carried
    from longtail.recipes.fix_inputs import read_prior
    from longtail.recipes.fix_tables import scores_to_fit_on

    carried = said.carried
    if carried == _AUTO and (table.carried is not None or counts is None):
        return table.carried
    if carried in (_AUTO, "counts"):
        if counts is None:
            raise click.UsageError("--carried counts needs the training counts: --counts FILE")
        if said.zeros == "error":
            _refuse_zeros(counts, table)
        return Prior.of(counts, zeros=said.zeros)
    if carried == "uniform":
        return Prior.uniform(table.num_classes)
    if carried == "measure":
        held_out = scores_to_fit_on(table, None, counts, seed=0)
        if held_out.labels is None:
            raise click.UsageError("--carried measure needs labels")
        return measure_carried(held_out.logits, held_out.labels, held_out.classes)
    return read_prior(Path(carried), table)


def _refuse_zeros(counts: npt.NDArray[np.int64], table: ScoreTable) -> None:
    absent = [at for at, count in enumerate(counts.tolist()) if not count]
    if absent:
        names = absent if table.classes is None else [table.classes[at] for at in absent]
        shown = ", ".join(map(str, names[:5])) + (", ..." if len(names) > 5 else "")
        raise click.UsageError(
            f"{table.path} has columns {shown}, of which there are no training samples: if one "
            "holds the labels, say --label-column NAME; if something else, --skip NAME; if these "
            "are classes, --zeros smooth, which adds one half to every count"
        )
