"""What every command checks before it reads or writes anything.

An option is given once, no input is written over, and what another command wrote is not mixed with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from longtail.flows.file_names import ADJUSTER, LOG, METRICS, MODEL, PAGE, RECIPE, VERSIONS
from longtail.flows.generation import (
    check_free,
    check_kind,
    check_not_others,
    generation_in,
    settle,
)
from longtail.flows.results import check_not_inputs

# What runs consist of, beside what they say themselves.
_OF_RUNS = (RECIPE, VERSIONS, LOG, METRICS, MODEL)


class Command(click.Command):
    """A command of longtail.

    Args:
        files: The names of all it may write into its output folder.
        kind: What these are; commands of one kind may take the place of each other.
    """

    def __init__(
        self, *args: Any, files: Sequence[str] = (), kind: str | None = None, **settings: Any
    ) -> None:
        super().__init__(*args, **settings)
        self.files = tuple(files)
        self.kind = kind or str(self.name)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Refuse an option that is given twice, of which click would use the last."""
        if not ctx.resilient_parsing:
            _, _, used = self.make_parser(ctx).parse_args(args=list(args))
            for option in used:
                if _counts_once(option) and used.count(option) > 1:
                    names = "/".join([*option.opts, *option.secondary_opts])
                    raise click.UsageError(f"{names} is given twice; give it once", ctx)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run it, unless it would write over one of its inputs."""
        output = ctx.params.get("output")
        inputs = list(_inputs(value for key, value in ctx.params.items() if key != "output"))
        for path in inputs:
            settle(path if path.is_dir() else path.parent)
        if output is not None:
            self._check_output(Path(output), inputs, ctx)
        return super().invoke(ctx)

    def _check_output(self, output: Path, inputs: Sequence[Path], ctx: click.Context) -> None:
        """A usage error if an input is among what would be written or removed."""
        try:
            read = [file for path in inputs for file in _read_from(path, self.kind)]
            check_not_inputs(output, self.files, read)
            if self.files:
                check_kind(output, self.kind)
                if generation_in(output) is None:  # else what is written is known when it is made
                    check_not_others(output, self.files)
        except ValueError as error:
            raise click.UsageError(str(error), ctx) from None
        if self.files and self.kind != "train":  # whose processes share a folder
            check_free(output)


def _counts_once(option: click.Parameter) -> bool:
    """Whether a second one would replace the first: a switch alone says the same twice."""
    if not isinstance(option, click.Option) or option.multiple or option.count:
        return False
    return bool(option.secondary_opts) or not option.is_flag


def _inputs(values: Iterable[Any]) -> Iterator[Path]:
    """The paths that are there, alone, in tuples, or with a name: options of paths give a Path."""
    for value in values:
        if isinstance(value, tuple):
            yield from _inputs(value)
        elif isinstance(value, Path):
            with suppress(ValueError):  # a null character
                if value.exists():
                    yield value


def _read_from(path: Path, kind: str) -> list[Path]:
    """The files that may be read from a path: itself, or those of the run in a folder."""
    if not path.is_dir():
        return [path]
    current = generation_in(path)
    # A folder of runs may hold their comparison too, which no comparison reads.
    names = {*_OF_RUNS, *(() if current is None or current.kind == kind else current.files)}
    if current is None and (path / METRICS).is_file():  # of a longtail that did not say
        names |= {PAGE, ADJUSTER} | {file.name for file in path.glob("scores*")}
    return [path / name for name in sorted(names)]
