"""What scores are checked for at the door."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from longtail.core.arrays import Array, Numbers, text_array, to_kind
from longtail.core.labels import check_counts, check_labels
from longtail.core.prior import Prior, PriorLike
from longtail.core.retarget import check_finite, check_logits, largest
from longtail.core.tracing import is_traced


def check_rows(rows: Array, name: str) -> None:
    """Raise unless these are rows of logits, or of probabilities, of one class or more."""
    if len(rows.shape) != 2 or not rows.shape[1]:
        raise ValueError(
            f"{name} must have shape (samples, classes), got {tuple(rows.shape)}; "
            "a single sample is one row"
        )
    check_logits(rows, rows.shape[1])
    if not is_traced(rows) and rows.shape[0]:
        check_finite(rows, name)


def check_softmax(scores: Any, who: str, instead: str = "") -> None:
    """Raise unless each sample has one class: `who` opens the sentence, and `instead` ends it."""
    if scores.family != "softmax":
        remedy = instead or "what takes yes/no labels is listed in docs/multi-label.md"
        raise ValueError(
            f'{who} is for scores of one class a sample, family="softmax", but these are of '
            f'yes/no labels, family="sigmoid"; {remedy}'
        )


def check_class_left(logits: Array) -> None:
    """Raise if all classes of a row are ruled out."""
    empty = np.isneginf(largest(logits))
    if empty.any():
        raise ValueError(
            f"row {int(empty.argmax())} has no class left: its logits rule out every class "
            "that the target prior does not; leave such rows out, or use a target without zeros"
        )


def labels_of(rows: Array, labels: object) -> Any:
    """One label a row, in the kind of the rows."""
    checked = check_labels(labels, rows.shape[1])
    if len(checked) != rows.shape[0]:
        raise ValueError(f"got {rows.shape[0]} rows of logits but {len(checked)} labels")
    return to_kind(checked, rows)


def counts_of(counts: PriorLike, rows: Array, classes: tuple[str, ...] | None) -> Any:
    """Class counts in order, from a list, a mapping or a Prior that was made from them."""
    if isinstance(counts, Mapping):
        counts = Prior.of(counts, zeros="keep", classes=classes)
    if isinstance(counts, Prior):
        if counts.counts is None:
            raise ValueError(f"counts must be class counts, got {counts!r}, made from none")
        counts = counts.counts
    return to_kind(check_counts(counts, rows.shape[1]), rows)


def check_ids(ids: object, num_rows: int) -> Numbers:
    """One number or text a row."""
    is_text = isinstance(ids, list | tuple) and all(isinstance(each, str) for each in ids)
    checked = text_array(cast(Sequence[str], ids), "ids") if is_text else np.asarray(ids)
    if checked.shape != (num_rows,) or checked.dtype.kind not in "iuU":
        raise ValueError(
            f"ids must be one number or text for each of {num_rows} rows, got shape "
            f"{checked.shape} of type {checked.dtype}"
        )
    return checked


def class_names(
    rows: object, classes: Sequence[str] | None, num_classes: int
) -> tuple[str, ...] | None:
    """Each class named once: by default as the columns of a DataFrame are."""
    if classes is None:
        columns = getattr(rows, "columns", None)
        if columns is None or not all(isinstance(name, str) for name in columns):
            return None
        classes = tuple(columns)
    names = tuple(classes)
    if isinstance(classes, str) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"classes must be a sequence of names, got {names!r:.80}")
    if len(names) != num_classes or len(set(names)) != len(names):
        raise ValueError(
            f"classes must name each of {num_classes} classes once, "
            f"got {len(names)} names, {len(set(names))} of them different"
        )
    return tuple(map(str, names))  # NumPy's strings are str, but no file format knows them


def check_written(names: Iterable[str], where: str, what: str = "class") -> None:
    """A ValueError if a name cannot be written to a file: those of folders may be any bytes."""
    for name in names:
        try:
            name.encode("utf-8")
        except UnicodeEncodeError:
            raise ValueError(
                f"{where} has the {what} {name!r:.80}, which is no text in UTF-8 and could not be "
                "written with the results; rename it"
            ) from None
