"""Options that mean the same, and say it in the same words, on every command."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from longtail.group_edges import GroupEdges

Command = TypeVar("Command", bound=Callable[..., Any])

# Paths that are read. One that does not exist is a wrong argument: exit code 2, on every command.
PATH = click.Path(path_type=Path)  # of data, which may also be a name on a hub
INPUT = click.Path(exists=True, path_type=Path)
INPUT_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)

PRIOR_FILE = (
    "FILE is JSON, a list of weights or an object from class to weight, or has labels to count."
)


class _NamedPath(click.Path):
    """A path that has a name: of an empty one, as of a variable that is not set, comes "."."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path, or a usage error."""
        if not os.fspath(value):
            self.fail("it is empty; give the name of a folder or file, . for this folder")
        return super().convert(value, param, ctx)


OUTPUT = _NamedPath(path_type=Path)  # a folder or a file, whichever the command writes


class WordOrFile(click.ParamType):  # type: ignore[type-arg]  # click 8.1 takes none
    """One of a few words, as a str, or a file that exists, as a Path."""

    name = "word or file"

    def __init__(self, words: Sequence[str]) -> None:
        self.words = tuple(words)

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """What stands in the help."""
        return "|".join((*self.words, "FILE"))

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> str | Path:
        """The word, or the file, or a usage error."""
        if isinstance(value, Path) or value in self.words:
            return value  # type: ignore[no-any-return]
        if not Path(value).is_file():
            words = ", ".join(self.words)
            self.fail(f"it is {words} or a file, and there is no file {value}", param, ctx)
        return Path(value)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The words that begin so, else files."""
        return names_or_files(self.words, incomplete)


class NameAndPath(click.ParamType):  # type: ignore[type-arg]  # as above
    """NAME=PATH of something that exists, as a pair."""

    name = "NAME=PATH"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, Path]:
        """The pair, or a usage error."""
        if isinstance(value, tuple):
            return value
        name, _, path = (part.strip() for part in value.partition("="))
        if not (name and path):
            self.fail(f"it is NAME=PATH, such as LA=runs/la; got {value!r}", param, ctx)
        if not Path(path).exists():
            self.fail(f"{name}: there is no {path}", param, ctx)
        return name, Path(path)


class Seeds(click.ParamType):  # type: ignore[type-arg]  # as above
    """Whole numbers with commas, each once."""

    name = "0,1,..."

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """The seeds, or a usage error."""
        if isinstance(value, tuple):
            return value
        parts = listed(value)
        if not parts or not all(part.isdecimal() for part in parts):
            self.fail(f"whole numbers with commas, such as 0,1,2; got {value!r}", param, ctx)
        seeds = tuple(map(int, parts))
        if len(set(seeds)) < len(seeds):
            self.fail(f"a seed is given twice in {value!r}; give each once", param, ctx)
        return seeds


def name_or_place(column: str) -> str | int:
    """A column as it is given: its place counted from 0, or its name."""
    return int(column) if column.isdigit() else column


def listed(text: str) -> list[str]:
    """The names in a text with commas between them."""
    return [name.strip() for name in text.split(",") if name.strip()]


def names_or_files(names: Iterable[str], incomplete: str) -> list[CompletionItem]:
    """The names that begin so; files where there are none."""
    matching = [CompletionItem(name) for name in names if name.startswith(incomplete)]
    return matching or [CompletionItem(incomplete, type="file")]


def recipe_names(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The recipes whose names begin so; files where there are none."""
    from longtail.recipes.catalogue import RECIPES

    return names_or_files(sorted(RECIPES), incomplete)


def input_file(*names: str, help: str) -> Callable[[Command], Command]:
    """An option that is a file to read."""
    return click.option(*names, type=INPUT_FILE, help=help)


def choice(name: str, words: Sequence[str], help: str) -> Callable[[Command], Command]:
    """An option that is one of a few words, by default the first."""
    return click.option(name, type=click.Choice(words), default=words[0], help=help)


def word_or_file(name: str, words: Sequence[str], help: str) -> Callable[[Command], Command]:
    """An option that is one of a few words, by default the first, or a file."""
    return click.option(name, type=WordOrFile(words), default=words[0], help=help)


def whole_number(
    name: str, default: int, help: str, least: int = 1
) -> Callable[[Command], Command]:
    """An option that is a whole number."""
    return click.option(name, type=click.IntRange(min=least), default=default, help=help)


def header(usual: str) -> Callable[[Command], Command]:
    """--header/--no-header, by default the line itself decides."""
    what = f"Whether the first line of a table names its columns. By default it does {usual}."
    return click.option("--header/--no-header", default=None, help=what)


def output_folder(help: str, **settings: Any) -> Callable[[Command], Command]:
    """-o/--output, a folder: the command takes output."""
    usual: dict[str, Any] = {"type": _NamedPath(file_okay=False, path_type=Path)}
    return click.option("-o", "--output", help=help, **usual | {"metavar": "FOLDER"} | settings)


def output_file(help: str) -> Callable[[Command], Command]:
    """-o/--output, a file that has to be named: the command takes output."""
    kind = _NamedPath(dir_okay=False, path_type=Path)
    return click.option("-o", "--output", type=kind, metavar="FILE", required=True, help=help)


def common(command: Command) -> Command:
    """--json, -q/--quiet and --traceback: the command takes as_json and quiet."""
    quiet = "Results and errors only: no progress, no notes."
    traceback = "Show where an error comes from. So does LONGTAIL_TRACEBACK=1."
    # What is given last stands first. --traceback is read by errors.traceback_asked, which also
    # sees it if parsing failed.
    command = click.option("--traceback", is_flag=True, expose_value=False, help=traceback)(command)
    command = click.option("-q", "--quiet", is_flag=True, help=quiet)(command)
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, not text.")(command)


def seed(command: Command) -> Command:
    """--seed: the command takes seed."""
    what = "Decides what is drawn at random; the same seed gives the same results."
    return click.option("--seed", type=click.IntRange(0, 2**64 - 1), default=0, help=what)(command)


class _Groups(click.ParamType):  # type: ignore[type-arg]  # as above
    """The edges of many, medium and few."""

    name = "groups"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> GroupEdges:
        """The edges, or a usage error."""
        try:
            return GroupEdges.of(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def groups(usual: str = "many=100,few=20") -> Callable[[Command], Command]:
    """--groups: the command takes groups, None where nothing is said."""
    what = (
        "Which classes have many and few training samples: many=100,few=20 are more than 100 and "
        f"fewer than 20; inclusive counts a class of 100 as many. By default {usual}."
    )
    return click.option("--groups", type=_Groups(), metavar="many=N,few=N[,inclusive]", help=what)


def gathered(name: str, value: type[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The options that are fields of a dataclass, as one argument of the command."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def with_value(**options: Any) -> None:
            own = {field.name: options.pop(field.name) for field in fields(value)}
            command(**{name: value(**own)}, **options)

        return with_value

    return decorate
