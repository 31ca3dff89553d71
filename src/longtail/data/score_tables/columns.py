"""Which columns of a table are scores and which one is the label; for text and parquet alike."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from longtail.data.files.column_place import column_place
from longtail.data.score_tables.contents import LABEL_NAMES, Layout


@dataclass(frozen=True)
class Columns:
    """Places of columns, counted from 0.

    Attributes:
        scores: One a class, in the order of the classes.
        label: The one with the labels, if any.
        classes: What the columns of scores are called, if they have names.
    """

    scores: tuple[int, ...]
    label: int | None
    classes: tuple[str, ...] | None


def choose_columns(names: Sequence[str] | None, width: int, layout: Layout, path: Path) -> Columns:
    """All columns but the label and those to skip hold scores; ValueError if one is not there."""
    asked = layout.labels
    if asked is None and names is not None:
        asked = next((name for name in LABEL_NAMES if name in names), None)
    label = None if asked is None else column_place(asked, names, width, path)
    skipped = {column_place(column, names, width, path) for column in layout.skip}
    scores = tuple(at for at in range(width) if at != label and at not in skipped)
    classes = None if names is None else tuple(names[at] for at in scores)
    if classes and len(set(classes)) != len(classes):
        twice = Counter(classes).most_common(1)[0][0]
        raise ValueError(
            f"{path} has two columns called {twice!r}; give every class a name of its own"
        )
    return Columns(scores, label, classes)
