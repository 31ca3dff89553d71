"""What a loss is called with: which axis has the classes, which samples count.

Logits of a sequence are often (N, T, C), and with T = C nothing in their shape says so: labels of
shape (N, T) fit both ways, and the value would be wrong without a word.
"""

import warnings

import torch
from torch import Tensor

from longtail.core.labels import check_labels
from longtail.core.retarget import check_logits
from longtail.core.tensors import wide_dtype
from longtail.losses.kernel import is_eager_cpu


class ClassAxis:
    """Brings the classes to axis 1; None for 1, with a warning where another could be theirs."""

    def __init__(self, class_dim: int | None = None) -> None:
        if class_dim is not None and type(class_dim) is not int:
            raise ValueError(f"class_dim must be the number of an axis, got {class_dim!r}")
        self._axis = 1 if class_dim is None else class_dim
        self._warned = class_dim is not None  # who says it needs no warning

    def first(self, logits: Tensor, labels: Tensor, num_classes: int) -> tuple[Tensor, Tensor]:
        """Logits and labels with the classes on axis 1, or an error that says what does not fit."""
        if not isinstance(logits, Tensor) or not isinstance(labels, Tensor):
            raise TypeError(
                "a loss takes torch tensors, got "
                f"{type(logits).__name__} and {type(labels).__name__}"
            )
        if logits.dim() < 2:
            raise ValueError(
                f"logits must have shape (N, C) or (N, C, d, ...), got {tuple(logits.shape)}; "
                "a single sample is a batch of one"
            )
        if logits.dim() == 2 and self._axis == 1:  # as usual: nothing else to look at
            if logits.shape[1] != num_classes or not logits.is_floating_point():
                check_logits(logits, num_classes)  # which says what is wrong
            return logits, labels
        moved = self.move(logits)
        if moved.shape[1] != num_classes and logits.is_floating_point():
            raise ValueError(
                f"logits must have {num_classes} classes on axis {self._axis}, got shape "
                f"{tuple(logits.shape)}; where the classes are on another axis, make the loss with "
                "class_dim, such as class_dim=-1 for the last"
            )
        check_logits(moved, num_classes)
        self.warn_of_two(logits, labels)
        soft = labels.is_floating_point() and labels.shape == logits.shape
        return moved, self.move(labels) if soft else labels

    def move(self, rows: Tensor) -> Tensor:
        """Rows with that axis as axis 1."""
        if not -rows.dim() <= self._axis < rows.dim():
            raise ValueError(
                f"class_dim={self._axis} names no axis of an array of shape {tuple(rows.shape)}"
            )
        return rows if self._axis % rows.dim() == 1 else rows.movedim(self._axis, 1)

    def warn_of_two(self, rows: Tensor, labels: Tensor) -> None:
        """Warn, once, if the labels fit rows on axis 1 and rows on the last axis alike."""
        if self._warned or rows.dim() < 3 or rows.shape[1] != rows.shape[-1]:
            return
        if labels.shape == rows.shape or labels.shape == rows.shape[:-1] == (
            rows.shape[:1] + rows.shape[2:]
        ):
            self._warned = _warned_of_two()


# A compiler calls it once, as it traces.
@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _warned_of_two() -> bool:
    warnings.warn(
        "the labels fit the classes of the logits, or the numbers of the features, on axis 1 and "
        "on the last axis alike; axis 1 is taken, as in torch. Make the loss with class_dim=-1 if "
        "the last one is meant, or with class_dim=1; for a term on features move the axis: "
        "features.movedim(-1, 1)",
        stacklevel=4,
    )
    return True


def check_rows(rows: Tensor, labels: Tensor, name: str) -> None:
    """Raise unless rows are of a floating type and labels class indices of their shape."""
    shape = tuple(rows.shape)
    if not rows.is_floating_point() or rows.dim() < 2:
        raise ValueError(
            f"{name} takes rows of a floating type and shape (N, D), got {rows.dtype} of {shape}"
        )
    if labels.is_floating_point():
        raise ValueError(
            f"{name} takes class indices, not soft labels: it asks which rows are of one class; "
            "mix the loss on logits and this term separately"
        )
    if labels.dtype == torch.bool or tuple(labels.shape) != shape[:1] + shape[2:]:
        raise ValueError(
            f"{name} takes integer labels of shape {shape[:1] + shape[2:]} for rows of shape "
            f"{shape}, got {labels.dtype} of shape {tuple(labels.shape)}"
        )


def all_count(labels: Tensor, ignore_index: int) -> bool:
    """Whether no sample is ignored: for labels that can be looked at."""
    if ignore_index < 0 and labels.numel():
        return labels.min().item() >= 0  # a single pass: wrong labels are found later
    return bool((labels != ignore_index).all())


def counted_rows(rows: Tensor, labels: Tensor, ignore_index: int) -> tuple[Tensor, Tensor]:
    """Flat rows and labels without the ignored, in a dtype safe for sums of exponentials."""
    if rows.dim() > 2:
        rows = rows.movedim(1, -1).flatten(0, -2)
    rows, labels = rows.to(wide_dtype(rows.dtype)), labels.flatten().long()
    # Picking rows copies them, and its gradient does too.
    if is_eager_cpu(rows) and all_count(labels, ignore_index):
        return rows, labels
    kept = labels != ignore_index
    return rows[kept], labels[kept]


def head_rows(
    features: Tensor, weight: Tensor, bias: Tensor | None, labels: Tensor, ignore_index: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Features (n, D) and labels of the samples that count, and which those are among all.

    For losses that take a linear layer's features, weight and bias in place of its logits.
    """
    given = [features, weight, labels, *([] if bias is None else [bias])]
    if not all(isinstance(each, Tensor) for each in given):
        kinds = ", ".join(type(each).__name__ for each in given)
        raise TypeError(f"features, weight, labels and bias must be torch tensors, got {kinds}")
    if not (features.is_floating_point() and weight.is_floating_point()):
        raise ValueError(
            f"features and weight must be of a floating type, got {features.dtype} and "
            f"{weight.dtype}"
        )
    shape, of_weight = tuple(features.shape), tuple(weight.shape)
    if weight.dim() != 2 or not len(weight) or features.dim() < 2 or shape[-1] != of_weight[1]:
        raise ValueError(
            "features must have shape (N, D) or (N, ..., D) and weight (C, D), as torch.nn.Linear "
            f"has them, got {shape} and {of_weight}"
        )
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ValueError(
            f"bias must have one number for each of {len(weight)} classes, got shape "
            f"{tuple(bias.shape)}"
        )
    if labels.is_floating_point() or labels.dtype == torch.bool or labels.shape != shape[:-1]:
        raise ValueError(
            f"labels for features of shape {shape} must be class indices of shape {shape[:-1]}, "
            f"got {labels.dtype} of shape {tuple(labels.shape)}; probabilities of all classes "
            "would be as large as the logits that are not made here"
        )
    rows, index = features.flatten(0, -2), labels.flatten().long()
    kept = labels != ignore_index
    if not kept.all():
        rows, index = rows[kept.flatten()], index[kept.flatten()]
    if len(index) and not (index.min() >= 0 and index.max() < len(weight)):
        check_labels(index.cpu(), len(weight))
    return rows, index, kept


def in_place_of_ignored(losses: Tensor, kept: Tensor) -> Tensor:
    """The losses of the samples that count where they were, and zero for the ignored."""
    return losses.new_zeros(kept.shape).masked_scatter(kept, losses)
