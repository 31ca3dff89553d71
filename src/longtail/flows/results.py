"""What every result is, and how a notebook shows it: by the page that report makes of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar


class Result:
    """The result of a flow."""

    kind: ClassVar[str]  # which flow: "fix", "fit", "train", "audit", "compare" or "scores"
    command: str  # what made it, for the foot of its page

    def _repr_html_(self) -> str | None:
        return None if _renderer is None else _renderer(self)


_renderer: Callable[[Result], str] | None = None


def register_renderer(render: Callable[[Result], str]) -> None:
    """Let results show themselves in notebooks; report does this when it is imported."""
    global _renderer
    _renderer = render
