"""Cross-entropy of a linear layer without its logits is what it is with them, by blocks or not."""

import copy
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from longtail import Prior, UnknownPriorError, losses
from longtail.losses import linear_cross_entropy, linear_kernel

TRAIN = Prior.of([70, 20, 8, 2])
UNIFORM = Prior.uniform(4)
WEIGHT = [0.5, 0.0, 2.0, 4.0]


def problem(samples=9, classes=4, dim=3, dtype=torch.float64):
    generator = torch.Generator().manual_seed(samples + classes)
    shapes = ((samples, dim), (classes, dim), (classes,))
    inputs = [
        torch.randn(shape, generator=generator, dtype=dtype).requires_grad_() for shape in shapes
    ]
    return inputs, torch.randint(0, classes, (samples,), generator=generator)


def value_and_gradients(loss, inputs, upstream=None):
    value = loss(*inputs)
    upstream = torch.ones_like(value) if upstream is None else upstream
    return value, *torch.autograd.grad(value, inputs, upstream)


def by_hand(inputs, labels, log_shift, weight, epsilon):
    """The loss of each sample, by loops over plain numbers."""
    features, layer, bias = (each.detach().numpy() for each in inputs)
    found = []
    for x, y in zip(features, labels.tolist(), strict=True):
        z = [float(x @ layer[c] + bias[c] + log_shift[c]) for c in range(len(layer))]
        log_sum = max(z) + math.log(sum(math.exp(each - max(z)) for each in z))
        value = (1 - epsilon) * weight[y] * (log_sum - z[y])
        for c in range(len(z)):
            value += epsilon / len(z) * weight[c] * (log_sum - z[c])
        found.append(value)
    return found


@pytest.mark.parametrize("epsilon", [0.0, 0.2])
@pytest.mark.parametrize("weight", [[1.0] * 4, WEIGHT])
def test_a_loop_over_samples_and_classes_gives_the_same(epsilon, weight):
    inputs, labels = problem()
    train, carried = np.array([0.7, 0.2, 0.08, 0.02]), np.array([0.4, 0.3, 0.2, 0.1])
    shift = np.log((1 - epsilon) * train + epsilon / 4) - np.log(carried)
    got = linear_cross_entropy(
        *inputs,
        labels,
        train,
        carried,
        class_weight=weight,
        label_smoothing=epsilon,
        reduction="none",
    )
    assert got.tolist() == pytest.approx(by_hand(inputs, labels, shift, weight, epsilon), abs=1e-12)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("epsilon", [0.0, 0.2])
@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_values_and_gradients_are_those_of_the_loss_on_logits(reduction, epsilon, weight):
    inputs, labels = problem()
    labels[::4] = -100
    options = {"reduction": reduction, "label_smoothing": epsilon}
    on_logits = losses.LogitAdjusted(TRAIN, weight=weight, **options)

    def ours(features, layer, bias):
        return linear_cross_entropy(
            features, layer, bias, labels, TRAIN, UNIFORM, class_weight=weight, **options
        )

    upstream = torch.linspace(-1, 2, 9).double() if reduction == "none" else torch.tensor(3.0)
    right = value_and_gradients(
        lambda x, w, b: on_logits(F.linear(x, w, b), labels), inputs, upstream.double()
    )
    assert_close(value_and_gradients(ours, inputs, upstream.double()), right)


@settings(max_examples=25, deadline=None)
@given(
    samples=st.integers(1, 12),
    classes=st.integers(1, 9),
    block=st.integers(1, 40),
    at_once=st.integers(1, 5),
    smooth=st.booleans(),
    reduction=st.sampled_from(["mean", "none"]),
)
def test_the_size_of_the_blocks_does_not_matter(
    samples, classes, block, at_once, smooth, reduction
):
    inputs, labels = problem(samples, classes)
    train = torch.arange(1, classes + 1)

    def loss(*inputs):
        return linear_cross_entropy(
            *inputs,
            labels,
            train,
            torch.ones(classes),
            reduction=reduction,
            label_smoothing=0.1 * smooth,
        )

    whole = value_and_gradients(loss, inputs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(linear_kernel, "_BLOCK", block)
        patch.setattr(linear_kernel, "_SAMPLES", (1, at_once))
        assert_close(value_and_gradients(loss, inputs), whole)


def test_classes_in_another_order_give_the_same():
    inputs, labels = problem()
    order = torch.tensor([2, 0, 3, 1])
    features, layer, bias = inputs
    right = linear_cross_entropy(features, layer, bias, labels, TRAIN, UNIFORM)
    train = TRAIN.probs[order.numpy()]
    renamed = linear_cross_entropy(
        features, layer[order], bias[order], order.argsort()[labels], train, UNIFORM
    )
    assert_close(renamed, right)


def test_a_single_class_costs_nothing_and_learns_nothing():
    inputs, labels = problem(classes=1)
    value, *gradients = value_and_gradients(
        lambda *each: linear_cross_entropy(*each, labels, [1], [1]), inputs
    )
    assert value == 0
    assert not any(each.any() for each in gradients)


def test_a_single_sample_is_a_batch():
    inputs, labels = problem(samples=1)
    right = F.cross_entropy(F.linear(*inputs), labels)
    assert_close(linear_cross_entropy(*inputs, labels, TRAIN, TRAIN), right)


def test_with_all_samples_ignored_the_mean_is_that_of_nothing_and_the_rest_zero():
    inputs, labels = problem()
    labels[:] = 7
    given = (*inputs, labels, TRAIN, TRAIN)
    assert linear_cross_entropy(*given, ignore_index=7).isnan()  # as in torch
    value, *gradients = value_and_gradients(
        lambda *each: linear_cross_entropy(
            *each, labels, TRAIN, TRAIN, ignore_index=7, reduction="sum"
        ),
        inputs,
    )
    assert value == 0
    assert not any(each.any() for each in gradients)
    each = linear_cross_entropy(*given, ignore_index=7, reduction="none")
    assert each.tolist() == [0.0] * 9


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_second_derivatives_and_functional_transforms_are_right(reduction):
    inputs, labels = problem(samples=4)

    def loss(*inputs):
        return linear_cross_entropy(
            *inputs, labels, TRAIN, UNIFORM, reduction=reduction, label_smoothing=0.1
        )

    assert torch.autograd.gradgradcheck(loss, inputs)
    if reduction == "mean":
        detached = [each.detach() for each in inputs]
        transformed = torch.func.grad(loss, argnums=(0, 1, 2))(*detached)
        assert_close(transformed, value_and_gradients(loss, inputs)[1:])


def test_a_gradient_is_the_same_each_time_it_is_asked_for():
    inputs, labels = problem()
    value = linear_cross_entropy(*inputs, labels, TRAIN, UNIFORM)
    first = torch.autograd.grad(value, inputs, retain_graph=True)
    before = copy.deepcopy(first)
    first[1].zero_()  # its owner may do as it likes with it
    assert_close(torch.autograd.grad(value, inputs), before)


class Counted:
    """Counts the passes over the blocks."""

    def __init__(self, monkeypatch):
        self.passes, blocks = 0, linear_kernel._blocks

        def counting(*inputs):
            self.passes += 1
            return blocks(*inputs)

        monkeypatch.setattr(linear_kernel, "_blocks", counting)


@pytest.mark.parametrize("without", ["no_grad", "detached"])
def test_no_work_is_done_for_gradients_that_nobody_asks_for(monkeypatch, without):
    inputs, labels = problem()
    counted = Counted(monkeypatch)
    if without == "detached":
        linear_cross_entropy(*(each.detach() for each in inputs), labels, TRAIN, UNIFORM)
    else:
        with torch.no_grad():
            linear_cross_entropy(*inputs, labels, TRAIN, UNIFORM)
    assert counted.passes == 1


def test_the_gradient_of_a_mean_is_made_with_its_value(monkeypatch):
    inputs, labels = problem()
    counted = Counted(monkeypatch)
    value = linear_cross_entropy(*inputs, labels, TRAIN, UNIFORM)
    assert counted.passes == 2
    value.backward()
    assert counted.passes == 2
    linear_cross_entropy(*inputs, labels, TRAIN, UNIFORM, reduction="none").sum().backward()
    assert counted.passes == 4


@pytest.mark.parametrize("needed", [0, 1, 2])
def test_only_what_needs_a_gradient_gets_one(needed):
    inputs, labels = problem()
    given = [each.detach() for each in inputs]
    given[needed] = inputs[needed]
    value = linear_cross_entropy(*given, labels, TRAIN, UNIFORM)
    right = torch.autograd.grad(
        linear_cross_entropy(*inputs, labels, TRAIN, UNIFORM), inputs[needed]
    )
    assert_close(torch.autograd.grad(value, inputs[needed]), right)


def test_no_tensor_of_all_samples_and_classes_is_made():
    # Twice 2**20 numbers of logits in float32, and half a block to spare for the rest.
    inputs, labels = problem(samples=1024, classes=2048, dim=2, dtype=torch.float32)
    train = torch.ones(2048)
    largest = 0

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            nonlocal largest
            made = func(*args, **(kwargs or {}))
            for each in made if isinstance(made, tuple | list) else [made]:
                if isinstance(each, torch.Tensor):
                    largest = max(largest, each.untyped_storage().nbytes() // each.element_size())
            return made

    with Watch():
        linear_cross_entropy(*inputs, labels, train, train).backward()
    assert largest == linear_kernel._BLOCK < 1024 * 2048


def test_a_sure_and_right_sample_has_a_loss_without_rounding():
    features, layer = torch.tensor([[1e4]]), torch.tensor([[1.0], [0.999]])
    value = linear_cross_entropy(features, layer, None, torch.tensor([0]), [1, 1], [1, 1])
    assert value.item() == pytest.approx(math.log1p(math.exp(-10.0)), rel=1e-2)


def test_classes_that_a_bias_rules_out_get_nothing():
    (features, layer, _), labels = problem()
    bias = torch.tensor([0.0, 0.0, 0.0, -torch.inf]).double().requires_grad_()
    labels = labels % 3
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(linear_kernel, "_BLOCK", 1)  # a block of this class alone
        value, *gradients = value_and_gradients(
            lambda *each: linear_cross_entropy(*each, labels, TRAIN, TRAIN),
            (features, layer, bias),
        )
    assert_close(value, F.cross_entropy(F.linear(features, layer[:3], bias[:3]), labels))
    assert all(each.isfinite().all() for each in gradients)
    assert not gradients[1][3].any()


def test_a_compiled_loss_is_the_same():
    inputs, labels = problem()
    loss = torch.compile(
        lambda *each: linear_cross_entropy(*each, labels, TRAIN, UNIFORM) * 2, backend="eager"
    )
    right = 2 * linear_cross_entropy(*inputs, labels, TRAIN, UNIFORM)
    assert_close(loss(*inputs), right)


def test_an_unknown_prior_is_refused():
    inputs, labels = problem()
    with pytest.raises(UnknownPriorError, match="measure_carried"):
        linear_cross_entropy(*inputs, labels, TRAIN, None)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"train": [1, 1]}, ValueError, "weight has 4 classes but the train prior has 2"),
        ({"carried": [1, 1]}, ValueError, "4 classes|2"),
        ({"train": [1, 1, 1, 0]}, ValueError, "classes 3 have none"),
        ({"features": torch.zeros(9, 2)}, ValueError, r"weight \(C, D\)"),
        ({"features": torch.zeros(9, 3).long()}, ValueError, "floating type"),
        ({"features": [[1.0]]}, TypeError, "must be torch tensors"),
        ({"bias": torch.zeros(3)}, ValueError, "bias must have one number for each of 4 classes"),
        ({"labels": torch.full((9,), 4)}, ValueError, "labels must lie in 0 to 3"),
        ({"labels": torch.full((9,), -1)}, ValueError, "labels must lie in 0 to 3"),
        ({"labels": torch.zeros(9, 4)}, ValueError, "must be class indices"),
        ({"class_weight": [1, 1, 1, -1]}, ValueError, "class_weight must be finite"),
        ({"reduction": "average"}, ValueError, 'reduction must be "mean", "sum" or "none"'),
        ({"label_smoothing": 1.0}, ValueError, "label_smoothing must be"),
    ],
)
def test_what_does_not_fit_is_said(change, error, message):
    (features, layer, bias), labels = problem(dtype=torch.float32)
    given = {"features": features, "weight": layer, "bias": bias, "labels": labels}
    given |= {"train": TRAIN, "carried": UNIFORM} | change
    with pytest.raises(error, match=message):
        linear_cross_entropy(**given)
