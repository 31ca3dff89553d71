"""The ledger: every claim of every experiment with its verdict, from what is finished.

A claim is judged in the paper's setting where that has numbers of ours, else in the quick one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from longtail.flows.reproduce.experiment import Experiment
from longtail.flows.reproduce.result import KeptOf, RecipeOf, Reproduced, reproduced
from longtail.flows.reproduce.verdicts import Judged


@dataclass(frozen=True)
class Entry:
    """A claim, and the table that its verdict is from."""

    table: Reproduced
    judged: Judged


@dataclass(frozen=True)
class Ledger:
    """All claims, in the order of papers and items."""

    entries: tuple[Entry, ...]
    experiments: tuple[Experiment, ...]

    @cached_property
    def verdicts(self) -> dict[str, int]:
        """How often each verdict was reached, and how many claims have none."""
        counted: Counter[str] = Counter(
            each.judged.verdict or "not judged" for each in self.entries
        )
        order = ("holds", "does not hold", "cannot tell", "not judged")
        return {name: counted[name] for name in order}

    def as_json(self) -> dict[str, Any]:
        """Everything that is a number or a word."""
        tables = {id(each.table): each.table for each in self.entries}
        return {
            "verdicts": self.verdicts,
            "tables": [table.as_json() for table in tables.values()],
        }


def ledger(experiments: Sequence[Experiment], kept_of: KeptOf, recipe_of: RecipeOf) -> Ledger:
    """Judge every claim by what is kept."""
    entries: list[Entry] = []
    for experiment in experiments:
        tables = [
            reproduced(experiment, kept_of, recipe_of, quick=quick)
            for quick in ((False, True) if experiment.quick else (False,))
        ]
        for number in range(len(experiment.claims)):
            found = [Entry(table, table.judged[number]) for table in tables]
            judged = [each for each in found if each.judged.verdict is not None]
            entries.append((judged or found[-1:])[0])
    return Ledger(tuple(entries), tuple(experiments))
