"""Files of scores as commands take them: what they hold, what they carry, where they should go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

import click

from longtail.cli import options

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from longtail.core import Prior
    from longtail.data import Kind, ScoreTable
    from longtail.flows.fix_steps import TargetWord
    from longtail.flows.score_sources import CarriedWord

_AUTO = "auto"


@dataclass(frozen=True)
class ScoreOptions:
    """What is said of a file of scores that does not say it itself; as the options below."""

    kind: Kind | None
    labels: Path | None
    label_column: str | None
    array: str | None
    skip: list[str | int]
    header: bool | None
    delimiter: str | None
    classes: Path | None
    counts: Path | None
    carried: str | Path
    zeros: Literal["error", "smooth"]

    def names(self) -> list[str]:
        """The options that were given, by name."""
        defaults: tuple[object, ...] = (None, [], _AUTO, "error")
        used = [field.name for field in fields(self) if getattr(self, field.name) not in defaults]
        return [f"--{name.replace('_', '-')}" for name in used]

    def open(self, path: Path, usual_classes: Sequence[str] | None = None) -> ScoreTable:
        """The file of scores; `usual_classes` are its classes where nothing else says them."""
        from longtail.data import Layout, open_score_table

        kind = self.kind or ("logits" if path.suffix.lower() == ".safetensors" else None)
        if kind is None:
            raise click.UsageError(
                f"say what {path} holds: --kind logits or --kind probs; it is not guessed"
            )
        layout = Layout(
            scores=self.array,
            labels=None if self.label_column is None else options.name_or_place(self.label_column),
            skip=self.skip,
            header=self.header,
            delimiter=self.delimiter,
        )
        return open_score_table(path, kind, self.labels, self.classes, layout, usual_classes)

    def open_others(self, path: Path, labels: Path | None, table: ScoreTable) -> ScoreTable:
        """Other scores of the same model: without the labels and class names that the table has."""
        from longtail.data.tables.errors import MissingError

        others = replace(self, labels=labels)
        try:
            return others.open(path, table.classes)
        except MissingError as error:
            if error.name != self.label_column:
                raise
            return replace(others, label_column=None, labels=None).open(path, table.classes)

    def open_after(self, path: Path, table: ScoreTable) -> ScoreTable:
        """The scores after a change: what longtail wrote needs none of these options."""
        from longtail.flows.run_sources import is_longtail_scores

        others = replace(self, labels=None)
        if path.suffix.lower() == ".safetensors":
            kind = None if is_longtail_scores(path) else self.kind
            others = replace(others, kind=kind, array=None, label_column=None)
        elif self.labels is not None:  # the column may be one of --labels
            others = replace(others, label_column=None)
        return others.open(path, table.classes)

    def read_counts(self, table: ScoreTable) -> npt.NDArray[np.int64] | None:
        """Training samples of each class: those of --counts, else those the file of scores has."""
        from longtail.flows.prior_files import read_counts

        return table.counts if self.counts is None else read_counts(self.counts, table)

    def read_carried(self, table: ScoreTable) -> CarriedWord | Prior | None:
        """The prior of a file, or one of the words; None for "auto"."""
        from longtail.flows.prior_files import read_prior

        if isinstance(self.carried, Path):
            return read_prior(self.carried, table)
        return None if self.carried == _AUTO else cast("CarriedWord", self.carried)


def _columns(context: click.Context, option: click.Parameter, text: str) -> list[str | int]:
    return [options.name_or_place(name) for name in options.listed(text)]


def _delimiter(context: click.Context, option: click.Parameter, text: str | None) -> str | None:
    """One character that can stand between fields; a tab may be written as a word."""
    if text is None:
        return None
    character = {"tab": "\t", "\\t": "\t"}.get(text, text)
    if len(character) != 1 or character.isalnum() or character in "\"'\r\n.-+":
        raise click.BadParameter("it is one character such as ; or |, or the word tab")
    return character


_OPTIONS = (
    click.option(
        "--kind",
        type=click.Choice(["logits", "probs"]),
        help="What the files hold. Not needed for files that longtail wrote.",
    ),
    options.input_file("--labels", help="The labels of SCORES, if it does not hold them."),
    click.option(
        "--label-column", help="Which column, by name or place, or array holds the labels."
    ),
    click.option(
        "--array", help="Which array, or column of lists, holds the scores; by default logits."
    ),
    click.option(
        "--skip",
        callback=_columns,
        default="",
        show_default=False,
        metavar="COLUMN,...",
        help="Columns, by name or place, that hold neither scores nor labels.",
    ),
    options.header("if some of it is no number"),
    click.option(
        "--delimiter",
        callback=_delimiter,
        metavar="CHARACTER",
        help="What stands between the fields of a table, such as ; or tab. By default a tab in "
        ".tsv, else a comma.",
    ),
    options.input_file("--classes", help="The class names in the order of the columns."),
    click.option(
        "--counts", type=options.INPUT, help="Training samples a class, or training labels."
    ),
    options.choice(
        "--zeros",
        ("error", "smooth"),
        "Classes without training samples: refuse them, or add one half to every count.",
    ),
    options.word_or_file(
        "--carried",
        (_AUTO, "counts", "uniform", "measure"),
        "The prior the scores carry: what the file says, else the counts; uniform for "
        "a model trained by a balancing loss; measure to fit it on SCORES.",
    ),
)


def score_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options of ScoreOptions: the command takes them as `reader`."""
    for option in (options.gathered("reader", ScoreOptions), *reversed(_OPTIONS)):
        command = option(command)
    return command


def read_target(target: str | Path, table: ScoreTable) -> TargetWord | Prior:
    """The prior of a file; a word stays what it is."""
    from longtail.flows.prior_files import read_prior

    return read_prior(target, table) if isinstance(target, Path) else cast("TargetWord", target)
