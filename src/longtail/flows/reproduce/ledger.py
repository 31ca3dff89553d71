"""The ledger: every claim of every experiment with its verdict, from what is finished.

A claim is judged in the paper's setting where that has numbers of ours, else in the quick one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from longtail.flows.reproduce.experiment import Experiment
from longtail.flows.reproduce.result import KeptOf, RecipeOf, Reproduced, reproduced
from longtail.flows.reproduce.verdicts import ClaimVerdict

TITLE = "# The ledger\n"  # how its file begins


@dataclass(frozen=True)
class Entry:
    """A claim, and the table that its verdict is from."""

    table: Reproduced
    outcome: ClaimVerdict


@dataclass(frozen=True)
class Ledger:
    """All claims, in the order of papers and items."""

    entries: tuple[Entry, ...]
    experiments: tuple[Experiment, ...]
    source: str = "results/scores"  # the folder that it is made from

    @cached_property
    def verdicts(self) -> dict[str, int]:
        """How often each verdict was reached, and how many claims have none."""
        counted: Counter[str] = Counter(
            each.outcome.verdict or "not judged" for each in self.entries
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


def check_file(file: Path, results: Path) -> None:
    """A ValueError if a ledger of these results cannot be written there."""
    if file.resolve().is_relative_to(results.resolve()):
        raise ValueError(f"{file} is in {results}, which is read; take a file outside it")
    if file.is_file() and not file.read_bytes().startswith(TITLE.encode()):
        raise ValueError(f"{file} is there and is no ledger; take another file")


def ledger(
    experiments: Sequence[Experiment],
    kept_of: KeptOf,
    recipe_of: RecipeOf,
    results: Path = Path("results/scores"),
) -> Ledger:
    """Judge every claim by what is kept of runs in the folder `results`."""
    entries: list[Entry] = []
    for experiment in experiments:
        tables = [
            reproduced(experiment, kept_of, recipe_of, quick=quick)
            for quick in ((False, True) if experiment.quick else (False,))
        ]
        for number in range(len(experiment.claims)):
            candidates = [Entry(table, table.outcomes[number]) for table in tables]
            judged = [each for each in candidates if each.outcome.verdict is not None]
            entries.append((judged or candidates[-1:])[0])
    # As every reader of the repository would call it, wherever that is.
    is_ours = results.resolve().parts[-2:] == ("results", "scores")
    source = "results/scores" if is_ours else str(results)
    return Ledger(tuple(entries), tuple(experiments), source)
