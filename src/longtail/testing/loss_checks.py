"""The contract every loss keeps, as checks that anyone can run on a loss of their own.

A check takes a factory, called as `make(prior, **options)`: a loss class, or a partial of one. It
raises ContractError, an AssertionError, with a sentence that says what does not hold.
"""

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from longtail.core.prior import Prior
from longtail.core.retarget import UnknownPriorError, retarget
from longtail.losses import Loss
from longtail.testing.contract import (
    ContractError,
    require,
    require_carried,
    require_same,
)
from longtail.testing.world import FiniteWorld

LossFactory: TypeAlias = Callable[..., Loss]


def check_loss(make: LossFactory) -> None:
    """Run every check of this file.

    >>> import longtail as lt
    >>> check_loss(lt.losses.LogitAdjusted)
    """
    for check in LOSS_CHECKS:
        check(make)


def check_carried(make: LossFactory, world: FiniteWorld | None = None) -> None:
    """The population minimiser, moved from the declared prior to any other, is the posterior.

    A loss that declares None is only asked to refuse to be moved.
    """
    world = world or FiniteWorld.long_tailed()
    loss = make(world.prior).eval()
    if loss.carried is None:
        _check_refusal(loss, world)
        return
    require_carried(world, world.minimise(loss), loss.carried)


def check_reduction(make: LossFactory) -> None:
    """Sum and mean follow from the losses of the samples; a weight divides by its own sum."""
    prior, logits, labels = _batch()
    weight = torch.tensor([0.5, 1.0, 2.0, 4.0], dtype=torch.float64)
    each = make(prior, reduction="none").eval()(logits, labels)
    require(each.shape == labels.shape, "reduction='none' must return one loss a sample")
    require_same(make(prior, reduction="sum").eval()(logits, labels), each.sum(), "the sum")
    require_same(make(prior).eval()(logits, labels), each.mean(), "the mean")
    weighted = make(prior, weight=weight, reduction="none").eval()(logits, labels)
    require_same(weighted, each * weight[labels], "the weighted losses")
    mean = make(prior, weight=weight).eval()(logits, labels)
    require_same(mean, weighted.sum() / weight[labels].sum(), "the weighted mean")


def check_soft_labels(make: LossFactory) -> None:
    """ℓ(q, f) = Σ_y q_y ℓ(y, f): one-hot labels equal indices, and mixtures mix the losses."""
    prior, logits, labels = _batch()
    options = {"weight": [0.5, 1.0, 2.0, 4.0], "reduction": "none"}
    loss = make(prior, **options).eval()
    one_hot = torch.nn.functional.one_hot(labels, prior.num_classes).double()
    require_same(loss(logits, one_hot), loss(logits, labels), "the loss of one-hot labels")
    mixed = 0.3 * one_hot + 0.7 * one_hot.flip(0)
    expected = 0.3 * loss(logits, labels) + 0.7 * loss(logits, labels.flip(0))
    require_same(loss(logits, mixed), expected, "the loss of mixed labels")


def check_ignore_index(make: LossFactory) -> None:
    """Ignored samples change nothing and get no gradient."""
    prior, logits, labels = _batch()
    ignored = labels.clone()
    ignored[::3] = -100
    kept = ignored != -100
    options = {"weight": [0.5, 1.0, 2.0, 4.0]}
    loss = make(prior, **options).eval()
    logits.requires_grad_()
    value = loss(logits, ignored)
    require_same(value, loss(logits[kept], labels[kept]), "the loss with ignored samples")
    (gradient,) = torch.autograd.grad(value, logits)
    require(not gradient[~kept].any(), "ignored samples must get no gradient")


def check_positions(make: LossFactory) -> None:
    """Logits of shape (N, C, d, ...) are the same as N·d rows."""
    prior, logits, labels = _batch()
    loss = make(prior, reduction="none").eval()
    grid = logits.view(3, 2, 2, -1).movedim(-1, 1)
    require_same(
        loss(grid, labels.view(3, 2, 2)).flatten(), loss(logits, labels), "the loss of a grid"
    )
    soft = torch.softmax(logits, dim=1)
    folded = soft.view(3, 2, 2, -1).movedim(-1, 1)
    require_same(
        loss(grid, folded).flatten(), loss(logits, soft), "the loss of a grid, soft labels"
    )


def check_half_precision(make: LossFactory) -> None:
    """float16 and bfloat16 logits give what the same numbers give in float64."""
    prior, logits, labels = _batch()
    loss = make(prior).eval()
    for dtype in (torch.float16, torch.bfloat16):
        half = logits.to(dtype).requires_grad_()
        value = loss(half, labels)
        require_same(
            value.double(), loss(half.detach().double(), labels), f"the {dtype} loss", 1e-5
        )
        (gradient,) = torch.autograd.grad(value, half)
        require(
            gradient.dtype == dtype and bool(gradient.isfinite().all()),
            f"the gradient of {dtype} logits must be finite and of that type",
        )


def check_extremes(make: LossFactory) -> None:
    """Values and gradients stay finite for logits of ±10,000, one sample and one class only."""
    prior, logits, labels = _batch()
    loss = make(prior).eval()
    huge = torch.where(logits > 0, 1e4, -1e4)
    cases = {
        "logits of ±10,000": (huge, labels),
        "float32 logits of ±10,000": (huge.float(), labels),
        "a batch of one": (logits[:1], labels[:1]),
        "samples of one class only": (logits, torch.zeros_like(labels)),
    }
    for name, (given, wanted) in cases.items():
        for target in (wanted, torch.nn.functional.one_hot(wanted, 4).to(given)):
            given = given.detach().requires_grad_()
            value = loss(given, target)
            (gradient,) = torch.autograd.grad(value, given)
            require(
                bool(value.isfinite()) and bool(gradient.isfinite().all()),
                f"value and gradient must be finite for {name}, got {value.item()}",
            )


def check_gradients(make: LossFactory) -> None:
    """First and second derivatives agree with finite differences, in float64."""
    prior, logits, labels = _batch()
    loss = make(prior).eval()
    logits.requires_grad_()
    for wanted in (labels, torch.softmax(logits.detach().flip(0), dim=1)):
        for order, check in (("first", gradcheck), ("second", gradgradcheck)):
            require(
                check(lambda z, y=wanted: loss(z, y), logits, raise_exception=False),
                f"the {order} derivatives must agree with finite differences",
            )


def check_state(make: LossFactory) -> None:
    """A state dict carries the loss, and what it carries, into one made from other counts."""
    prior, logits, labels = _batch()
    loss, other = make(prior).eval(), make(prior.tempered(0.3)).eval()
    other.load_state_dict(loss.state_dict())
    require_same(other(logits, labels), loss(logits, labels), "the loss after load_state_dict")
    restored, carried = other.carried, loss.carried
    require(
        (restored is None and carried is None)
        or (restored is not None and carried is not None and restored.is_close(carried, 1e-12)),
        f"what is carried must be restored too: {carried!r} became {restored!r}",
    )


LOSS_CHECKS = (
    check_carried,
    check_reduction,
    check_soft_labels,
    check_ignore_index,
    check_positions,
    check_half_precision,
    check_extremes,
    check_gradients,
    check_state,
)


def _batch() -> tuple[Prior, Tensor, Tensor]:
    """Twelve samples of four classes, each class present, in float64."""
    generator = torch.Generator().manual_seed(0)
    logits = 2 * torch.randn(12, 4, generator=generator, dtype=torch.float64)
    return Prior.of([70, 20, 8, 2]), logits, torch.arange(12) % 4


def _check_refusal(loss: Loss, world: FiniteWorld) -> None:
    try:
        retarget(torch.zeros(world.table.shape), loss.carried, world.prior)
    except UnknownPriorError:
        return
    raise ContractError("a loss that carries no prior must not be moved to another")
