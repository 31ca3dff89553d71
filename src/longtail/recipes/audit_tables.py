"""The tables of an audit as text, the same for the terminal and the page."""

from collections.abc import Sequence
from dataclasses import dataclass

from longtail.recipes.audit import Audit, Group, Shift
from longtail.recipes.audit_words import class_called, times
from longtail.recipes.label_profile import ClassCount, Profile

_RANGES = {"many": "over 100", "medium": "20 to 100", "few": "under 20"}


@dataclass(frozen=True)
class TextTable:
    """A table whose first column is text and whose others are numbers, all as they are printed."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""


def audit_tables(found: Audit) -> list[TextTable]:
    """How long the tail is, the groups of classes, and where shares differ by more than chance."""
    tables = [_profiles(found), _groups(found)]
    if found.test is not None:
        tables.append(_tested(found))
    if found.shift is not None and found.shift.is_real:
        tables.append(_moves(found.shift))
    return tables


def _profiles(found: Audit) -> TextTable:
    sets = {"train": found.train} | ({"test": found.test} if found.test else {})
    cells = [_profile_cells(profile) for profile in sets.values()]
    rows = [[name, *(part[name] for part in cells)] for name in cells[0]]
    return TextTable("How long the tail is", ["", *sets], rows)


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


def _groups(found: Audit) -> TextTable:
    total = found.train.num_samples
    rows = [
        [
            _called(group),
            f"{group.num_classes:,}",
            f"{group.num_samples:,}",
            f"{group.num_samples / total:.1%}",
        ]
        for group in found.groups
    ]
    columns = ["training samples", "classes", "samples", "share"]
    return TextTable("Classes by training samples", columns, rows)


def _tested(found: Audit) -> TextTable:
    rows = [[_called(group), *_tested_cells(group)] for group in found.groups]
    return TextTable(
        "What the test set can say about them",
        ["training samples", "tested", "test samples", "median", "± recall", "± mean"],
        rows,
        "tested: classes with test samples; median: those of the middle one; ±: the largest "
        "standard error in points, of a recall on so many and of the group's mean recall",
    )


def _tested_cells(group: Group) -> list[str]:
    cells = [f"{group.tested_classes:,}", f"{group.tested_samples:,}"]
    if group.median is None or group.class_error is None or group.mean_error is None:
        return [*cells, "", "", ""]
    return [*cells, f"{group.median:g}", f"{group.class_error:.1f}", f"{group.mean_error:.1f}"]


def _called(group: Group) -> str:
    return f"{group.name}, {_RANGES[group.name]}"


def _moves(shift: Shift) -> TextTable:
    rows = [[move.name, f"{move.train:.2%}", f"{move.test:.2%}"] for move in shift.moves]
    caption = (
        f"Total variation {shift.total_variation:.1%}, by chance about {shift.by_chance:.1%}; "
        f"divergence of test from train {shift.divergence:.3g} nats."
    )
    return TextTable("Shares that differ most", ["class", "train", "test"], rows, caption)


def _counted(named: ClassCount) -> str:
    return f"{named.count:,} ({class_called(named.name)})"
