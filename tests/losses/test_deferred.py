"""Schedules: when they switch, what is then carried, what a checkpoint keeps."""

import copy
from functools import partial

import pytest
import torch
from torch._dynamo.testing import CompileCounterWithBackend
from torch.testing import assert_close
from torch.utils.data import WeightedRandomSampler

from longtail import Prior, UnknownPriorError, retarget
from longtail.losses import (
    LDAM,
    ClassBalanced,
    CrossEntropy,
    Deferred,
    Focal,
    LogitAdjusted,
    SigmoidFocal,
    class_balanced_weights,
    deferred_resampling,
    deferred_reweighting,
)
from longtail.testing import FiniteWorld
from longtail.testing.contract import require_carried

COUNTS = [70, 20, 8, 2]
PRIOR = Prior.of(COUNTS)
BALANCED = torch.as_tensor(class_balanced_weights(COUNTS))
LOGITS = torch.randn(12, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
LABELS = torch.arange(12) % 4
MAKE = {
    "CrossEntropy": CrossEntropy,
    "LogitAdjusted": partial(LogitAdjusted, tau=0.5),
    "Focal": Focal,
    "SigmoidFocal": SigmoidFocal,
    "LDAM": LDAM,
    "LDAM, in the head": partial(LDAM, scale_in="head"),
}


@pytest.mark.parametrize("name", MAKE)
def test_weights_come_with_the_start_epoch_and_stay(name):
    loss = deferred_reweighting(MAKE[name], COUNTS, start=3)
    plain = MAKE[name](PRIOR)(LOGITS, LABELS)
    weighted = MAKE[name](PRIOR, weight=BALANCED)(LOGITS, LABELS)
    assert not torch.allclose(plain, weighted)
    assert_close(loss(LOGITS, LABELS), plain)  # no epoch said yet: the first
    for epoch in range(500):
        loss.set_epoch(epoch)
        assert_close(loss(LOGITS, LABELS), plain if epoch < 3 else weighted)


def test_an_epoch_can_be_said_again():
    loss = deferred_reweighting(LDAM, COUNTS, start=2)
    for epoch, switched in ((2, True), (1, False), (5, True), (0, False)):
        loss.set_epoch(epoch)
        assert loss.part is (loss.after if switched else loss.before)


def test_a_start_of_zero_never_uses_the_first():
    loss = deferred_reweighting(LDAM, COUNTS, start=0)
    assert loss.part is loss.after


def test_the_weighted_mean_divides_by_the_sum_of_the_weights_as_in_torch():
    loss = deferred_reweighting(CrossEntropy, COUNTS, start=0)
    expected = torch.nn.functional.cross_entropy(LOGITS, LABELS, BALANCED)
    assert_close(loss(LOGITS, LABELS), expected)


@pytest.mark.parametrize("beta", [0.0, 0.9, 0.9999])
def test_carried_is_that_of_the_loss_in_use(beta):
    weights = class_balanced_weights(COUNTS, beta)
    for make in (deferred_reweighting, deferred_resampling):
        loss = make(CrossEntropy, COUNTS, 1, beta)
        assert loss.carried.is_close(PRIOR, 1e-12)
        loss.set_epoch(1)
        assert loss.carried.is_close(PRIOR.reweighted(weights), 1e-12)


def test_carried_is_none_where_the_loss_in_use_carries_no_prior():
    loss = Deferred(CrossEntropy(PRIOR), LDAM(PRIOR), start=1)
    assert loss.carried is not None
    loss.set_epoch(1)
    with pytest.raises(UnknownPriorError, match="measure_carried"):
        retarget(LOGITS, loss.carried, PRIOR)


@pytest.mark.parametrize("make", [CrossEntropy, LogitAdjusted])
def test_a_model_trained_with_deferred_weights_carries_what_is_declared(make):
    world = FiniteWorld.long_tailed()
    loss = deferred_reweighting(make, world.prior, start=1, beta=0.99)
    for epoch in (0, 1):
        loss.set_epoch(epoch)
        require_carried(world, world.minimise(loss), loss.carried)


@pytest.mark.parametrize("make", [CrossEntropy, LogitAdjusted])
def test_a_model_trained_on_resampled_batches_carries_what_is_declared(make):
    world = FiniteWorld.long_tailed()
    loss = deferred_resampling(make, world.prior, start=1, beta=0.99)
    _, labels = world.samples()
    for epoch in (0, 1):
        loss.set_epoch(epoch)
        each = loss.part
        each.reduction = "none"
        drawn = loss.sampling_weights[labels]  # in expectation, a draw counts its weight

        def batches(logits, labels, each=each, drawn=drawn):
            return (each(logits, labels) * drawn).sum() / drawn.sum()

        require_carried(world, world.minimise(batches), loss.carried)


def test_a_sampler_that_follows_the_weights_draws_the_prior_that_the_loss_was_told():
    loss = deferred_resampling(CrossEntropy, COUNTS, start=1, beta=0.9)
    labels = torch.arange(4).repeat_interleave(torch.tensor(COUNTS))
    for epoch in (0, 1):
        loss.set_epoch(epoch)
        sampler = WeightedRandomSampler(
            loss.sampling_weights[labels], 100_000, generator=torch.Generator().manual_seed(1)
        )
        drawn = Prior.from_labels(labels[list(sampler)], 4)
        assert_close(drawn.probs, loss.carried.probs, rtol=0, atol=5e-3)


def test_only_resampling_asks_for_a_sampler():
    for loss, later in (
        (deferred_resampling(LDAM, COUNTS, start=1), BALANCED),
        (deferred_reweighting(LDAM, COUNTS, start=1), torch.ones(4, dtype=torch.float64)),
    ):
        assert loss.sampling_weights.tolist() == [1.0] * 4
        loss.set_epoch(1)
        assert_close(loss.sampling_weights, later)


def test_the_margins_of_ldam_can_be_kept_while_the_batches_change():
    followed = deferred_resampling(LDAM, COUNTS, start=0)
    kept = deferred_resampling(lambda train: LDAM(COUNTS), COUNTS, start=0)
    assert_close(kept.after.positive, LDAM(COUNTS).positive)
    assert not torch.allclose(followed.after.positive, kept.after.positive)


def test_the_epoch_and_both_losses_survive_a_state_dict():
    loss = deferred_resampling(LDAM, COUNTS, start=3)
    loss.set_epoch(7)
    state = loss.state_dict()
    assert all(isinstance(value, torch.Tensor) for value in state.values())  # for safetensors
    other = deferred_resampling(LDAM, [10, 20, 30, 40], start=3)
    assert other.epoch == 0
    other.load_state_dict(state)
    assert other.epoch == 7
    assert_close(other(LOGITS, LABELS), loss(LOGITS, LABELS))
    assert_close(other.sampling_weights, loss.sampling_weights)


def test_a_copy_switches_by_itself():
    loss = deferred_reweighting(LDAM, COUNTS, start=3)
    other = copy.deepcopy(loss)
    other.set_epoch(3)
    assert loss.part is loss.before
    assert other.part is other.after


def test_it_is_a_module_among_modules():
    loss = deferred_reweighting(CrossEntropy, COUNTS, start=1)
    assert not loss.eval().after.training
    assert "start=1, epoch=0" in repr(loss)
    assert {b.device.type for b in loss.to("meta").buffers()} == {"meta"}


def test_features_reach_the_loss_in_use():
    class Seen(CrossEntropy):
        def forward(self, logits, labels, features=None):
            return features

    features = torch.ones(3)
    loss = Deferred(Seen(PRIOR), CrossEntropy(PRIOR), start=1)
    assert loss(LOGITS, LABELS, features) is features
    assert loss(LOGITS, LABELS, features=features) is features


def test_compiled_it_equals_eager_and_is_compiled_once_for_each_loss_not_for_each_epoch():
    torch.compiler.reset()
    loss = deferred_reweighting(LDAM, COUNTS, start=30)
    graphs = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(loss, backend=graphs, fullgraph=True)
    for epoch in range(60):
        loss.set_epoch(epoch)
        ours, theirs = (LOGITS.clone().requires_grad_() for _ in range(2))
        expected, got = loss(ours, LABELS), compiled(theirs, LABELS)
        assert_close(got, expected)
        got.backward()
        expected.backward()
        assert_close(theirs.grad, ours.grad)
    assert graphs.frame_count == 2


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: deferred_reweighting(LDAM, COUNTS, start=-1), "start must be 0 or more"),
        (lambda: deferred_reweighting(LDAM, [0.7, 0.3], start=1), "need class counts"),
        (lambda: deferred_resampling(LDAM, COUNTS, 1, beta=1.0), r"beta must lie in \[0, 1\)"),
        (lambda: deferred_resampling(ClassBalanced, COUNTS, start=1), "need class counts"),
        (lambda: Deferred(LDAM(COUNTS), LDAM([3, 2]), 1), "got 4 and 2"),
    ],
)
def test_what_cannot_be_meant_is_refused(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()
