"""From paths to a comparison: find runs, put those on the same samples together, measure alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

from longtail.core import Prior
from longtail.data import ScoreTable, open_score_table
from longtail.flows.prior_files import read_prior
from longtail.flows.samples import AS_TRAINED, UNDER_TARGET
from longtail.recipes.comparing.naming import method_names
from longtail.recipes.comparing.sources import Source, find_sources
from longtail.report.comparison import (
    Compared,
    ComparedSet,
    Run,
    SampleSet,
    compare,
    compare_set,
    measured_run,
)
from longtail.report.comparison.columns import BY_KEY


@dataclass(eq=False)
class _Group:
    """Sources with the same samples, classes and training counts, as far as these are known."""

    tables: list[ScoreTable] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    methods: list[str] = field(default_factory=list)

    def takes(self, table: ScoreTable) -> bool:
        return all(_agree(table, other) for other in self.tables)

    def counts(self) -> torch.Tensor | None:
        known = next((t.counts for t in self.tables if t.counts is not None), None)
        return None if known is None else torch.as_tensor(np.asarray(known))


def compare_paths(
    paths: Sequence[Path],
    labels: Sequence[tuple[str, Path]] = (),
    target: str | Path = "uniform",
    by: str | None = None,
    tick: Callable[[str], None] = lambda what: None,
) -> Compared:
    """Compare all runs that the paths hold.

    Args:
        paths: Run folders of train, fix and fit, scores files, or folders with these in them.
        labels: Pairs of a method's name and a path.
        target: "uniform", "none" for scores and samples as they are, or a JSON file of weights.
        by: The metric to order methods by; by default balanced accuracy, and accuracy under a
            target from a file.
        tick: Told what is measured next.
    """
    if by is not None and by not in BY_KEY:
        raise ValueError(f"methods are ordered by one of {', '.join(BY_KEY)}; got {by!r}")
    sources, notes = find_sources(paths, labels)
    notes += [source.note for source in sources if source.note]
    groups = _grouped(sources)
    chosen = by or (
        "balanced_accuracy" if target in ("uniform", "none") else "accuracy_under_target"
    )
    names = _set_names(groups)
    sets = [
        _compared(group, name, target, chosen, tick)
        for group, name in zip(groups, names, strict=True)
    ]
    return compare(sets, _target_words(target), notes)


def _grouped(sources: Sequence[Source]) -> list[_Group]:
    groups: list[_Group] = []
    for source, method in zip(sources, method_names(sources), strict=True):
        table = open_score_table(source.scores, source.kind)
        if table.labels is None:
            raise ValueError(
                f"{source.scores} has no labels, and methods are compared by what they get right; "
                "save the scores with their labels"
            )
        group = next((group for group in groups if group.takes(table)), None)
        if group is None:
            group = _Group()
            groups.append(group)
        group.tables.append(table)
        group.sources.append(source)
        group.methods.append(method)
    return groups


def _agree(one: ScoreTable, other: ScoreTable) -> bool:
    """Whether two tables are of the same samples; what one of them does not say cannot differ."""
    assert one.labels is not None
    assert other.labels is not None
    return (
        one.num_classes == other.num_classes
        and np.array_equal(one.labels, other.labels)
        and (not one.classes or not other.classes or one.classes == other.classes)
        and (one.counts is None or other.counts is None or np.array_equal(one.counts, other.counts))
    )


def _compared(
    group: _Group, name: str, target: str | Path, by: str, tick: Callable[[str], None]
) -> ComparedSet:
    first = group.tables[0]
    samples = SampleSet(
        name,
        torch.as_tensor(np.asarray(first.labels)),
        first.num_classes,
        _target(target, first),
        group.counts(),
    )
    runs: list[Run] = []
    taken: set[tuple[str, str]] = set()
    for source, table, method in zip(group.sources, group.tables, group.methods, strict=True):
        tick(f"{method}, {source.scores}")
        seed = source.seed
        if (method, seed) in taken:  # the same seed twice: another run all the same
            seed = f"{seed}, {source.scores}"
        taken.add((method, seed))
        runs.append(measured_run(table.as_scores(), samples, method, seed, str(source.scores)))
    return compare_set(samples, runs, by)


def _target(target: str | Path, table: ScoreTable) -> Prior | None:
    if target == "none":
        return None
    if target == "uniform":
        return Prior.uniform(table.num_classes)
    if not Path(target).is_file():
        raise FileNotFoundError(
            f"the target is uniform, none or a JSON file of weights; there is no file {target}"
        )
    return read_prior(Path(target), table)


def _target_words(target: str | Path) -> str:
    if target == "none":
        return f"{AS_TRAINED}: scores and samples as they are"
    which = "the uniform prior" if target == "uniform" else f"the prior of {target}"
    return f"{UNDER_TARGET} ({which})"


def _set_names(groups: Sequence[_Group]) -> list[str]:
    """What each set is called: by the recipe's data where there is one, else by its part."""
    names: list[str] = []
    for group in groups:
        settings = next((s.settings for s in group.sources if "data.kind" in s.settings), {})
        words = [str(settings.get("data.kind", ""))]
        ratio = settings.get("data.imbalance_ratio")
        words += [f"imbalance {ratio:g}"] if ratio is not None else []
        words.append(group.tables[0].split or "")
        name = ", ".join(word for word in words if word) or "samples"
        again = sum(other == name or other.startswith(f"{name} (") for other in names)
        names.append(f"{name} ({again + 1})" if again else name)
    return names
