"""The audit as tables, JSON and a page."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from longtail.flows.audit import COUNTS_FILES, AuditResult, Remedy
from longtail.flows.label_profile import ClassCount, Profile
from longtail.flows.results import write_json
from longtail.report.charts.lines import Line, line_chart
from longtail.report.figures.classes import counts_chart
from longtail.report.page import Figure, Footer, Page, Section, save
from longtail.report.pages.audit_text import class_called, expectations, times, why
from longtail.report.table import Column, Table

_SHOWN_POINTS = 100  # of each curve: more could not be told apart
_RANGES = {"many": "over 100", "medium": "20 to 100", "few": "under 20"}


def write_audit(result: AuditResult, folder: Path) -> tuple[str, ...]:
    """Write the page, audit.json and the counts; their names."""
    values: dict[str, Any] = {"audit.json": as_json(result)}
    for name, part in zip(COUNTS_FILES, (result.counts, result.test_counts), strict=True):
        if part is not None:
            values[name] = dict(zip(result.classes, part, strict=True))
    for name, value in values.items():
        write_json(folder / name, value)
    return save(result, folder).name, *values


def as_json(result: AuditResult) -> dict[str, Any]:
    """Everything as plain values."""
    values = asdict(result)
    keys = ("train", "groups", "test", "shift")
    return {key: values[key] for key in keys} | {
        "bias": result.bias,
        "expect": expectations(result),
        "try": [{"why": why(result, each), "lines": _lines(each)} for each in result.remedies],
    }


def _lines(remedy: Remedy) -> list[str]:
    return [line for line in (remedy.command, remedy.python) if line]


def audit_page(result: AuditResult, footer: Footer) -> Page:
    """The page of `longtail audit`."""
    train = result.train
    first, *others = audit_tables(result)
    tried = [[why(result, each), "; ".join(_lines(each))] for each in result.remedies]
    remedies = Section("What to try", table=Table([Column("what"), Column("how")], tried))
    return Page(
        title="longtail audit",
        summary=(
            f"{train.num_samples:,} training samples of {train.num_classes:,} classes. The largest "
            f"class has {times(train.imbalance_ratio)} times the samples of the smallest, and the "
            f"largest tenth of the classes holds {train.head_share:.0%} of all samples."
        ),
        sections=[
            Section(
                first[0], table=first[1], figures=[_counts_figure(result), _share_figure(result)]
            ),
            *(Section(title, table=table) for title, table in others),
            Section("What to expect", paragraphs=expectations(result)),
            *([remedies] if tried else []),
        ],
        footer=footer,
    )


def audit_tables(result: AuditResult) -> list[tuple[str, Table]]:
    """Titles and tables: the tail, the groups, and where shares differ by more than chance."""
    sets = {"train": result.train} | ({"test": result.test} if result.test else {})
    profiles = [_profile_cells(profile) for profile in sets.values()]
    groups = {f"{group.name}, {_RANGES[group.name]}": group for group in result.groups}
    total = result.train.num_samples
    tables = [
        (
            "How long the tail is",
            _table(["", *sets], [[key, *(part[key] for part in profiles)] for key in profiles[0]]),
        ),
        (
            "Classes by training samples",
            _table(
                ["training samples", "classes", "samples", "share"],
                [
                    [
                        name,
                        f"{g.num_classes:,}",
                        f"{g.num_samples:,}",
                        f"{g.num_samples / total:.1%}",
                    ]
                    for name, g in groups.items()
                ],
            ),
        ),
    ]
    if result.test is not None:
        rows = []
        for name, group in groups.items():
            errors = (group.median, group.class_error, group.mean_error)
            told = [
                "" if value is None else f"{value:{style}}"
                for value, style in zip(errors, ("g", ".1f", ".1f"), strict=True)
            ]
            rows.append([name, f"{group.tested_classes:,}", f"{group.tested_samples:,}", *told])
        caption = (
            "tested: classes with test samples; median: those of the middle one; ±: the largest "
            "standard error in points, of a recall on so many and of the group's mean recall"
        )
        heads = ["training samples", "tested", "test samples", "median", "± recall", "± mean"]
        tables.append(("What the test set can say about them", _table(heads, rows, caption)))
    shift = result.shift
    if shift is not None and shift.is_real:
        rows = [[move.name, f"{move.train:.2%}", f"{move.test:.2%}"] for move in shift.moves]
        caption = (
            f"Total variation {shift.total_variation:.1%}, by chance about {shift.by_chance:.1%}; "
            f"divergence of test from train {shift.divergence:.3g} nats."
        )
        tables.append(
            ("Shares that differ most", _table(["class", "train", "test"], rows, caption))
        )
    return tables


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "") -> Table:
    return Table([Column(name) for name in heads], rows, caption)


def _profile_cells(profile: Profile) -> dict[str, str]:
    return {
        "samples": f"{profile.num_samples:,}",
        "classes": f"{profile.num_classes:,}",
        "largest class": _counted(profile.largest),
        "smallest class": _counted(profile.smallest),
        "imbalance ratio": times(profile.imbalance_ratio),
        "Gini coefficient": f"{profile.gini:.2f}",
        "effective number of classes": f"{profile.effective_classes:,.1f}",
        "share of the largest tenth": f"{profile.head_share:.1%}",
        "classes with one sample": f"{len(profile.single):,}",
        "classes without samples": f"{len(profile.absent):,}",
    }


def _counts_figure(result: AuditResult) -> Figure:
    sets = {"train": result.counts} | ({"test": result.test_counts} if result.test_counts else {})
    return Figure(
        counts_chart(sets, classes=result.classes),
        "How many samples each class has, from the most frequent to the rarest"
        + (", each set by itself." if len(sets) > 1 else "."),
    )


def _share_figure(result: AuditResult) -> Figure:
    size = len(result.classes)
    steps = min(size, _SHOWN_POINTS)
    at = [round(size * step / steps) for step in range(steps + 1)]
    curves = [
        Line(name, [100 * k / size for k in at], [100 * shares[k] for k in at])
        for name, shares in result.curves.items()
    ]
    return Figure(
        line_chart(
            [*curves, Line("balanced", [0, 100], [0, 100])],
            title="Samples of the largest classes",
            x_title="classes, by training samples (%)",
            y_title="samples (%)",
        ),
        "How much of all samples the largest classes hold. The further above the line of a "
        "balanced set, the longer the tail.",
    )


def _counted(named: ClassCount) -> str:
    return f"{named.count:,} ({class_called(named.name)})"
