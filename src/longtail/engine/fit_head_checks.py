"""What `fit_head` is given, checked at its door: nothing is accepted and then ignored."""

from __future__ import annotations

from torch import Tensor

from longtail.core.arrays import ArrayLike
from longtail.core.numbers import check_whole
from longtail.core.tensors import label_tensor
from longtail.engine.feature_rows import FeatureRows
from longtail.heads import Head, TauNorm


def check_head(head: Head) -> None:
    """Raise for what is no head, or one that was fitted in a unit of its own."""
    if not isinstance(head, Head):
        raise TypeError(
            f"fit_head fits heads of longtail.heads, got {type(head).__name__}; a torch.nn.Linear "
            "becomes one by longtail.heads.Linear.from_linear"
        )
    if head.unit is not None:
        raise ValueError(
            f"this head divides features by {head.unit.item():.3g}, as it was fitted on such; "
            "fit a new one"
        )


def check_options(
    head: Head, solver: str, patience: int, trained: bool, given: tuple[object, ...]
) -> None:
    """Raise for what would be accepted and ignored."""
    if solver not in ("sgd", "lbfgs"):
        raise ValueError(f'solver must be "sgd" or "lbfgs", got {solver!r}')
    check_whole(patience, "patience", least=1)
    if trained:
        return
    loss, sampler, recipe, progress, checkpoint, held_out = given
    ignored = (loss, sampler, recipe, progress, checkpoint)
    what = "is set from class moments" if head.moment_options is not None else "only chooses its τ"
    if any(option is not None for option in ignored) or solver != "sgd":
        raise ValueError(
            f"{type(head).__name__} {what} and has nothing to train, so it takes no loss, "
            "sampler, recipe, solver, progress or checkpoint"
        )
    if held_out is not None and not isinstance(head, TauNorm):
        raise ValueError(f"{type(head).__name__} {what}, so there is nothing to stop by held_out")


def checked_labels(labels: ArrayLike, rows: FeatureRows, head: Head, what: str) -> Tensor:
    """The labels of these rows, which must be finite and of the head's dimension."""
    known = label_tensor(labels, head.num_classes).cpu()
    if len(known) != len(rows) or not len(rows) or rows.dim != head.dim:
        raise ValueError(
            f"{what} must have {head.dim} numbers for each of {len(known)} labels, at least one, "
            f"got {len(rows)} rows of {rows.dim}"
        )
    rows.check_finite(what)
    return known
