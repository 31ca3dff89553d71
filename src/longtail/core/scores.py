"""Scores: what a model said about a set of samples, with the prior its logits carry."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Self, TypeAlias, cast, overload

import numpy as np

from longtail.core import arrays, score_checks, score_parts, scores_file
from longtail.core.arrays import ArrayLike, ArrayT, Numbers, RowsLike, Table
from longtail.core.costs import Costs, CostsLike
from longtail.core.numbers import check_choice
from longtail.core.prior import Prior, PriorLike, check_same_classes
from longtail.core.probabilities import check_not_probs, log_probs
from longtail.core.retarget import check_in_range, retarget
from longtail.core.scores_file import Split as Split
from longtail.core.softmax import softmax
from longtail.core.tensor_file import save_tensors
from longtail.core.tracing import is_traced

if TYPE_CHECKING:
    from longtail.core.label_odds import LabelOddsLike

Ids: TypeAlias = Sequence[object] | Numbers
Family: TypeAlias = Literal["softmax", "sigmoid"]


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Scores(Generic[ArrayT]):
    """Logits of N samples and C classes, and what is known about them.

    Probabilities, rows that are non-negative and sum to one, are refused: `from_probs` takes them.
    Arrays come back as the kind the logits came in: NumPy, torch or JAX. Lists and DataFrames
    become NumPy arrays; the columns of a DataFrame name the classes. `family="sigmoid"` is for
    yes/no labels of which a sample may have several, and gives `core.LabelScores`.

    >>> scores = Scores([[2.0, 1.0], [0.5, 0.0]], labels=[1, 0], carried=[90, 10])
    >>> scores.predict().tolist()
    [0, 0]
    >>> scores.under(Prior.uniform(2)).predict().tolist()
    [1, 1]
    """

    logits: ArrayT  # of shape (N, C), without NaN and +inf; -inf means that a class is ruled out
    labels: ArrayT | None  # the true classes
    carried: Prior | None  # what the logits carry; None if that is not known: `under` refuses
    counts: ArrayT | None  # training samples of each class, for many, medium and few
    classes: tuple[str, ...] | None  # their names
    split: Split | None  # what the samples may be used for
    ids: Numbers | None  # what tells the samples apart
    family: ClassVar[Family] = "softmax"
    # That it was looked at once. `replace` hands it on: parts of logits may sum to one by accident.
    _are_logits: bool = True

    def __new__(cls, *args: Any, family: Family = "softmax", **options: Any) -> Self:
        """Of the class of the family: what is made is then initialised as one of it."""
        if family == "sigmoid" and cls.family == "softmax":
            from longtail.core.label_scores import LabelScores

            return cast(Self, object.__new__(LabelScores))
        return object.__new__(cls)

    @overload
    def __init__(
        self: Scores[Numbers],
        logits: Table | Sequence[Sequence[float]],
        labels: ArrayLike | None = None,
        carried: PriorLike | None = None,
        counts: PriorLike | None = None,
        classes: Sequence[str] | None = None,
        split: Split | None = None,
        ids: Ids | None = None,
        *,
        _are_logits: bool = False,
    ) -> None: ...

    @overload
    def __init__(
        self,
        logits: ArrayT,
        labels: ArrayLike | None = None,
        carried: PriorLike | None = None,
        counts: PriorLike | None = None,
        classes: Sequence[str] | None = None,
        split: Split | None = None,
        ids: Ids | None = None,
        *,
        family: Literal["softmax"] = "softmax",
        _are_logits: bool = False,
    ) -> None: ...

    @overload
    def __init__(
        self,
        logits: ArrayT,
        labels: ArrayLike | None = None,
        carried: LabelOddsLike | None = None,
        counts: ArrayLike | None = None,
        classes: Sequence[str] | None = None,
        split: Split | None = None,
        ids: Ids | None = None,
        *,
        family: Literal["sigmoid"],
        _are_logits: bool = False,
    ) -> None: ...

    def __init__(
        self,
        logits: RowsLike,
        labels: ArrayLike | None = None,
        carried: PriorLike | LabelOddsLike | None = None,
        counts: PriorLike | None = None,
        classes: Sequence[str] | None = None,
        split: Split | None = None,
        ids: Ids | None = None,
        *,
        family: Family = "softmax",
        _are_logits: bool = False,
    ) -> None:
        if family != "softmax":  # of the class of another family, which has its own
            check_choice(family, Family, "family")
        rows = _check_rows(logits, "logits")
        if not _are_logits and not is_traced(rows):
            check_not_probs(rows)
        num_classes = rows.shape[1]
        names = score_checks.class_names(logits, classes, num_classes)
        prior = None if carried is None else Prior.of(carried, classes=names)  # type: ignore[arg-type]
        if prior is not None:
            check_same_classes(num_classes, prior, "the logits have", "the carried prior")
        if split is not None:
            check_choice(split, Split, "split")
        self.__dict__.update(  # not vars(self): what a row costs on its way is counted in calls
            logits=rows,
            labels=None if labels is None else score_checks.labels_of(rows, labels),
            carried=prior,
            counts=None if counts is None else score_checks.counts_of(counts, rows, names),
            classes=names,
            split=split,
            ids=None if ids is None else score_checks.check_ids(ids, len(rows)),
        )

    @classmethod
    def from_probs(
        cls,
        probs: RowsLike,
        labels: ArrayLike | None = None,
        carried: PriorLike | None = None,
        counts: PriorLike | None = None,
        classes: Sequence[str] | None = None,
        split: Split | None = None,
        ids: Ids | None = None,
        *,
        family: Family = "softmax",
    ) -> Self:
        """From probabilities, whose rows must sum to one, or to 100 in percent.

        A probability of exactly zero is taken for a very small one, with a warning. Of yes/no
        labels they are those of yes, and sum to anything.
        """
        check_choice(family, Family, "family")
        if family == "sigmoid" and cls.family == "softmax":
            from longtail.core.label_scores import LabelScores

            facts = labels, carried, counts, classes, split, ids
            return cast(Self, LabelScores.from_probs(probs, *facts))
        rows = _check_rows(probs, "probs")
        classes = score_checks.class_names(probs, classes, rows.shape[1])
        made = log_probs(rows, "probs", "pass them to Scores(logits)", stacklevel=3)
        logs = arrays.to_kind(made, rows)
        return cls(logs, labels, carried, counts, classes, split, ids, _are_logits=True)

    @property
    def num_classes(self) -> int:
        """How many classes there are."""
        return int(self.logits.shape[1])

    def under(self, target: PriorLike) -> Self:
        """Moved to a target prior; UnknownPriorError if it is not known what they carry now."""
        goal = Prior.of(target, classes=self.classes)
        return self._moved(retarget(self.logits, self.carried, goal), goal)

    def probs(self) -> ArrayT:
        """The class probabilities under the carried prior."""
        return softmax(self.logits)

    def predict(self) -> ArrayT:
        """The most likely class of each sample; of equally likely ones the lowest index."""
        return cast(ArrayT, cast(Any, self.logits).argmax(1))

    def decide(
        self, costs: CostsLike, target: PriorLike | None = None, abstain: float | None = None
    ) -> ArrayT:
        """The class of each sample whose expected cost is least, under the target or as they are.

        Args:
            costs: What it costs to mistake a class, one number each, in order or by name; or a
                matrix of true (rows) and decided classes (columns), whose diagonal is what right
                decisions cost.
            target: The prior that the samples follow; by default the one that the logits carry.
            abstain: What it costs not to decide: -1 where every decision is expected to cost more.

        >>> scores = Scores([[2.0, 1.0], [0.5, 0.0]], carried=[90, 10])
        >>> scores.decide([1, 2]).tolist(), scores.decide([1, 2], abstain=0.6).tolist()
        ([0, 1], [0, -1])
        """
        remedy = "choose thresholds for yes/no labels: posthoc.Thresholds.fit"
        score_checks.check_softmax(self, "a decision by costs", remedy)
        scores = self if target is None else self.under(target)
        return Costs.of(costs, self.num_classes, self.classes).decide(scores.logits, abstain)

    def take(self, rows: ArrayLike | slice) -> Self:
        """Some of the samples: their positions, a mask, or a slice."""
        at = rows if isinstance(rows, slice) else score_parts.positions(rows)
        return self._with(
            logits=score_parts.taken(self.logits, at),
            labels=None if self.labels is None else score_parts.taken(self.labels, at),
            ids=None if self.ids is None else self.ids[at],
        )

    @classmethod
    def concat(cls, parts: Sequence[Scores[ArrayT]]) -> Self:
        """All samples of several scores of the same classes that carry the same prior."""
        if not parts:
            raise ValueError("concat puts scores together, expected at least one, got none")
        first = parts[0]
        for part in parts[1:]:
            if differs := [
                name for name, same in score_parts.agreement(first, part).items() if not same
            ]:
                raise ValueError(
                    f"scores to put together must agree in {' and '.join(differs)}, got "
                    f"{first!r} and {part!r}; move them to one prior with .under(target) first, "
                    "and give all of them what one has"
                )
        names = ("logits", "labels", "ids")
        columns = {
            name: score_parts.joined([getattr(part, name) for part in parts]) for name in names
        }
        return cast(Self, type(first)._made(vars(first) | columns))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one safetensors file with everything; it replaces an existing one whole."""
        tensors, metadata = scores_file.described(self.carried, self.classes, self.split, self.ids)
        for name in ("logits", "labels", "counts"):
            if getattr(self, name) is not None:
                tensors[name] = arrays.as_numpy(getattr(self, name))
        save_tensors(path, tensors, metadata)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Scores[Numbers]:
        """Read what `save` wrote, as NumPy arrays."""
        stored: dict[str, Any] = {**scores_file.read(path)}
        return Scores(**stored, _are_logits=True)

    @classmethod
    def _made(cls, values: dict[str, Any]) -> Self:
        """From values that were checked: logits and what belongs to them."""
        scores = object.__new__(cls)
        scores.__dict__.update(values)
        return scores

    def _with(self, **changes: Any) -> Self:
        """The same with some values changed, which are not looked at again."""
        return self._made(self.__dict__ | changes)

    def _moved(self, logits: ArrayT, carried: Prior | None) -> Self:
        """The same samples with other logits, none of them left without a class."""
        if not is_traced(logits):
            if carried is not None and carried.has_zeros:
                score_checks.check_class_left(logits)
            if not isinstance(logits, np.ndarray):  # NumPy says so by itself
                check_in_range(logits)
        return self._with(logits=logits, carried=carried)

    def __len__(self) -> int:
        return int(self.logits.shape[0])

    def __repr__(self) -> str:
        facts = [f"carried={self.carried!r}"]
        facts += [n for n in ("labels", "counts", "classes") if getattr(self, n) is not None]
        facts += [f"split={self.split!r}"] if self.split else []
        return f"Scores({len(self)} samples, {self.num_classes} classes, {', '.join(facts)})"


def _check_rows(values: RowsLike, name: str) -> Any:
    """Rows in their kind, without what torch differentiates them by."""
    rows = arrays.as_array(values)
    score_checks.check_rows(rows, name)
    return rows.detach() if arrays.is_torch(rows) else rows
