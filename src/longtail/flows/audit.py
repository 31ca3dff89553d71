"""The audit: what labels say before anything is trained, what to expect and what to try.

longtail audit LABELS          lt.audit("labels.csv")
"""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import numpy as np

from longtail.core import GroupEdges, GroupsLike, Prior
from longtail.core.arrays import ArrayLike, as_numpy, is_torch, refuse_lossy
from longtail.core.labels import check_counts
from longtail.data import LabelCounts, align_counts, read_label_counts
from longtail.data.tables.label_codes import LabelCodes, as_names, first_few
from longtail.flows import label_profile
from longtail.flows.file_names import AUDIT_RESULT, COUNTS
from longtail.flows.results import Result, write_json

_Counts: TypeAlias = Mapping[str, int] | Mapping[int, int] | Prior
Labels: TypeAlias = str | os.PathLike[str] | _Counts | Sequence[str] | ArrayLike
_Parts: TypeAlias = Mapping[str, LabelCounts]
# Up to this ratio logits start 0.4 nats apart at the most: little that a method could win back.
_BALANCED = 1.5
_SUSPICIOUS = 20  # so many samples of as many classes are no labels
_UNCERTAIN = 3.0  # points of a mean recall: more cannot tell one τ from another
_SCORES = "lt.Scores(logits, labels, carried=counts)"


@dataclass(frozen=True)
class Remedy:
    """Something to try: absent, move, loss, keep_tau, choose_tau, target, metrics or single."""

    kind: str
    command: str = ""  # does it; VAL is a file of scores, and KIND what it holds
    python: str = ""  # a line of Python that does it


@dataclass(frozen=True)
class AuditResult(Result):
    """What labels say."""

    classes: tuple[str, ...]  # the names of the classes
    counts: tuple[int, ...]  # training samples of each class
    test_counts: tuple[int, ...] | None  # test samples of each class; None without a test set
    train: label_profile.Profile  # how long the tail of the training set is
    groups: tuple[label_profile.Group, ...]  # classes with many, medium and few training samples
    edges: GroupEdges  # of these
    test: label_profile.Profile | None = None  # how long the tail of the test set is
    shift: label_profile.Shift | None = None  # how far the test set differs from the training set
    sources: tuple[str, ...] = ()  # the files that the two sets are from, if from files
    counts_files: tuple[str, str] = COUNTS  # what remedies call the files of these counts
    command: str = "lt.audit"  # what made it

    kind: ClassVar[str] = "audit"

    @property
    def bias(self) -> float:
        """By how many nats the logits of the smallest class start behind those of the largest."""
        return math.log(self.train.imbalance_ratio)

    @property
    def has_tail(self) -> bool:
        """Whether there is imbalance enough to correct."""
        return self.train.imbalance_ratio > _BALANCED

    @property
    def tests_balanced(self) -> bool:
        """Whether the test set has all classes, and about equally often."""
        test = self.test
        return test is not None and test.imbalance_ratio <= _BALANCED and not test.absent

    @property
    def curves(self) -> dict[str, label_profile.ShareCurve]:
        """Of each set what the classes hold that training has most of, in 100 steps or fewer."""
        sets = {"train": self.counts} | ({"test": self.test_counts} if self.test_counts else {})
        return {name: label_profile.share_curve(part, self.counts) for name, part in sets.items()}

    @property
    def findings(self) -> tuple[str, ...]:
        """What to expect, by name, in the order in which it should be said."""
        train, shift, few = self.train, self.shift, self.groups[-1]
        is_id = train.num_samples == train.num_classes >= _SUSPICIOUS
        cases = {
            "ids": is_id,
            "balanced": not is_id and train.imbalance_ratio == 1,
            "nearly_balanced": not is_id and 1 < train.imbalance_ratio <= _BALANCED,
            "tail": not is_id and self.has_tail,
            "scarce": few.share > 0.5,
            "small_tail": self.has_tail and 0 < few.share <= 0.2,
        }
        if shift is not None:
            rebalanced = self.has_tail and self.tests_balanced
            nearer = shift.to_uniform < shift.total_variation
            cases |= {
                "test_balanced": rebalanced,
                "test_shifted": not rebalanced and shift.is_real,
                "test_alike": not rebalanced and not shift.is_real,
                "test_has_own_tail": not self.tests_balanced and not self.has_tail,
                "test_is_nearer_uniform": not self.tests_balanced and self.has_tail and nearer,
                "test_has_tail_too": not self.tests_balanced and self.has_tail and not nearer,
                "few_tested": bool(few.num_classes and few.tested_samples),
                "few_untested": bool(few.num_classes and not few.tested_samples),
                "not_in_test": bool(shift.not_in_test),
                "not_in_train": bool(shift.not_in_train),
            }
        return tuple(name for name, holds in cases.items() if holds)

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        """What to try, first things first."""
        return tuple(self._remedies())

    def _remedies(self) -> Iterator[Remedy]:
        train, test = self.counts_files
        fix = f"longtail fix VAL --kind KIND --counts {train} --target {{}} -o fixed"
        if self.train.absent:
            smooth = 'prior = lt.Prior.of(counts, zeros="smooth")'
            yield Remedy("absent", python=f"{smooth}  # for counts, where a prior is asked")
        if self.has_tail:
            error = self.groups[-1].mean_error or 0.0
            choose = "lt.posthoc.LogitAdjustment.fit(validation)"
            uniform = "lt.Prior.uniform(len(counts))"
            yield Remedy("move", fix.format("uniform"), f"{_SCORES}.under({uniform})")
            yield Remedy("loss", python="loss = lt.losses.LogitAdjusted(counts)")
            certain = error <= _UNCERTAIN
            yield Remedy("choose_tau", python=choose) if certain else Remedy("keep_tau")
        if self.shift is not None and self.shift.is_real and not self.tests_balanced:
            absent = self.test is not None and self.test.absent
            prior = 'lt.Prior.of(test_counts, zeros="keep")' if absent else "test_counts"
            yield Remedy("target", fix.format(test), f"{_SCORES}.under({prior})")
        if self.has_tail:
            evaluate = "lt.metrics.evaluate(lt.Scores(logits, labels, counts=counts))"
            yield Remedy("metrics", python=evaluate)
        if self.train.single:
            yield Remedy("single")

    def as_json(self) -> dict[str, Any]:
        """Everything as plain values; what to expect and what to try by their names."""
        values = asdict(self)
        return {key: values[key] for key in ("train", "groups", "test", "shift")} | {
            "group_edges": str(self.edges),
            "bias": self.bias,
            "expect": list(self.findings),
            "try": [asdict(each) for each in self.remedies],
        }

    def write(self, folder: str | os.PathLike[str]) -> tuple[str, ...]:
        """Write audit.json and the counts into a folder; their names."""
        values: dict[str, Any] = {AUDIT_RESULT: self.as_json()}
        for name, part in zip(COUNTS, (self.counts, self.test_counts), strict=True):
            if part is not None:
                values[name] = dict(zip(self.classes, part, strict=True))
        for name, value in values.items():
            write_json(Path(folder) / name, value)
        return tuple(values)


def audit(
    labels: Labels,
    *,
    test: Labels | None = None,
    column: str | int | None = None,
    header: bool | None = None,
    groups: GroupsLike | None = None,
) -> AuditResult:
    """Say how long the tail of labels is, what to expect and what to try.

    Args:
        labels: A file or folder, labels, a mapping from class to count, or `Prior.of(counts)`.
        test: The same of a test set; by default the one that a file of labels itself holds.
        column: The column of a table, by name or by place counted from 0, or the array of an .npz.
        header: Whether the first line of a table names its columns; by default its words decide.
        groups: The edges of many, medium and few, such as "many=100,few=20,inclusive".

    >>> result = audit({"cat": 900, "dog": 90, "fox": 10}, test={"cat": 50, "dog": 50, "fox": 50})
    >>> result.train.imbalance_ratio, result.bias, result.shift.total_variation
    (90.0, 4.50, 0.567)
    """
    parts = _parts(labels, column, header)
    train = _chosen(parts, labels, ("train", "all"))
    if train is None:
        raise ValueError(
            f"{labels} has no training labels, only {', '.join(parts)}; give the training labels "
            "as LABELS, and these with --test"
        )
    others = (parts, labels) if test is None else (_parts(test, column, header), test)
    whole = () if test is None else ("all", "train")
    tested = _chosen(*others, ("test", "validation", *whole))
    sets = [train, tested] if tested else [train]
    classes, counts = align_counts([part for _, part in sets])
    sources = tuple(source for source, _ in sets if source)
    return audit_counts(counts[0], counts[1] if tested else None, classes, sources, groups)


def audit_counts(
    train: Sequence[int],
    test: Sequence[int] | None = None,
    classes: Sequence[str] | None = None,
    sources: tuple[str, ...] = (),
    groups: GroupsLike | None = None,
) -> AuditResult:
    """Audit class counts, with those of a test set if there is one.

    >>> result = audit_counts([900, 90, 10], test=[50, 50, 50], classes=["cat", "dog", "fox"])
    >>> result.bias, result.shift.total_variation, result.shift.divergence
    (4.50, 0.567, 1.274)
    >>> [(group.name, group.num_classes, group.class_error) for group in result.groups]
    [('many', 1, 7.07), ('medium', 1, 7.07), ('few', 1, 7.07)]
    """
    counts, edges = check_counts(train), GroupEdges.of(groups)
    names = tuple(map(str, range(len(counts)) if classes is None else classes))
    if len(names) != len(counts):
        raise ValueError(f"classes must name each of {len(counts)} classes, got {len(names)} names")
    tested = None if test is None else check_counts(test, len(counts))
    return AuditResult(
        classes=names,
        counts=tuple(counts.tolist()),
        test_counts=None if tested is None else tuple(tested.tolist()),
        train=label_profile.profile_of(counts, names),
        groups=label_profile.groups_of(counts, tested, edges),
        edges=edges,
        test=None if tested is None else label_profile.profile_of(tested, names),
        shift=None if tested is None else label_profile.shift_of(counts, tested, names),
        sources=sources,
    )


def _parts(labels: Labels, column: str | int | None, header: bool | None) -> _Parts:
    """The counts of each part, or all of them under "all"."""
    if isinstance(labels, str | os.PathLike):
        return read_label_counts(Path(labels), column, header)
    if isinstance(labels, Prior):
        if labels.counts is None:
            raise ValueError("this prior has no counts, and an audit needs them: Prior.of(counts)")
        labels = dict(enumerate(labels.counts.tolist()))
    if isinstance(labels, Mapping):
        _check_one_kind(labels)
        names = as_names(np.array(list(labels)), "the classes") if labels else ()
        counted = dict(zip(names, labels.values(), strict=True))
        return {"all": LabelCounts.of_names(counted, "the counts")}
    codes = _codes(labels)
    if codes.stored_as_numbers and len(codes.codes) <= max(map(int, codes.values), default=-1):
        raise ValueError(
            f"{len(codes.codes)} whole numbers up to {codes.values[-1]} may be class counts or "
            "labels: give lt.Prior.of(counts) for counts, or the labels as text, "
            "list(map(str, labels))"
        )
    return {"all": LabelCounts.of_codes(codes, None, "the labels")}


def _codes(labels: object) -> LabelCodes:
    """Labels in memory."""
    refuse_lossy(labels)
    # Of a list of numbers and names NumPy would make names.
    kind = object if isinstance(labels, list | tuple) else None
    values = as_numpy(labels) if is_torch(labels) else np.asarray(labels, dtype=kind)
    if values.dtype.kind == "O" and values.ndim == 1:
        objects = values.tolist()
        _check_one_kind(objects)
        if not objects or isinstance(objects[0], str):
            return LabelCodes.of_texts(objects)
        values = np.array(objects)
    if values.ndim != 1 or values.dtype.kind not in "iuUS":
        raise ValueError(
            f"labels must be one class index or name a sample, got {values.dtype} of shape "
            f"{values.shape}; for class counts give a mapping from class to count"
        )
    return LabelCodes.of_array(values, "labels")


def _check_one_kind(labels: Collection[object]) -> None:
    kinds = {type(label) for label in labels}
    for kind in (str, bytes, (int, np.integer)):
        if all(issubclass(each, kind) and each is not bool for each in kinds):
            return
    raise ValueError(
        "labels must be one class index or name a sample, all of them numbers or all of them text, "
        f"got {first_few(sorted(each.__name__ for each in kinds))}; leave out samples without a "
        "class"
    )


def _chosen(parts: _Parts, labels: Labels, names: Sequence[str]) -> tuple[str, LabelCounts] | None:
    """The first of the parts that is there, and where it is from."""
    name = next((name for name in names if name in parts), None)
    if name is None:
        return None
    source = os.fspath(labels) if isinstance(labels, str | os.PathLike) else ""
    return (source if name == "all" or not source else f"{source}, its {name} part"), parts[name]
