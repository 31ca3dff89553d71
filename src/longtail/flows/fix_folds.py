"""What a fix does to the samples it was fitted on: each fifth by a fit on the others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from longtail.core import Scores
from longtail.core.arrays import as_numpy
from longtail.core.minimise import UnsettledError
from longtail.flows import fix_rows, fix_steps
from longtail.flows.fix_steps import Plan
from longtail.flows.samples import Integers
from longtail.flows.score_sources import Source, name_of
from longtail.posthoc import Affine


class ByFold(NamedTuple):
    """The samples that were fitted on, each fifth adjusted by a fit on the others."""

    folds: Integers  # of all samples
    steps: list[Affine]
    after: Scores


def cross_fitted(
    source: Source,
    labelled: Scores,
    some: Integers | None,
    plan: Plan,
    unlabelled: Scores | None,
) -> ByFold:
    """The labelled samples, or those at the positions `some`, fixed so."""
    folds = fix_steps.fold_numbers(as_numpy(source.labels), plan.seed)
    own = folds if some is None else folds[some]
    with fitting_to(source):
        steps = fix_steps.cross_fit(labelled, own, plan, unlabelled)
        return ByFold(folds, steps, fix_rows.adjusted_by_fold(labelled, steps, own))


@contextmanager
def fitting_to(source: Source) -> Iterator[None]:
    """A ValueError that names the scores if nothing can be fitted to them here."""
    try:
        yield
    except UnsettledError as error:
        raise ValueError(f"nothing can be fitted to {name_of(source)}: {error}") from error
