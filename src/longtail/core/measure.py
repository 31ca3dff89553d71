r"""Measuring the prior that logits carry, where no loss declares it.

If z carries c, then z + log h - log c is the exact posterior on held-out data whose labels follow
h. So fit one offset b per class by maximum likelihood on held-out labels (convex),

    min_b  mean_i  -log softmax(z_i + b)[y_i],      and read off      c = h · exp(-b).

How well the data determine b_k is their information on it, Σ_i p_ik (1 - p_ik) with p_i the fitted
probabilities: no standard error is below its inverse root. Where a class is told apart perfectly
nothing bounds b_k, and the fit only says where it stopped.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from longtail.core.arrays import Array, ArrayLike, as_tensor
from longtail.core.labels import check_labels
from longtail.core.minimise import UnsettledError, for_autograd, minimise
from longtail.core.prior import Prior
from longtail.core.probabilities import check_not_probs
from longtail.core.retarget import check_logits

_MAX_ITER = 1000
_LEAST_INFORMATION = 1e-2  # below it the standard error of a log-probability is above ten


def measure_carried(
    logits: Array, labels: ArrayLike, classes: Sequence[str] | None = None
) -> Prior:
    """The prior that best explains held-out labels.

    Use data the model was not trained on: on its own training data a model looks better, and its
    prior closer to those data's, than it is.

    Args:
        logits: Shape (N, C).
        labels: Class indices; every class must occur, and none be told apart perfectly.
        classes: What the classes are called, so that an error can name them.
    """
    given = as_tensor(logits).detach()
    if given.dim() != 2:
        raise ValueError(f"logits must have shape (N, C), got {tuple(given.shape)}")
    check_logits(given, given.shape[1])
    if not given.isfinite().all():
        raise ValueError("logits must be finite to measure what they carry, got NaN or infinity")
    check_not_probs(given)
    known = check_labels(labels, given.shape[1]).to(given.device)
    if len(known) != len(given):
        raise ValueError(f"got {len(given)} rows of logits but {len(known)} labels")
    counts = torch.bincount(known, minlength=given.shape[1])
    if (counts == 0).any():
        absent = (counts == 0).nonzero().flatten().tolist()
        raise ValueError(
            f"every class must occur in the held-out labels, {len(absent)} of "
            f"{given.shape[1]} do not (the first is {class_named(absent[0], classes)}); "
            "what the logits carry for them cannot be measured"
        )
    offset = _best_offset(given.double(), known, classes)
    return Prior.from_log(Prior.of(counts).log - offset)


def class_named(index: int, classes: Sequence[str] | None) -> str:
    """A class in an error: by its name where there is one, and as "class 9" where it has none."""
    return f"class {index}" if classes is None else f"{classes[index]!r}"


def _best_offset(logits: Tensor, labels: Tensor, classes: Sequence[str] | None) -> Tensor:
    """One offset per class that maximises the likelihood, with mean zero."""
    logits, labels = for_autograd(logits), for_autograd(labels)
    with torch.inference_mode(False):
        offset = torch.zeros(logits.shape[1], dtype=logits.dtype, device=logits.device)
    offset.requires_grad_()
    gradient = minimise(
        lambda: F.cross_entropy(logits + offset, labels),
        [offset],
        max_iter=_MAX_ITER,
        tolerance=1e-10,
    )
    if not gradient < 1e-6:
        raise UnsettledError(
            f"the offsets did not settle in {_MAX_ITER} iterations: the likelihood still rises by "
            f"{gradient:.2g} for each unit of one; use more held-out data, or logits on a smaller "
            "scale"
        )
    best = offset.detach()
    _check_information(torch.softmax(logits + best, dim=1), classes)
    return (best - best.mean()).cpu()


def _check_information(probs: Tensor, classes: Sequence[str] | None) -> None:
    information = (probs * (1 - probs)).sum(dim=0)
    if (information < _LEAST_INFORMATION).any():
        least = int(information.argmin())
        raise ValueError(
            f"these data do not determine the prior: {class_named(least, classes)} is told apart "
            "perfectly from all others, whatever the logits carry for it; use more, or harder, "
            "held-out data"
        )
