"""Every loss keeps the public contract, and declares exactly what the methods table says."""

import importlib
import inspect
import pkgutil

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail import Prior, UnknownPriorError, losses, retarget
from longtail.testing import (
    BINARY_CHECKS,
    LOSS_CHECKS,
    ContractError,
    FiniteWorld,
    LabelWorld,
    check_carried,
    check_carried_odds,
)
from loss_examples import BINARY_CONTRACT, BINARY_MAKE, CONTRACT, MAKE

WORLD = FiniteWorld.long_tailed()
ABSTRACT = (losses.Loss, losses.SampleLoss, losses.MarginLoss, losses.RegularizedLoss)
# Experts are of logits (N, C, K): as OneExpert, and test_experts.py; test_deferred.py;
# test_with_terms.py, and in the table under names of its own.
OF_SEVERAL = (losses.Experts, losses.Deferred, losses.LossWithTerms)


def every_loss(kind=losses.Loss):
    """Every concrete loss class defined anywhere below longtail.losses, found by walking it."""
    found = set()
    for module in pkgutil.walk_packages(losses.__path__, "longtail.losses."):
        for name, thing in inspect.getmembers(
            importlib.import_module(module.name), inspect.isclass
        ):
            if name.startswith("_") or inspect.isabstract(thing):
                continue  # what several losses have in common
            if issubclass(thing, kind) and thing not in (kind, *ABSTRACT, *OF_SEVERAL):
                found.add(thing)
    return found


def made_class(name):
    return getattr(MAKE[name], "func", MAKE[name])


@pytest.mark.parametrize("loss", sorted(every_loss(), key=lambda loss: loss.__name__))
def test_a_loss_is_in_the_table_and_its_declaration_in_the_contract_or_none(loss):
    examples = [name for name in MAKE if made_class(name) is loss]
    assert examples, f"{loss.__name__} must have an example in tests/loss_examples.py"
    for name in examples:
        declared = MAKE[name](WORLD.prior).carried
        if name in CONTRACT:
            assert declared is not None
            assert declared.is_close(CONTRACT[name](WORLD.prior), 1e-12)
        else:
            assert declared is None, f"{name} declares a prior that no contract entry confirms"
    assert getattr(losses, loss.__name__) is loss, "a loss must be public"


BINARY_LOSSES = sorted(every_loss(losses.BinaryLoss), key=lambda loss: loss.__name__)


@pytest.mark.parametrize("loss", BINARY_LOSSES)
def test_a_loss_on_labels_is_in_the_table_and_its_declaration_in_the_contract_or_none(loss):
    examples = [n for n, make in BINARY_MAKE.items() if getattr(make, "func", make) is loss]
    assert examples, f"{loss.__name__} must have an example in tests/loss_examples.py"
    odds = LabelWorld.long_tailed().odds
    for name in examples:
        declared = BINARY_MAKE[name](odds).carried
        if name in BINARY_CONTRACT:
            assert declared.is_close(BINARY_CONTRACT[name](odds), 1e-12)
        else:
            assert declared is None, f"{name} declares odds that no contract entry confirms"
    assert getattr(losses, loss.__name__) is loss, "a loss must be public"


@pytest.mark.parametrize("check", BINARY_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", BINARY_MAKE)
def test_the_contract_of_losses_on_labels_holds(name, check):
    check(BINARY_MAKE[name])


@pytest.mark.parametrize("name", BINARY_CONTRACT)
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_the_minimiser_reaches_every_odds_in_random_worlds(name, seed):
    check_carried_odds(BINARY_MAKE[name], LabelWorld.drawn(seed, labels=3))


def test_a_wrong_declaration_of_odds_is_caught():
    class Wrong(losses.BinaryLogitAdjusted):
        @property
        def carried(self):
            return self.batches

    with pytest.raises(ContractError, match="off the true posterior by"):
        check_carried_odds(Wrong)


@pytest.mark.parametrize("check", LOSS_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", MAKE)
def test_the_contract_holds(name, check):
    check(MAKE[name])


@pytest.mark.parametrize("name", CONTRACT)
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_the_minimiser_reaches_every_target_in_random_worlds(name, seed):
    check_carried(MAKE[name], FiniteWorld.drawn(seed))


@pytest.mark.parametrize("name", CONTRACT)
def test_class_weights_change_what_is_carried_and_it_stays_true(name):
    weight = [1.0, 3.0, 0.5, 7.0]

    def weighted(prior, **options):
        return MAKE[name](prior, weight=weight, **options)

    if name.startswith("LADE"):  # its regulariser does not know of weights, and pulls to uniform
        assert weighted(WORLD.prior).carried is None
        return
    expected = CONTRACT[name](WORLD.prior).reweighted(weight)
    assert weighted(WORLD.prior).carried.is_close(expected, 1e-12)
    check_carried(weighted)


def test_a_class_of_weight_zero_leaves_no_prior_to_carry():
    assert losses.CrossEntropy([3, 2, 1], weight=[1, 0, 1]).carried is None


@pytest.mark.parametrize("name", sorted(set(MAKE) - set(CONTRACT)))
def test_a_loss_that_carries_no_prior_refuses_to_be_moved(name):
    with pytest.raises(UnknownPriorError, match="measure_carried"):
        retarget(torch.zeros(2, 4), MAKE[name](WORLD.prior).carried, Prior.uniform(4))


def test_a_wrong_declaration_is_caught():
    class Wrong(losses.CrossEntropy):
        @property
        def carried(self):
            return Prior.uniform(self.num_classes)

    with pytest.raises(ContractError, match="off the true posterior by"):
        check_carried(Wrong)


OF_ONE_FORMULA = [
    name
    for name in CONTRACT
    if isinstance(MAKE[name](WORLD.prior), losses.SampleLoss)  # not those with a term beside it
]


@pytest.mark.parametrize("name", OF_ONE_FORMULA)
@pytest.mark.parametrize("label_smoothing", [0.0, 0.2])
def test_a_loss_is_the_cross_entropy_of_logits_moved_from_what_it_declares(name, label_smoothing):
    options = {"label_smoothing": label_smoothing, "reduction": "none"}
    loss = MAKE[name](WORLD.prior, **options)
    followed = WORLD.prior.smoothed(label_smoothing)
    alpha = torch.ones(4).double() if loss.alpha is None else loss.alpha
    logits = torch.randn(6, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    labels = torch.tensor([0, 1, 2, 3, 0, 1])
    moved = retarget(logits, loss.carried, followed.reweighted(alpha))
    soft = (
        torch.nn.functional.one_hot(labels, 4).double() * (1 - label_smoothing)
        + label_smoothing / 4
    )
    expected = -(alpha * soft * torch.log_softmax(moved, dim=1)).sum(dim=1)
    torch.testing.assert_close(loss(logits, labels), expected, rtol=1e-12, atol=1e-12)


CONSISTENT = ["Balanced", "LogitAdjusted", "WeightedLogitAdjusted", "ConsistentMargin"]


@pytest.mark.parametrize("name", CONSISTENT)
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_the_consistent_losses_decide_as_bayes_for_the_balanced_error(name, seed):
    world = FiniteWorld.drawn(seed)
    logits = world.minimise(MAKE[name](world.prior))
    error = world.balanced_error(logits.argmax(dim=1))
    assert error == pytest.approx(world.balanced_error(world.balanced_decisions()), abs=1e-12)


# 140 samples of the head class and 5 of the tail, 4 of which fall on the second point: there the
# tail is the more likely class once both count alike, 4/5 against 60/140.
COUNTEREXAMPLE = FiniteWorld(torch.tensor([[80, 1], [60, 4]]))


@pytest.mark.parametrize("name", ["CrossEntropy", "Adaptive", "Equalized"])
def test_the_inconsistent_losses_miss_the_bayes_decision_in_a_concrete_world(name):
    logits = COUNTEREXAMPLE.minimise(MAKE[name](COUNTEREXAMPLE.prior))
    assert COUNTEREXAMPLE.balanced_decisions().tolist() == [0, 1]
    assert logits.argmax(dim=1).tolist() == [0, 0]
    missed = COUNTEREXAMPLE.balanced_error(logits.argmax(dim=1))
    best = COUNTEREXAMPLE.balanced_error(COUNTEREXAMPLE.balanced_decisions())
    assert missed - best == pytest.approx((4 / 5 - 60 / 140) / 2)


@pytest.mark.parametrize("name", ["Balanced", "LogitAdjusted", "WeightedLogitAdjusted"])
def test_the_consistent_losses_find_it_in_the_same_world(name):
    logits = COUNTEREXAMPLE.minimise(MAKE[name](COUNTEREXAMPLE.prior))
    assert logits.argmax(dim=1).tolist() == [0, 1]
