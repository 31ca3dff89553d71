"""The contract every loss on yes/no labels keeps, as checks to run on a loss of your own.

A check takes a factory, called as `make(odds, **options)`: a loss class, or a partial of one. It
raises ContractError with a sentence that says what does not hold.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from longtail.core.label_odds import LabelOdds
from longtail.core.retarget import UnknownPriorError, retarget
from longtail.losses import BinaryLoss
from longtail.testing.contract import require, require_refusal, require_same
from longtail.testing.label_world import LabelWorld

BinaryFactory: TypeAlias = Callable[..., BinaryLoss]
_TOLERANCE = 1e-6


def check_binary_loss(make: BinaryFactory) -> None:
    """Run every check of this file.

    >>> import longtail as lt
    >>> check_binary_loss(lt.losses.BinaryLogitAdjusted)
    """
    for check in BINARY_CHECKS:
        check(make)


def label_targets(odds: LabelOdds) -> dict[str, LabelOdds]:
    """Four targets to reach: even, train, reversed, and ever rarer labels."""
    rarer = LabelOdds.of([0.3 * 0.1**at for at in range(odds.num_labels)])
    reverse = odds.tempered(-1)
    return {"even": LabelOdds.even(len(odds)), "train": odds, "reversed": reverse, "rare": rarer}


def check_carried_odds(make: BinaryFactory, world: LabelWorld | None = None) -> None:
    """The population minimiser, moved from the declared odds to any other, is the posterior.

    A loss that declares None is only asked to refuse to be moved.
    """
    world = world or LabelWorld.long_tailed()
    loss = make(world.odds).eval()
    if loss.carried is None:
        moved = partial(retarget, torch.zeros(2, world.num_labels), None, world.odds)
        sentence = "a loss that carries no odds must not be moved to others"
        require_refusal(moved, UnknownPriorError, sentence)
        return
    minimiser = world.minimise(loss)
    for name, target in label_targets(world.odds).items():
        posterior = retarget(minimiser, loss.carried, target).sigmoid()
        error = float((posterior - world.posterior(target)).abs().max())
        require(
            error < _TOLERANCE,
            f"it says that its logits carry {loss.carried!r}, but moved from there to the {name} "
            f"odds they are off the true posterior by {error:.2g}",
        )


def check_positive_weights(make: BinaryFactory) -> None:
    """pos_weight multiplies the odds that are carried, and what it declares stays true."""
    weight = [2.0, 7.0, 0.5]
    world = LabelWorld.long_tailed()
    plain, weighted = make(world.odds).carried, make(world.odds, pos_weight=weight).carried
    if plain is None or weighted is None:
        require(plain is weighted, "a loss of no known odds must not know them with pos_weight")
        return
    same = weighted.is_close(plain.reweighted(weight), 1e-12)
    require(same, f"pos_weight must make {plain.reweighted(weight)!r} of it, got {weighted!r}")
    check_carried_odds(partial(make, pos_weight=weight), world)


def check_binary_reduction(make: BinaryFactory) -> None:
    """Sum and mean are those of the losses of all samples and labels."""
    odds, logits, labels = binary_batch()
    each = make(odds, reduction="none")(logits, labels)
    require(each.shape == logits.shape, "reduction='none' must return a loss a sample and label")
    require_same(make(odds, reduction="sum")(logits, labels), each.sum(), "the sum")
    require_same(make(odds)(logits, labels), each.mean(), "the mean")
    heavier = make(odds, reduction="none", pos_weight=[3.0, 3.0, 3.0])(logits, labels)
    if make(odds).carried is None or make(odds).carried == make(odds, pos_weight=1.0).carried:
        require_same(heavier, each * (1 + 2 * labels), "the losses with pos_weight")


def check_soft_yes(make: BinaryFactory) -> None:
    """Of a probability of yes, the loss is the mixture of those of yes and of no."""
    odds, logits, labels = binary_batch()
    loss, share = make(odds, reduction="none"), torch.rand_like(logits)
    require_same(loss(logits, labels.double()), loss(logits, labels), "the loss of 0.0 and 1.0")
    require_same(loss(logits, labels.bool()), loss(logits, labels), "the loss of booleans")
    ones = torch.ones_like(labels)
    mixed = share * loss(logits, ones) + (1 - share) * loss(logits, 0 * ones)
    require_same(loss(logits, share), mixed, "the loss of probabilities")


def check_unknown_labels(make: BinaryFactory) -> None:
    """Labels that are not known change nothing and get no gradient."""
    odds, logits, labels = binary_batch()
    unknown = labels.clone()
    unknown[::3, 1] = -1
    kept = unknown != -1
    logits.requires_grad_()
    value = make(odds, ignore_index=-1)(logits, unknown)
    require_same(value, make(odds, reduction="none")(logits, labels)[kept].mean(), "the mean")
    (gradient,) = torch.autograd.grad(value, logits)
    require(not gradient[~kept].any(), "labels that are not known must get no gradient")


def check_binary_positions(make: BinaryFactory) -> None:
    """Logits of shape (N, L, d) are the same as N·d rows."""
    odds, logits, labels = binary_batch()
    loss = make(odds, reduction="none")
    grid = loss(logits.view(4, 3, -1).movedim(-1, 1), labels.view(4, 3, -1).movedim(-1, 1))
    require_same(grid.movedim(1, -1).reshape(12, -1), loss(logits, labels), "the loss of a grid")


def check_binary_precision(make: BinaryFactory) -> None:
    """Half precision gives what the same numbers give in float64; extremes stay finite."""
    odds, logits, labels = binary_batch()
    loss = make(odds)
    for dtype in (torch.float16, torch.bfloat16):
        half = logits.to(dtype).requires_grad_()
        wide = half.detach().double().requires_grad_()
        value, exact = loss(half, labels), loss(wide, labels)
        require_same(value.double(), exact, f"the {dtype} loss", 1e-5)
        (gradient,), (expected,) = (
            torch.autograd.grad(v, z) for v, z in ((value, half), (exact, wide))
        )
        require(gradient.dtype == dtype, f"the gradient of {dtype} logits must be of that type")
        require_same(gradient.double(), expected, f"the gradient of {dtype} logits", 1e-2)
    for kind in (torch.float64, torch.float32):
        huge = torch.where(logits > 0, 1e4, -1e4).to(kind).requires_grad_()
        value = loss(huge, labels)
        (gradient,) = torch.autograd.grad(value, huge)
        finite = bool(value.isfinite()) and bool(gradient.isfinite().all())
        require(finite, f"value and gradient must be finite at ±10,000, got {value.item()}")


def check_binary_gradients(make: BinaryFactory) -> None:
    """First and second derivatives agree with finite differences, in float64."""
    odds, logits, labels = binary_batch()
    logits.requires_grad_()
    value = partial(make(odds), labels=labels)
    for order, check in (("first", gradcheck), ("second", gradgradcheck)):
        agrees = check(value, logits, raise_exception=False)
        require(agrees, f"the {order} derivatives must agree with finite differences")


def check_binary_options(make: BinaryFactory) -> None:
    """Options that no loss has, labels that do not fit and ignored labels 0 and 1 are refused."""
    odds, logits, labels = binary_batch()
    wrong: dict[str, tuple[Callable[[], Any], type[Exception]]] = {
        "an unknown option": (partial(make, odds, reducton="sum"), TypeError),
        "labels of another shape": (partial(make(odds), logits, labels[:, :1]), ValueError),
        "class indices": (partial(make(odds), logits, labels[:, 0]), ValueError),
        "ignore_index=1": (partial(make, odds, ignore_index=1), ValueError),
        "pos_weight=0": (partial(make, odds, pos_weight=[1.0, 0.0, 1.0]), ValueError),
    }
    for name, (action, error) in wrong.items():
        require_refusal(action, error, f"{name} must raise a {error.__name__}")


def check_binary_state(make: BinaryFactory) -> None:
    """A state dict carries the loss, and what it carries, into one made from other counts."""
    odds, logits, labels = binary_batch()
    loss, other = make(odds), make(LabelOdds.from_counts([5, 50, 30], 90))
    other.load_state_dict(loss.state_dict())
    require_same(other(logits, labels), loss(logits, labels), "the loss after load_state_dict")
    restored, carried = other.carried, loss.carried
    same = restored is carried if restored is None or carried is None else restored == carried
    require(same, f"what is carried must be restored too: {carried!r} became {restored!r}")


BINARY_CHECKS = (
    *(check_carried_odds, check_positive_weights, check_binary_reduction, check_soft_yes),
    *(check_unknown_labels, check_binary_positions, check_binary_precision),
    *(check_binary_gradients, check_binary_options, check_binary_state),
)


def binary_batch() -> tuple[LabelOdds, Tensor, Tensor]:
    """Twelve samples of three labels, in float64."""
    generator = torch.Generator().manual_seed(0)
    logits = 2 * torch.randn(12, 3, generator=generator, dtype=torch.float64)
    labels = (torch.rand(12, 3, generator=generator) < 0.4).long()
    return LabelOdds.from_counts([40, 12, 3], 100), logits, labels
