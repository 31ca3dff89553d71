"""What a report is on: a run, a file of scores, or several."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from longtail.flows.run_sources import find_sources
from longtail.flows.train.run_folder import RECIPE


def single_run(paths: Sequence[Path]) -> Path | None:
    """The run folder of train, or the file of scores, if the paths hold just one; else None."""
    if len(paths) == 1 and paths[0].is_file():
        return paths[0]
    sources, _ = find_sources(paths)
    folders = {source.scores.parent for source in sources}
    folder = folders.pop()
    if not folders and (folder / RECIPE).is_file():
        return folder
    return sources[0].scores if len(sources) == 1 else None
