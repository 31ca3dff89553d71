"""The contract of losses that take a linear layer's features and weight in place of logits.

A check takes a factory, called as `make(prior, **options)` with the options `weight` (of classes),
`ignore_index` and `reduction`. What it makes is called as loss(features, weight, bias, labels) and
declares what the layer's logits then carry as `carried`. A loss that draws classes is taken as the
mean over every possible draw, each as often as it comes.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial
from itertools import combinations_with_replacement, product
from typing import Any, Protocol, TypeAlias

import torch
from torch import Tensor
from torch.autograd import gradcheck

from longtail.core.prior import Prior
from longtail.core.tensors import as_tensor
from longtail.losses import SampledSoftmax
from longtail.testing.contract import require, require_carried, require_refusal, require_same
from longtail.testing.world import FiniteWorld


class HeadLoss(Protocol):
    """A loss of a linear layer's features and weight, as its contract sees it."""

    @property
    def carried(self) -> Prior | None:
        """The prior that the layer's logits carry."""

    def __call__(
        self, features: Tensor, weight: Tensor, bias: Tensor | None, labels: Tensor
    ) -> Tensor:
        """The reduced loss."""


HeadLossFactory: TypeAlias = Callable[..., HeadLoss]


def check_head_loss(make: HeadLossFactory) -> None:
    """Run every check of this file.

    >>> from functools import partial
    >>> import longtail as lt
    >>> check_head_loss(partial(lt.losses.SampledSoftmax, proposal=[1, 2, 3, 4], num_negatives=2))
    """
    for check in HEAD_LOSS_CHECKS:
        check(make)


def check_head_carried(
    make: HeadLossFactory, world: FiniteWorld | None = None, **options: Any
) -> None:
    """The minimiser of the expected loss, moved from the declared prior, is the posterior."""
    world = world or FiniteWorld.long_tailed()
    loss = make(world.prior, **options)
    # Features that are the logits themselves, of a layer that hands them through.
    layer = torch.eye(world.num_classes, dtype=torch.float64)
    minimiser = world.minimise(lambda logits, labels: expected(loss, logits, layer, labels))
    require(loss.carried is not None, "a loss of a linear layer must say what its logits carry")
    smoothing = options.get("label_smoothing", 0.0)
    require_carried(world, minimiser, loss.carried or world.prior, smoothing)


def expected(loss: HeadLoss, features: Tensor, weight: Tensor, labels: Tensor) -> Tensor:
    """The loss without a bias, or its mean over all that it may draw."""
    if not isinstance(loss, SampledSoftmax):
        return loss(features, weight, None, labels)
    drawn = (p * loss(features, weight, None, labels, n) for p, n in every_draw(loss))
    return torch.stack(list(drawn)).sum(dim=0)


def every_draw(loss: SampledSoftmax) -> Iterator[tuple[float, Tensor]]:
    """The probability and the classes of all draws; two in-batch negatives of the prior."""
    draws, classes = loss.draws, torch.arange(loss.num_classes)
    if draws is not None and draws.distinct:
        inclusion = draws.log_expected.exp()
        for chosen in product((False, True), repeat=loss.num_classes):
            is_in = torch.tensor(chosen)
            probability = float(torch.where(is_in, inclusion, 1 - inclusion).prod())
            if probability:
                yield probability, classes[is_in]
        return
    probs = as_tensor((loss.batches if draws is None else draws.prior).probs)
    number = 2 if draws is None else draws.number
    # In one order for all: the loss does not look at it.
    for several in combinations_with_replacement(range(loss.num_classes), number):
        times = Counter(several).values()
        orders = math.factorial(number) // math.prod(math.factorial(each) for each in times)
        negatives = torch.tensor(several)
        yield orders * float(probs[negatives].prod()), negatives


def check_head_gradients(make: HeadLossFactory) -> None:
    """The derivatives for features, weight and bias agree with finite differences, in float64."""
    prior, inputs, labels = head_batch()
    for options in ({}, {"reduction": "none"}, {"weight": [0.5, 1.0, 2.0, 4.0]}):
        loss = make(prior, **options)

        def value(*inputs: Tensor, loss: HeadLoss = loss) -> Tensor:
            return same_draw(loss, *inputs, labels)

        agrees = gradcheck(value, inputs, raise_exception=False)
        require(agrees, f"the derivatives must agree with finite differences, {options or 'mean'}")


def check_head_reduction(make: HeadLossFactory) -> None:
    """Sum and mean follow from the losses of the samples; a weight divides by its own sum."""
    prior, inputs, labels = head_batch()
    weight = torch.tensor([0.5, 1.0, 2.0, 4.0], dtype=torch.float64)

    def value(**options: Any) -> Tensor:
        return same_draw(make(prior, **options), *inputs, labels)

    each = value(reduction="none")
    require(each.shape == labels.shape, "reduction='none' must return one loss a sample")
    require_same(value(reduction="sum"), each.sum(), "the sum")
    require_same(value(), each.mean(), "the mean")
    weighted = each * weight[labels]
    require_same(value(reduction="none", weight=weight), weighted, "the weighted losses")
    mean = weighted.sum() / weight[labels].sum()
    require_same(value(weight=weight), mean, "the weighted mean")


def check_head_ignore_index(make: HeadLossFactory) -> None:
    """Ignored samples change nothing and get no gradient, whatever their features are."""
    prior, (features, weight, bias), labels = head_batch()
    ignored = labels.clone()
    ignored[::3] = -100
    kept, loss = ignored != -100, make(prior, weight=[0.5, 1.0, 2.0, 4.0])
    wrong = features.detach().masked_fill(~kept.unsqueeze(1), torch.nan).requires_grad_()
    value = same_draw(loss, wrong, weight, bias, ignored)
    without = same_draw(loss, features[kept], weight, bias, labels[kept])
    require_same(value, without, "the loss with ignored samples")
    (gradient,) = torch.autograd.grad(value, wrong)
    require(not gradient[~kept].any(), "ignored samples must get no gradient")
    each = same_draw(make(prior, reduction="none"), wrong, weight, bias, ignored)
    require(not each[~kept].any(), "the loss of ignored samples must be zero")


def check_head_shapes(make: HeadLossFactory) -> None:
    """Features of shape (N, d, D) are N·d rows; a layer may have no bias."""
    prior, (features, weight, bias), labels = head_batch()
    loss = make(prior, reduction="none")
    flat = same_draw(loss, features, weight, bias, labels)
    grid = same_draw(loss, features.view(3, 4, -1), weight, bias, labels.view(3, 4))
    require_same(grid, flat.view(3, 4), "the loss of a grid")
    none = same_draw(loss, features, weight, None, labels)
    require_same(none, same_draw(loss, features, weight, 0 * bias, labels), "that without a bias")


def check_head_half_precision(make: HeadLossFactory) -> None:
    """Halves are computed as in float64, and autocast changes nothing."""
    prior, inputs, labels = head_batch()
    loss = make(prior)
    for dtype in (torch.float16, torch.bfloat16):
        half = [each.detach().to(dtype).requires_grad_() for each in inputs]
        wide = [each.detach().double().requires_grad_() for each in half]
        value, exact = (same_draw(loss, *each, labels) for each in (half, wide))
        require_same(value.double(), exact, f"the {dtype} loss", 1e-5)
        gradients, rights = torch.autograd.grad(value, half), torch.autograd.grad(exact, wide)
        for gradient, right in zip(gradients, rights, strict=True):
            require(gradient.dtype == dtype, f"the gradient of {dtype} must be of that type")
            require_same(gradient.double(), right, f"the gradient of {dtype}", 1e-2)
    single = [each.detach().float() for each in inputs]
    with torch.autocast("cpu", torch.bfloat16):
        value = same_draw(loss, *single, labels)
    require_same(value, same_draw(loss, *single, labels), "the loss under autocast", 1e-6)


def check_head_extremes(make: HeadLossFactory) -> None:
    """Values and gradients stay finite for huge logits, one sample and one class only."""
    prior, (features, weight, bias), labels = head_batch()
    cases = {
        "logits of ±10,000": (1e4 * features.sign(), torch.eye(4, 3).to(weight), labels),
        "a batch of one": (features[:1], weight, labels[:1]),
        "samples of one class only": (features, weight, torch.zeros_like(labels)),
    }
    for name, (rows, layer, indices) in cases.items():
        rows = rows.detach().requires_grad_()
        value = same_draw(make(prior), rows, layer.detach(), bias, indices)
        (gradient,) = torch.autograd.grad(value, rows)
        finite = bool(value.isfinite()) and bool(gradient.isfinite().all())
        require(finite, f"value and gradient must be finite for {name}, got {value.item()}")


def check_head_options(make: HeadLossFactory) -> None:
    """An option that the loss does not have is refused, and so is a label that is no class."""
    prior, inputs, labels = head_batch()

    def value(labels: Tensor, **options: Any) -> Tensor:
        return make(prior, **options)(*inputs, labels)

    sentence = "an unknown option must raise a TypeError"
    require_refusal(lambda: value(labels, reducton="sum"), TypeError, sentence)
    for wrong in (labels + 1, labels - 1, labels.double(), labels[:-1]):
        sentence = f"labels {wrong.tolist()} of four classes must raise a ValueError"
        require_refusal(partial(value, wrong), ValueError, sentence)


HEAD_LOSS_CHECKS = (
    *(check_head_carried, check_head_gradients, check_head_reduction, check_head_ignore_index),
    *(check_head_shapes, check_head_half_precision, check_head_extremes, check_head_options),
)


def same_draw(loss: HeadLoss, *inputs: Any) -> Tensor:
    """The loss as a loss made alike gives it at first: of the draw that its seed begins with."""
    return deepcopy(loss)(*inputs)


def head_batch() -> tuple[Prior, tuple[Tensor, Tensor, Tensor], Tensor]:
    """Twelve samples of four classes with features of three dimensions, and a layer, in float64."""
    generator = torch.Generator().manual_seed(0)
    shapes = ((12, 3), (4, 3), (4,))
    features, weight, bias = (
        torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()
        for shape in shapes
    )
    return Prior.of([70, 20, 8, 2]), (features, weight, bias), torch.arange(12) % 4
