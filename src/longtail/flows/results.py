"""What every result is: shown in a notebook by the page that report makes of it, kept in files."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, ClassVar

from longtail.flows.file_names import are_one_file
from longtail.flows.generation import generation, generation_in
from longtail.plain_text import plain_json


class Result:
    """The result of a flow."""

    kind: ClassVar[str]  # which flow: "fix", "fit", "train", "sweep", "audit", "compare", "scores"
    command: str  # what made it, for the foot of its page

    @property
    def folder_kind(self) -> str:
        """The command whose folders it may go to: comparisons and pages on scores are reports."""
        return "report" if self.kind in ("scores", "compare") else self.kind

    def _repr_html_(self) -> str | None:
        return None if _renderer is None else _renderer(self)


_renderer: Callable[[Result], str] | None = None


def register_renderer(render: Callable[[Result], str]) -> None:
    """Let results show themselves in notebooks; report does this when it is imported."""
    global _renderer
    _renderer = render


def staged(
    output: str | os.PathLike[str] | None, kind: str, names: Sequence[str], inputs: Iterable[Path]
) -> AbstractContextManager[Path | None]:
    """A generation of files for a flow that writes only if it has a folder, and over no input."""
    if output is None:
        return nullcontext()
    check_not_inputs(Path(output), names, inputs)
    return generation(Path(output), kind, names)


def check_not_inputs(output: Path, names: Sequence[str], inputs: Iterable[Path]) -> None:
    """A ValueError if an input is the output, or in that folder and written now or before."""
    gone = [output]
    if names:
        current = generation_in(output)
        gone = [output / name for name in {*names, *(() if current is None else current.files)}]
    for path in inputs:
        if any(are_one_file(path, file) for file in gone):
            raise ValueError(
                f"{path} is an input, and output to {output} would write over it; take another "
                f"{'folder' if names else 'file'}"
            )


def json_text(value: Any, *, ascii_only: bool = False) -> str:
    """JSON as every reader takes it, and terminals show it: a number that is not finite is null.

    >>> print(json_text({"few": float("nan")}), end="")
    {
      "few": null
    }
    """
    text = json.dumps(_finite(value), indent=2, ensure_ascii=ascii_only, allow_nan=False)
    return plain_json(text) + "\n"


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """The value as a JSON file, whole or not at all."""
    from longtail.core.files import written_whole

    with written_whole(path) as part:
        part.write_text(json_text(value), encoding="utf-8", newline="\n")


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
