"""Labelled scores before and after something was done: what every section of a report looks at."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from longtail.core import Prior, Scores, measure_carried, shot_groups
from longtail.core.tensors import as_tensor
from longtail.metrics import Difference

# What scores are called before and after they were moved to the target, wherever both are shown.
AS_TRAINED, UNDER_TARGET = "as trained", "under the target"
_FITTED_ON = 2**22  # numbers that a fit of the report looks at: a few seconds


@dataclass(frozen=True, eq=False)
class Judged:
    """The same samples scored before and after.

    Attributes:
        before: Scores with labels.
        after: Of the same samples; the same scores where nothing was done.
        target: The prior that accuracy and calibration are meant under.
        validation: Held-out scores of the model that `before` is of, if there are any: what the
            prior of the samples is estimated with.
        names: What before and after are called.
        tau: How far `after` was moved from what `before` carries towards the target, beside being
            calibrated: 0 for not at all. None where it is no such move, but another model.
        is_cross_fitted: Whether parts of the samples were each moved by a τ of their own, near
            `tau`, that the other parts chose.
    """

    before: Scores
    after: Scores
    target: Prior
    validation: Scores | None = None
    names: tuple[str, str] = ("before", "after")
    tau: float | None = None
    is_cross_fitted: bool = False

    def __post_init__(self) -> None:
        if self.before.labels is None or self.after.labels is None:
            raise ValueError(
                "a report compares scores with labels, but these have none; "
                "give them: Scores(logits, labels=labels, ...)"
            )
        if not len(self.before):
            raise ValueError("a report needs at least one sample, got none")
        same = len(self.before) == len(self.after) and torch.equal(
            self.labels, as_tensor(self.after.labels).cpu()
        )
        if not same or self.before.num_classes != self.after.num_classes:
            raise ValueError(
                f"before and after must be of the same samples in the same order; got "
                f"{len(self.before)} and {len(self.after)} rows, or other labels"
            )

    @property
    def num_classes(self) -> int:
        """How many classes there are."""
        return self.before.num_classes

    @property
    def is_changed(self) -> bool:
        """Whether there is an after to compare with."""
        return self.after is not self.before

    @property
    def sides(self) -> dict[str, Scores]:
        """Before, and after where there is one, under their names."""
        both = {self.names[0]: self.before}
        return both | {self.names[1]: self.after} if self.is_changed else both

    @cached_property
    def labels(self) -> Tensor:
        """The true classes."""
        assert self.before.labels is not None
        return as_tensor(self.before.labels).cpu()

    @cached_property
    def label_counts(self) -> Tensor:
        """How many of the samples are of each class."""
        return torch.bincount(self.labels, minlength=self.num_classes)

    @cached_property
    def counts(self) -> Tensor | None:
        """Training samples of each class, if known."""
        known = self.before.counts if self.before.counts is not None else self.after.counts
        return None if known is None else as_tensor(known).cpu()

    @property
    def frequencies(self) -> Tensor:
        """Training samples of each class, or where they are not known, samples here."""
        return self.label_counts if self.counts is None else self.counts

    @cached_property
    def source(self) -> Prior | None:
        """What the logits carried before, or else the training prior; None if neither is known."""
        if self.before.carried is not None and not self.before.carried.is_close(self.target):
            return self.before.carried
        if self.counts is not None:
            return Prior.of(self.counts, zeros="smooth")
        return self.before.carried

    @cached_property
    def order(self) -> Tensor:
        """The classes from the most to the least frequent in training, or else in the samples."""
        if self.counts is not None:
            known = self.counts
        else:
            known = self.label_counts if self.source is None else as_tensor(self.source.probs)
        return known.argsort(descending=True, stable=True)

    @property
    def order_title(self) -> str:
        """What an axis of the ordered classes says."""
        if self.counts is not None:
            return "class, from most to fewest training samples"
        if self.source is not None:
            return "class, from most to least likely before"
        return "class, from most to fewest samples"

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes."""
        named = self.before.classes or self.after.classes
        return named or tuple(f"class {k}" for k in range(self.num_classes))

    @cached_property
    def groups(self) -> dict[str, Tensor]:
        """Which classes are many-, medium- and few-shot; empty if the counts are not known."""
        if self.counts is None:
            return {}
        return {name: as_tensor(mask).cpu() for name, mask in shot_groups(self.counts).items()}

    @cached_property
    def comparison(self) -> Difference:
        """All metrics of both, under the target."""
        return Difference.of(self.before, self.after, self.target, self.counts)

    @cached_property
    def measured(self) -> Prior | str:
        """What the labels say that the logits carried before, or why they do not say it."""
        logits = as_tensor(self.before.logits)[self.some]
        try:
            return measure_carried(logits, self.labels[self.some], self.classes)
        except (ValueError, RuntimeError) as error:
            return str(error)

    @cached_property
    def some(self) -> Tensor:
        """Which samples a fit of the report looks at: all, or so many of each class."""
        most = max(_FITTED_ON // self.num_classes, 2 * self.num_classes)
        if len(self.labels) <= most:
            return torch.arange(len(self.labels))
        drawn = torch.randperm(len(self.labels), generator=torch.Generator().manual_seed(0))
        place = torch.empty_like(drawn)
        by_class = drawn[self.labels[drawn].argsort(stable=True)]
        first = self.label_counts.cumsum(0) - self.label_counts
        place[by_class] = torch.arange(len(drawn)) - first[self.labels[by_class]]
        share = most / len(self.labels)
        # The same share of every class, so that their frequencies stay, but two of each at least.
        kept = place < (share * self.label_counts.double()).ceil().clamp(min=2)[self.labels]
        return kept.nonzero().flatten()


def shown(prior: Prior, judged: Judged) -> list[float]:
    """The probabilities in percent, in the order in which classes are shown."""
    return (100 * as_tensor(prior.probs)[judged.order]).tolist()
