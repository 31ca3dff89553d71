"""What every result is: shown in a notebook by the page that report makes of it, kept as JSON."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable
from typing import Any, ClassVar


class Result:
    """The result of a flow."""

    kind: ClassVar[str]  # which flow: "fix", "fit", "train", "audit", "compare" or "scores"
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


def json_text(value: Any, *, ascii_only: bool = False) -> str:
    """JSON as every reader takes it: a number that is not finite is null.

    >>> print(json_text({"few": float("nan")}), end="")
    {
      "few": null
    }
    """
    text = json.dumps(_finite(value), indent=2, ensure_ascii=ascii_only, allow_nan=False) + "\n"
    # Halves of characters, as of file names that are no UTF-8, which no file of UTF-8 takes.
    return re.sub("[\ud800-\udfff]", lambda half: f"\\u{ord(half[0]):04x}", text)


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
