"""The audit's report: its tables, its counts as figures, what to expect and what to try."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from longtail.recipes.audit import Audit
from longtail.recipes.audit_expectations import expectations
from longtail.recipes.audit_remedies import Remedy
from longtail.recipes.audit_tables import TextTable, audit_tables
from longtail.recipes.audit_words import times
from longtail.report import Column, Figure, Footer, Line, Page, Section, Table, line_chart
from longtail.report.figures.counts import counts_chart

_SHOWN_POINTS = 100  # of each curve: more could not be told apart


def audit_page(
    found: Audit,
    counts: Sequence[Sequence[int]],
    tried: Sequence[Remedy],
    footer: Footer,
    classes: Sequence[str] | None = None,
) -> Page:
    """The page of `longtail audit`.

    Args:
        found: What was found.
        counts: The class counts of the training set, and of the test set if there is one.
        tried: What to try.
        footer: Where the page comes from.
        classes: What the classes are called.
    """
    train = found.train
    first, *others = audit_tables(found)
    figures = [_counts_figure(counts, classes), _figure(counts)]
    remedies = Table(
        columns=[Column("what"), Column("how")],
        rows=[[remedy.why, "; ".join(remedy.lines)] for remedy in tried],
    )
    return Page(
        title="longtail audit",
        summary=(
            f"{train.num_samples:,} training samples of {train.num_classes:,} classes. The largest "
            f"class has {times(train.imbalance_ratio)} times the samples of the smallest, and the "
            f"largest tenth of the classes holds {train.head_share:.0%} of all samples."
        ),
        sections=[
            Section(heading=first.title, table=_table(first), figures=figures),
            *(Section(heading=table.title, table=_table(table)) for table in others),
            Section(heading="What to expect", paragraphs=expectations(found)),
            *([Section(heading="What to try", table=remedies)] if tried else []),
        ],
        footer=footer,
    )


def _table(table: TextTable) -> Table:
    return Table([Column(name) for name in table.columns], table.rows, table.caption)


def _counts_figure(counts: Sequence[Sequence[int]], classes: Sequence[str] | None) -> Figure:
    named = dict(zip(("train", "test"), counts, strict=False))
    return Figure(
        counts_chart(named, classes=classes),
        "How many samples each class has, from the most frequent to the rarest"
        + (", each set by itself." if len(named) > 1 else "."),
    )


def _figure(counts: Sequence[Sequence[int]]) -> Figure:
    sets = [np.asarray(part, dtype=np.float64) for part in counts]
    order = np.argsort(-sets[0], kind="stable")
    lines = [_curve(name, part[order]) for name, part in zip(("train", "test"), sets, strict=False)]
    return Figure(
        line_chart(
            [*lines, Line("balanced", [0, 100], [0, 100])],
            title="Samples of the largest classes",
            x_title="classes, by training samples (%)",
            y_title="samples (%)",
        ),
        "How much of all samples the largest classes hold. The further above the line of a "
        "balanced set, the longer the tail.",
    )


def _curve(name: str, ordered: npt.NDArray[np.float64]) -> Line:
    number = min(len(ordered), _SHOWN_POINTS)
    places = np.linspace(0, len(ordered), number + 1).round().astype(int)
    held = np.concatenate([[0.0], ordered.cumsum()]) / ordered.sum()
    return Line(name, (100 * places / len(ordered)).tolist(), (100 * held[places]).tolist())
