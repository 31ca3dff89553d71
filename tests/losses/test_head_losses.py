"""Losses that take a layer's features and weight keep their contract, and declare what is true."""

import inspect

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail import Prior, losses
from longtail.testing import (
    HEAD_LOSS_CHECKS,
    ContractError,
    FiniteWorld,
    check_head_carried,
    check_head_loss,
    head_loss_checks,
)
from loss_examples import HEAD_CONTRACT, HEAD_MAKE, LinearLayer

WORLD = FiniteWorld.long_tailed()


def every_head_loss():
    """Everything public in longtail.losses that is called with features, weight, bias, labels."""
    wanted = ["features", "weight", "bias", "labels"]
    for name, thing in vars(losses).items():
        call = thing.forward if isinstance(thing, type) and hasattr(thing, "forward") else thing
        if not name.startswith("_") and callable(call):
            parameters = [each for each in inspect.signature(call).parameters if each != "self"]
            if parameters[:4] == wanted:
                yield name


def test_both_are_found():
    assert set(every_head_loss()) == {"linear_cross_entropy", "SampledSoftmax"}


@pytest.mark.parametrize("name", list(every_head_loss()))
def test_a_loss_is_in_the_table(name):
    assert [each for each in HEAD_MAKE if each.split(",")[0] == name]


@pytest.mark.parametrize("name", HEAD_MAKE)
@pytest.mark.parametrize("weight", [None, [1.0, 3.0, 0.5, 7.0]])
def test_it_declares_what_the_table_says_with_class_weights_too(name, weight):
    options = {} if weight is None else {"weight": weight}
    right = HEAD_CONTRACT[name](WORLD.prior)
    right = right if weight is None else right.reweighted(weight)
    assert HEAD_MAKE[name](WORLD.prior, **options).carried.is_close(right, 1e-12)
    if weight is not None:
        check_head_carried(HEAD_MAKE[name], weight=weight)


@pytest.mark.parametrize("check", HEAD_LOSS_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", HEAD_MAKE)
def test_the_contract_holds(name, check):
    check(HEAD_MAKE[name])


@pytest.mark.parametrize("name", HEAD_MAKE)
@settings(max_examples=2, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_the_minimiser_reaches_every_target_in_random_worlds(name, seed):
    check_head_carried(HEAD_MAKE[name], FiniteWorld.drawn(seed))


@pytest.mark.parametrize("tau", [0.0, 1.0])
def test_smoothed_labels_are_declared_with_the_smoothed_prior(tau):
    def make(train, **options):
        return LinearLayer(train, tau, **options)

    check_head_carried(make, label_smoothing=0.2)


class Broken(LinearLayer):
    """A loss that is right but for one thing, which a subclass breaks."""

    def change(self, value, features, weight, bias, labels):
        return value

    def __call__(self, *inputs):
        return self.change(super().__call__(*inputs), *inputs)


def broken(change):
    return type("BrokenSo", (Broken,), {"change": lambda self, *given: change(*given)})


class Uniform(LinearLayer):
    """One that says something else than it does."""

    def __init__(self, train, **options):
        super().__init__(train, **options)
        self.carried = Prior.uniform(train.num_classes)


class TakesAll(LinearLayer):
    """One that ignores what it does not know."""

    def __init__(self, train, reducton=None, **options):
        super().__init__(train, **options)


class RoundsUnderAutocast(LinearLayer):
    """One that a context of half precision changes."""

    def __call__(self, features, weight, bias, labels):
        logits = torch.nn.functional.linear(features, weight, bias)
        features = logits.detach() if logits.dtype == torch.bfloat16 else logits
        layer = torch.eye(len(weight)).to(features.dtype)
        return losses.linear_cross_entropy(features, layer, None, labels, **self.options)


BREAKS = {
    "check_head_carried": Uniform,
    "check_head_gradients": broken(lambda value, f, w, b, y: value + w.detach().square().sum()),
    "check_head_reduction": broken(lambda value, f, w, b, y: value + 1),
    "check_head_ignore_index": broken(lambda value, f, w, b, y: value + (y == -100).sum()),
    "check_head_shapes": broken(lambda value, f, w, b, y: value + f.dim()),
    "check_head_half_precision": RoundsUnderAutocast,
    "check_head_extremes": broken(lambda value, f, w, b, y: value + 0 * (f @ w.T).exp().sum()),
    "check_head_options": TakesAll,
}


@pytest.mark.parametrize("check", HEAD_LOSS_CHECKS, ids=lambda check: check.__name__)
def test_a_check_catches_what_it_is_for(check):
    with pytest.raises(ContractError):
        check(BREAKS[check.__name__])


def test_every_check_is_run():
    named = {name for name in vars(head_loss_checks) if name.startswith("check_head")}
    assert {check.__name__ for check in HEAD_LOSS_CHECKS} == named - {"check_head_loss"}
    with pytest.raises(ContractError):
        check_head_loss(Uniform)
