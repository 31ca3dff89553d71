r"""Measuring the prior that logits carry, where no loss declares it.

If z carries c, then z + log h - log c is the exact posterior on held-out data whose labels follow
h. So fit one offset b per class by maximum likelihood on held-out labels (convex),

    min_b  mean_i  -log softmax(z_i + b)[y_i],      and read off      c = h · exp(-b).
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from longtail.core.arrays import Array, ArrayLike, as_tensor
from longtail.core.labels import check_labels
from longtail.core.prior import Prior
from longtail.core.retarget import check_logits


def measure_carried(logits: Array, labels: ArrayLike) -> Prior:
    """The prior that best explains held-out labels.

    Use data the model was not trained on: on its own training data a model looks better, and its
    prior closer to those data's, than it is.

    Args:
        logits: Shape (N, C).
        labels: Class indices; every class must occur.
    """
    given = as_tensor(logits).detach()
    if given.dim() != 2:
        raise ValueError(f"logits must have shape (N, C), got {tuple(given.shape)}")
    check_logits(given, given.shape[1])
    if not given.isfinite().all():
        raise ValueError("logits must be finite to measure what they carry, got NaN or infinity")
    known = check_labels(labels, given.shape[1]).to(given.device)
    if len(known) != len(given):
        raise ValueError(f"got {len(given)} rows of logits but {len(known)} labels")
    counts = torch.bincount(known, minlength=given.shape[1])
    if (counts == 0).any():
        absent = (counts == 0).nonzero().flatten().tolist()
        raise ValueError(
            f"every class must occur in the held-out labels, {len(absent)} of "
            f"{given.shape[1]} do not (the first is {absent[0]}); "
            "what the logits carry for them cannot be measured"
        )
    return Prior.of(counts).reweighted((-_best_offset(given.double(), known)).exp())


def _best_offset(logits: Tensor, labels: Tensor) -> Tensor:
    """One offset per class that maximises the likelihood, with mean zero."""
    offset = torch.zeros(logits.shape[1], dtype=logits.dtype, device=logits.device)
    offset.requires_grad_()
    solver = torch.optim.LBFGS(
        [offset],
        max_iter=1000,
        history_size=20,
        tolerance_grad=1e-10,
        tolerance_change=1e-16,
        line_search_fn="strong_wolfe",
    )

    def objective() -> Tensor:
        solver.zero_grad()
        nll = F.cross_entropy(logits + offset, labels)
        torch.autograd.backward(nll)
        return nll

    with torch.enable_grad():
        solver.step(objective)  # type: ignore[no-untyped-call]
        objective()
    if offset.grad is None or not offset.grad.abs().max() < 1e-6:
        raise RuntimeError(
            "the offsets did not settle: some class is told apart perfectly on these data, so "
            "nothing bounds its offset; use more held-out data"
        )
    centred = offset.detach() - offset.detach().mean()
    return centred.cpu()
