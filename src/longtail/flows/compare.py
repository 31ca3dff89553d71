"""Comparing runs: find them, put those on the same samples together, measure them alike.

    longtail compare runs          lt.compare("runs")

Runs that differ only in their seed are one method. Every method stands as trained and under the
target, with intervals, ranks, and what of the differences is noise.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from longtail import __version__
from longtail.core import GroupEdges, GroupsLike, Prior, Scores
from longtail.core.prior import PriorLike
from longtail.data import ScoreTable, open_score_table
from longtail.flows.compare_runs import BY_KEY, SampleSet, measured_run
from longtail.flows.compare_sets import ComparedSet, Ranks, compare_set, set_ranks
from longtail.flows.file_names import COMPARISON
from longtail.flows.prior_files import read_prior
from longtail.flows.results import Result, write_json
from longtail.flows.run_sources import TARGET, Note, Source, find_sources
from longtail.flows.samples import places_by_id

PathLike: TypeAlias = str | os.PathLike[str]
# Other data make another table, not another method.
# In older runs validation_share is held_out.
_DATA = ("kind", "imbalance_ratio", "profile", "validation_share", "held_out", "official")
_OF_THE_DATA = {f"data.{key}" for key in _DATA}
_MOST = 10  # values of a list that a name has room for


@dataclass(frozen=True, eq=False)
class CompareResult(Result):
    """Methods on one set of samples or more.

    The target is "uniform", "none" for scores and samples as they are, a file, or a "given" prior.
    """

    sets: tuple[ComparedSet, ...]  # in the order they were met
    ranks: Ranks | None  # over the sets, of the methods that are on all of them; None for one set
    target: str
    notes: tuple[Note, ...] = ()  # what the reader should know about the files
    command: str = "lt.compare"  # what made it

    kind: ClassVar[str] = "compare"

    def as_json(self) -> dict[str, Any]:
        """Everything that is a number or a name."""
        ranks = self.ranks
        return {
            "target": self.target,
            "sets": [table.as_json() for table in self.sets],
            "ranks": None if ranks is None else asdict(ranks),
            "notes": [asdict(each) for each in self.notes],
        }

    def write(self, folder: PathLike) -> None:
        """Write comparison.json into a folder."""
        head = {"version": __version__, "command": self.command}
        write_json(Path(folder) / COMPARISON, head | self.as_json())


class _Member(NamedTuple):
    """A file of scores in a group of those with the same samples, classes and training counts."""

    source: Source
    table: ScoreTable
    method: str


def compare(
    folders: PathLike | Iterable[PathLike],
    *,
    names: Iterable[tuple[str, PathLike]] = (),
    target: PathLike | PriorLike | None = "uniform",
    by: str | None = None,
    groups: GroupsLike | None = None,
    progress: Callable[[str], None] = lambda what: None,
) -> CompareResult:
    """Compare all runs that the folders hold.

    Args:
        folders: Run folders of train, fix and fit, scores files, or folders with these in them.
        names: Pairs of a method's name and such a path: all runs there are of that method.
        target: "uniform", a prior, a JSON file of weights, or None ("none") for scores and samples
            as they are.
        by: The metric to order methods by; by default balanced accuracy, and accuracy under a
            target that is neither uniform nor none.
        groups: The edges of many, medium and few, such as "many=100,few=20,inclusive"; by default
            those of the runs where they agree.
        progress: Told what is measured next.
    """
    if by is not None and by not in BY_KEY:
        raise ValueError(f"methods are ordered by one of {', '.join(BY_KEY)}; got {by!r}")
    paths = [folders] if isinstance(folders, str | os.PathLike | Scores) else list(folders)
    named = [(name, Path(path)) for name, path in names]
    if not paths and not named:
        raise ValueError(
            "there is nothing to compare: give folders that longtail train, fix or fit have "
            "written, or files of scores"
        )
    if any(isinstance(path, Scores) for path in paths):
        raise TypeError(
            "runs are compared by their folders or files, whose names are the methods': save "
            'scores by scores.save("METHOD-seed0.safetensors"), and give the files'
        )
    sources, notes = find_sources([Path(path) for path in paths], named)
    notes += [source.note for source in sources if source.note is not None]
    goal = "none" if target is None else target
    target_name = os.fspath(goal) if isinstance(goal, str | os.PathLike) else "given"
    chosen = by or (
        "balanced_accuracy" if target_name in ("uniform", "none") else "accuracy_under_target"
    )
    together = _grouped(sources)
    sets = []
    for group, name in zip(together, _set_names(together), strict=True):
        tables = [member.table for member in group]
        first = _with_ids(tables)
        counts = next((table.counts for table in tables if table.counts is not None), None)
        labels = np.asarray(first.labels, dtype=np.int64)
        prior, edges = _prior(goal, first), _edges(group) if groups is None else groups
        size = first.num_classes
        samples = SampleSet(name, labels, size, prior, counts, GroupEdges.of(edges))
        runs = []
        for (source, table, method), seed in zip(group, _seeds(group), strict=True):
            progress(f"{method}, {source.scores}")
            places = places_by_id(first.ids, table.ids)
            assert places is not None  # they agree
            scores = table.as_scores().take(places)
            runs.append(measured_run(scores, samples, method, seed, str(source.scores)))
        sets.append(compare_set(samples, runs, chosen))
    return CompareResult(tuple(sets), set_ranks(sets), target_name, tuple(notes))


def method_names(sources: Sequence[Source]) -> list[str]:
    """The method of each source, in order: runs that differ only in their seed have one name.

    >>> from pathlib import Path
    >>> runs = [Source(Path(f"{at}"), "la", "0", settings={"loss.tau": at}) for at in (1.0, 1.5)]
    >>> method_names(runs)
    ['la tau=1', 'la tau=1.5']
    """
    names: list[str] = []
    meanings: dict[str, list[str]] = {}  # of each name the settings it stands for
    for source in sources:
        kin = _kin(source)
        keys = _differing([_method_settings(s) for s in sources if _kin(s) == kin])
        own = _method_settings(source)
        settings = [f"{_short(key, keys)}={_value_text(own[key])}" for key in keys if key in own]
        name = " ".join([source.label or source.base, *settings])
        name = f"{name} + {source.head}" if source.head else name
        # Settings that are written alike, such as two priors of many classes, stay two methods.
        meaning = json.dumps([own.get(key) for key in keys], default=str)
        others = meanings.setdefault(name, [])
        others += [] if meaning in others else [meaning]
        number = others.index(meaning) + 1
        names.append(f"{name} ({number})" if number > 1 else name)
    return names


def _kin(source: Source) -> tuple[str, str, str]:
    """What runs have in common that only settings can tell apart."""
    return source.label, "" if source.label else source.base, source.head


def _method_settings(source: Source) -> dict[str, Any]:
    if source.label:  # whoever names methods decides what they are, but for their target
        return {TARGET: source.settings.get(TARGET)}
    return {key: value for key, value in source.settings.items() if key not in _OF_THE_DATA}


def _differing(each: Sequence[Mapping[str, Any]]) -> list[str]:
    keys = dict.fromkeys(key for settings in each for key in settings)
    values = {key: {json.dumps(s.get(key), default=str) for s in each} for key in keys}
    return [key for key in keys if len(values[key]) > 1]


def _short(key: str, keys: Sequence[str]) -> str:
    """The last word of a key, if no other ends in it; the part itself where its name differs."""
    last = key.removesuffix(".name").rpartition(".")[2]
    alike = [other for other in keys if other.removesuffix(".name").rpartition(".")[2] == last]
    return last if len(alike) == 1 else key.removesuffix(".name")


def _value_text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, (list, tuple)):
        shown = [_value_text(part) for part in value[:_MOST]]
        return "[" + ", ".join(shown + ["…"] * (len(value) > _MOST)) + "]"
    if isinstance(value, Mapping):
        return str(value.get("name", json.dumps(value, default=str)))
    return "none" if value is None else str(value)


def _grouped(sources: Sequence[Source]) -> list[list[_Member]]:
    """Those together that agree in all that is known of their samples."""
    groups: list[list[_Member]] = []
    for source, method in zip(sources, method_names(sources), strict=True):
        table = open_score_table(source.scores, source.kind)
        if table.labels is None:
            raise ValueError(
                f"{source.scores} has no labels, and methods are compared by what they get right; "
                "save the scores with their labels"
            )
        member = _Member(source, table, method)
        alike = (group for group in groups if _belongs(table, [each.table for each in group]))
        if (group := next(alike, None)) is None:
            groups.append([member])
        else:
            group.append(member)
    return groups


def _belongs(table: ScoreTable, group: Sequence[ScoreTable]) -> bool:
    """Whether it is of the same samples; what some of them do not say cannot differ."""
    first = _with_ids(group)
    places = places_by_id(first.ids, table.ids)
    if places is None or first.num_classes != table.num_classes:
        return False
    return np.array_equal(np.asarray(first.labels), np.asarray(table.labels)[places]) and all(
        (not table.classes or not each.classes or table.classes == each.classes)
        and (table.counts is None or each.counts is None or (table.counts == each.counts).all())
        for each in group
    )


def _with_ids(group: Sequence[ScoreTable]) -> ScoreTable:
    """The table in whose order the samples of all are put: the first that has ids."""
    return next((table for table in group if table.ids is not None), group[0])


def _set_names(groups: Sequence[Sequence[_Member]]) -> list[str]:
    """What each set is called: by the recipe's data where there is one, else by its part."""
    names: list[str] = []
    for group in groups:
        each = (member.source.settings for member in group)
        settings = next((settings for settings in each if "data.kind" in settings), {})
        words = [str(settings.get("data.kind", ""))]
        ratio = settings.get("data.imbalance_ratio")
        words += [f"imbalance {ratio:g}"] if ratio is not None else []
        words.append(group[0].table.split or "")
        name = ", ".join(word for word in words if word) or "samples"
        again = sum(other == name or other.startswith(f"{name} (") for other in names)
        names.append(f"{name} ({again + 1})" if again else name)
    return names


def _seeds(group: Sequence[_Member]) -> list[str]:
    """The seed of each run; one that a method has twice is two runs."""
    taken: set[tuple[str, str]] = set()
    seeds = []
    for source, _, method in group:
        again = (method, source.seed) in taken
        seeds.append(f"{source.seed}, {source.scores}" if again else source.seed)
        taken.add((method, seeds[-1]))
    return seeds


def _edges(group: Sequence[_Member]) -> GroupEdges:
    """Those of the runs that name some, if they agree."""
    named = {GroupEdges.of(each.source.groups) for each in group if each.source.groups}
    return named.pop() if len(named) == 1 else GroupEdges()


def _prior(target: PathLike | PriorLike, table: ScoreTable) -> Prior | None:
    if not isinstance(target, str | os.PathLike):
        return Prior.of(target, zeros="keep", classes=table.classes)
    if target == "none":
        return None
    if target == "uniform":
        return Prior.uniform(table.num_classes)
    if not Path(target).is_file():
        raise FileNotFoundError(
            f"the target is uniform, none or a JSON file of weights; there is no file {target}"
        )
    return read_prior(Path(target), table)
