"""The contract every loss keeps, as checks that anyone can run on a loss of their own.

A check takes a factory, called as `make(prior, **options)`: a loss class, or a partial of one. It
raises ContractError, an AssertionError, with a sentence that says what does not hold. A loss that
needs features gets some of three dimensions.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from longtail.core.prior import Prior
from longtail.core.retarget import UnknownPriorError, retarget
from longtail.losses import Loss
from longtail.testing.contract import require, require_carried, require_refusal, require_same
from longtail.testing.world import FiniteWorld

LossFactory: TypeAlias = Callable[..., Loss]


def check_loss(make: LossFactory) -> None:
    """Run every check of this file.

    >>> import longtail as lt
    >>> check_loss(lt.losses.LogitAdjusted)
    """
    for check in LOSS_CHECKS:
        check(make)


def check_carried(
    make: LossFactory, world: FiniteWorld | None = None, label_smoothing: float = 0.0
) -> None:
    """The population minimiser, moved from the declared prior to any other, is the posterior.

    A loss that declares None is only asked to refuse to be moved. Features are held fixed: a
    declaration is about the logits. With label smoothing it is about the smoothed labels.
    """
    world = world or FiniteWorld.long_tailed()
    options = {"label_smoothing": label_smoothing} if label_smoothing else {}
    loss = make(world.prior, **options).eval()
    if loss.carried is None:
        moved = partial(retarget, torch.zeros(world.table.shape), None, world.prior)
        sentence = "a loss that carries no prior must not be moved to another"
        require_refusal(moved, UnknownPriorError, sentence)
        return
    features = sample_features(int(world.table.sum()))
    minimiser = world.minimise(lambda logits, labels: loss_value(loss, logits, labels, features))
    require_carried(world, minimiser, loss.carried, label_smoothing)


def check_reduction(make: LossFactory) -> None:
    """Sum and mean follow from the losses of the samples; a weight divides by its own sum.

    Each is w·ℓ + r, where r is a term that weights do not touch, zero for most losses.
    """
    prior, logits, labels, features = sample_batch()
    weight = torch.tensor([0.5, 1.0, 2.0, 4.0], dtype=torch.float64)

    def value(**options: Any) -> Tensor:
        return loss_value(make(prior, **options).eval(), logits, labels, features)

    each = value(reduction="none")
    require(each.shape == labels.shape, "reduction='none' must return one loss a sample")
    require_same(value(reduction="sum"), each.sum(), "the sum")
    require_same(value(), each.mean(), "the mean")
    plain = value(reduction="none", weight=[2.0] * 4) - each
    rest = each - plain
    weighted = value(reduction="none", weight=weight)
    require_same(weighted, plain * weight[labels] + rest, "the weighted losses")
    mean = (plain * weight[labels]).sum() / weight[labels].sum() + rest.mean()
    require_same(value(weight=weight), mean, "the weighted mean")


def check_soft_labels(make: LossFactory) -> None:
    """ℓ(q, f) = Σ_y q_y ℓ(y, f): one-hot labels equal indices, and mixtures mix the losses.

    A loss that does not take soft labels must refuse them.
    """
    prior, logits, labels, features = sample_batch()
    loss = make(prior, weight=[0.5, 1.0, 2.0, 4.0], reduction="none").eval()
    one_hot = F.one_hot(labels, prior.num_classes).double()
    if not loss.takes_soft_labels:
        refused = partial(loss_value, loss, logits, one_hot, features)
        sentence = "a loss that does not take soft labels must refuse them"
        require_refusal(refused, ValueError, sentence)
        return
    hard = loss(logits, labels)
    require_same(loss(logits, one_hot), hard, "the loss of one-hot labels")
    mixed = 0.3 * one_hot + 0.7 * one_hot.flip(0)
    expected = 0.3 * hard + 0.7 * loss(logits, labels.flip(0))
    require_same(loss(logits, mixed), expected, "the loss of mixed labels")


def check_label_smoothing(make: LossFactory) -> None:
    """Labels and prior are smoothed together, and what is carried is true of the smoothed labels.

    The loss of a label is that of the same loss made for the smoothed prior, on labels smoothed by
    hand. A loss that takes no soft labels may refuse smoothing, or smooth its logit term alone; all
    of them refuse an ε outside [0, 1).
    """
    prior, logits, labels, _ = sample_batch()
    epsilon = 0.2
    for wrong in (-0.1, 1.0, float("nan")):
        refused = partial(make, prior, label_smoothing=wrong)
        require_refusal(refused, ValueError, f"label_smoothing={wrong} must raise a ValueError")
    try:
        loss = make(prior, label_smoothing=epsilon, reduction="none").eval()
    except ValueError:
        if make(prior).takes_soft_labels:
            raise
        return
    require(loss.batches == prior, "label smoothing must not change which batches a loss is for")
    for world in (FiniteWorld.long_tailed(), FiniteWorld.drawn(3)):
        check_carried(make, world, epsilon)
    if not loss.takes_soft_labels:
        return
    # Smoothed by a fifth these counts are whole numbers again, which some losses need.
    loss = make(Prior.of([70, 20, 5, 5]), label_smoothing=epsilon, reduction="none").eval()
    by_hand = make(Prior.of([61, 21, 9, 9]), reduction="none").eval()
    one_hot = F.one_hot(labels, prior.num_classes).double()
    smoothed = (1 - epsilon) * one_hot + epsilon / prior.num_classes
    for wanted in (labels, one_hot):
        value, expected = loss(logits, wanted), by_hand(logits, smoothed)
        require_same(value, expected, "the loss with label_smoothing")


def check_class_dim(make: LossFactory) -> None:
    """class_dim says where the classes are: the last axis, or axis 1, which is the default."""
    prior, logits, labels, features = sample_batch()
    for shape, name in (((3, 4), "T = C"), ((2, 6), "T unlike C")):
        grid, marks = logits.view(*shape, 4), labels.view(shape)
        rows = features.view(*shape, -1)
        last, second = (make(prior, reduction="none", class_dim=d).eval() for d in (-1, 1))
        flat = loss_value(make(prior, reduction="none").eval(), logits, labels, features)
        got = loss_value(last, grid, marks, rows)
        require_same(got, flat.view(shape), f"the loss with class_dim=-1, {name}")
        got = loss_value(second, grid.movedim(-1, 1), marks, rows.movedim(-1, 1))
        require_same(got, flat.view(shape), f"the loss with class_dim=1, {name}")
        if last.takes_soft_labels:
            soft = torch.softmax(grid, dim=-1)
            got, expected = last(grid, soft), second(grid.movedim(-1, 1), soft.movedim(-1, 1))
            require_same(got, expected, f"the loss of soft labels with class_dim=-1, {name}")


def check_ignore_index(make: LossFactory) -> None:
    """Ignored samples change nothing and get no gradient."""
    prior, logits, labels, features = sample_batch()
    ignored = labels.clone()
    ignored[::3] = -100
    kept = ignored != -100
    loss = make(prior, weight=[0.5, 1.0, 2.0, 4.0]).eval()
    logits.requires_grad_()
    value = loss_value(loss, logits, ignored, features)
    without = loss_value(loss, logits[kept], labels[kept], features[kept])
    require_same(value, without, "the loss with ignored samples")
    (gradient,) = torch.autograd.grad(value, logits)
    require(not gradient[~kept].any(), "ignored samples must get no gradient")


def check_positions(make: LossFactory) -> None:
    """Logits of shape (N, C, d, ...) are the same as N·d rows."""
    prior, logits, labels, features = sample_batch()
    loss = make(prior, reduction="none").eval()
    logits.requires_grad_()
    flat = loss_value(loss, logits, labels, features)
    grid = loss_value(loss, _as_grid(logits), labels.view(3, 2, 2), _as_grid(features))
    require_same(grid.flatten(), flat, "the loss of a grid")
    (expected,), (got,) = (torch.autograd.grad(value.mean(), logits) for value in (flat, grid))
    require_same(got, expected, "the gradient of a grid")
    if loss.takes_soft_labels:
        soft = torch.softmax(logits.detach(), dim=1)
        grid = loss(_as_grid(logits), _as_grid(soft))
        require_same(grid.flatten(), loss(logits, soft), "the loss of a grid, soft labels")


def check_half_precision(make: LossFactory) -> None:
    """float16 and bfloat16 logits give what the same numbers give in float64."""
    prior, logits, labels, features = sample_batch()
    loss = make(prior).eval()
    one_hot = F.one_hot(labels, prior.num_classes).double()
    for dtype in (torch.float16, torch.bfloat16):
        half, rows = logits.to(dtype).requires_grad_(), features.to(dtype)
        wide = half.detach().double().requires_grad_()
        for wanted in _label_kinds(loss, labels, one_hot):
            value = loss_value(loss, half, wanted, rows)
            exact = loss_value(loss, wide, wanted, rows.double())
            require_same(value.double(), exact, f"the {dtype} loss", 1e-5)
            (gradient,) = torch.autograd.grad(value, half)
            (expected,) = torch.autograd.grad(exact, wide)
            require(gradient.dtype == dtype, f"the gradient of {dtype} logits must be of that type")
            require_same(gradient.double(), expected, f"the gradient of {dtype} logits", 1e-2)


def check_extremes(make: LossFactory) -> None:
    """Values and gradients stay finite for logits of ±10,000, one sample and one class only."""
    prior, logits, labels, features = sample_batch()
    loss = make(prior).eval()
    huge = torch.where(logits > 0, 1e4, -1e4)
    cases = {
        "logits of ±10,000": (huge, labels, features),
        "float32 logits of ±10,000": (huge.float(), labels, features),
        "features of norm 1,000": (logits, labels, 1e3 * features),
        "a batch of one": (logits[:1], labels[:1], features[:1]),
        "samples of one class only": (logits, torch.zeros_like(labels), features),
    }
    for name, (scores, indices, rows) in cases.items():
        one_hot = F.one_hot(indices, 4).to(scores)
        for wanted in _label_kinds(loss, indices, one_hot):
            scores = scores.detach().requires_grad_()
            value = loss_value(loss, scores, wanted, rows)
            (gradient,) = torch.autograd.grad(value, scores)
            finite = bool(value.isfinite()) and bool(gradient.isfinite().all())
            require(finite, f"value and gradient must be finite for {name}, got {value.item()}")


def check_gradients(make: LossFactory) -> None:
    """First and second derivatives agree with finite differences, in float64."""
    prior, logits, labels, features = sample_batch()
    loss = make(prior).eval()
    logits.requires_grad_()
    soft = torch.softmax(logits.detach().flip(0), dim=1)
    for wanted in _label_kinds(loss, labels, soft):
        value = partial(loss_value, loss, labels=wanted, features=features)
        for order, check in (("first", gradcheck), ("second", gradgradcheck)):
            agrees = check(value, logits, raise_exception=False)
            require(agrees, f"the {order} derivatives must agree with finite differences")


def check_options(make: LossFactory) -> None:
    """An option that no loss has is refused, not ignored."""
    wrong = partial(make, Prior.of([70, 20, 8, 2]), reducton="sum")
    require_refusal(wrong, TypeError, "an unknown option must raise a TypeError")


def check_state(make: LossFactory) -> None:
    """A state dict carries the loss, and what it carries, into one made from other counts."""
    prior, logits, labels, features = sample_batch()
    loss, other = make(prior).eval(), make(Prior.of([4, 3, 2, 1])).eval()
    other.load_state_dict(loss.state_dict())
    got, expected = (loss_value(each, logits, labels, features) for each in (other, loss))
    require_same(got, expected, "the loss after load_state_dict")
    restored, carried = other.carried, loss.carried
    if restored is None or carried is None:
        same = restored is carried
    else:
        same = restored.is_close(carried, 1e-12)
    require(same, f"what is carried must be restored too: {carried!r} became {restored!r}")


LOSS_CHECKS = (
    *(check_carried, check_reduction, check_soft_labels, check_label_smoothing, check_class_dim),
    *(check_ignore_index, check_positions, check_half_precision, check_extremes, check_gradients),
    *(check_options, check_state),
)


def loss_value(loss: Loss, logits: Tensor, labels: Tensor, features: Tensor) -> Tensor:
    """The loss, with the features if it asks for them."""
    return loss(logits, labels, features=features if loss.needs_features else None)


def sample_batch() -> tuple[Prior, Tensor, Tensor, Tensor]:
    """Twelve samples of four classes, each class present, in float64, with features."""
    generator = torch.Generator().manual_seed(0)
    logits = 2 * torch.randn(12, 4, generator=generator, dtype=torch.float64)
    return Prior.of([70, 20, 8, 2]), logits, torch.arange(12) % 4, sample_features(12)


def sample_features(samples: int) -> Tensor:
    """Features of three dimensions and norm one."""
    generator = torch.Generator().manual_seed(1)
    return F.normalize(torch.randn(samples, 3, generator=generator, dtype=torch.float64), dim=1)


def _as_grid(rows: Tensor) -> Tensor:
    """Twelve rows as three samples with two by two positions, shape (3, D, 2, 2)."""
    return rows.view(3, 2, 2, -1).movedim(-1, 1)


def _label_kinds(loss: Loss, labels: Tensor, soft: Tensor) -> tuple[Tensor, ...]:
    return (labels, soft) if loss.takes_soft_labels else (labels,)
