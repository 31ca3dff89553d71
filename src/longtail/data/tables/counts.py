"""Class counts of one or two sets of labels, brought to one list of classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from longtail.data.tables.label_codes import LabelCodes, are_whole_numbers


@dataclass(frozen=True)
class LabelCounts:
    """How many samples each label has.

    Attributes:
        counts: From the label to the number of its samples, in the order of the classes.
        numbered: Whether the labels are numbers, of which some may be left out because they have
            no sample.
    """

    counts: Mapping[str, int]
    numbered: bool = False

    @classmethod
    def of_codes(cls, labels: LabelCodes, names: Sequence[str] | None, where: str) -> LabelCounts:
        """Count labels; those of known names count zero where they are absent."""
        if names is not None:
            indices = labels.as_indices(len(names), names, where)
            return cls(LabelCodes(tuple(names), indices).counts())
        return cls.of_names(labels.counts(), where)

    @classmethod
    def of_names(cls, counts: Mapping[str, int], where: str) -> LabelCounts:
        """From counts by label, put in order: numbers by size, names by the alphabet."""
        numbered = are_whole_numbers(counts)
        if numbered and min(map(int, counts)) < 0:
            raise ValueError(
                f"{where} has the label {min(map(int, counts))}, but class indices count from 0; "
                "leave out samples without a class"
            )
        order = sorted(counts, key=int) if numbered else sorted(counts)
        return cls({label: counts[label] for label in order}, numbered)


def align_counts(sets: Sequence[LabelCounts]) -> tuple[tuple[str, ...], list[tuple[int, ...]]]:
    """The classes of all sets, and for each set one count a class.

    Numbers are class indices: those between that no set has are classes without samples. If that
    would be most of them, the numbers are ids, and only those that occur are classes.

    >>> align_counts([LabelCounts({"0": 5, "2": 1}, True), LabelCounts({"1": 4}, True)])
    (('0', '1', '2'), [(5, 0, 1), (0, 4, 0)])
    """
    if len({part.numbered for part in sets}) > 1:
        numbered, named = sorted(sets, key=lambda part: not part.numbered)
        raise ValueError(
            f"one set has numbers for labels ({_first(numbered)}), the other names "
            f"({_first(named)}); both must say their classes the same way"
        )
    labels = list(dict.fromkeys(label for part in sets for label in part.counts))
    if sets[0].numbered:
        top = max(map(int, labels))
        dense = top + 1 <= 2 * len(labels)
        labels = [str(index) for index in range(top + 1)] if dense else sorted(labels, key=int)
    return tuple(labels), [tuple(part.counts.get(label, 0) for label in labels) for part in sets]


def _first(part: LabelCounts) -> str:
    return ", ".join(map(repr, list(part.counts)[:3]))
