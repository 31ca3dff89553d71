"""The loop does what a plain loop does; each option does what it says."""

from dataclasses import replace

import pytest
import torch
from torch.testing import assert_close

import longtail as lt
from engine.training.tiny import (
    AUGMENT,
    CLASSES,
    LOSSES,
    NORMALIZE,
    curve,
    flat_model,
    images,
    model,
    quick,
    quick_train,
)
from longtail.engine.backbones import MLP
from longtail.engine.schedules import Constant, Cosine, Steps
from longtail.engine.training import EpochEnd, Model, StepEnd, TrainingOptions, predict
from longtail.engine.training.checkpoint import read_checkpoint
from longtail.engine.training.train import shared_sampler
from longtail.images import ImageArrays
from longtail.images.samplers import ClassBalancedSampler, InstanceSampler, ProgressiveSampler


def test_the_weights_are_those_of_a_plain_loop():
    data, net, plain = images(), model(), model()
    options = quick(
        epochs=3,
        schedule=Cosine(total=3, warmup=1),
        momentum=0.8,
        nesterov=True,
        weight_decay=0.01,
        clip_norm=0.5,
    )
    quick_train(net, data, lt.losses.LogitAdjusted(data.counts), options)
    log_prior = (data.counts / data.counts.sum()).log()
    solver = torch.optim.SGD(
        plain.parameters(), lr=1.0, momentum=0.8, nesterov=True, weight_decay=0.01
    )
    sampler, step = InstanceSampler(data.labels, CLASSES), 0
    rate = Cosine(total=18, warmup=6)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for some in torch.tensor(list(sampler)).split(16):
            solver.param_groups[0]["lr"] = 0.05 * rate(step)
            logits = plain((data.images[some] / 255 - 0.5) / 0.25).logits
            value = torch.nn.functional.cross_entropy(logits + log_prior, data.labels[some])
            solver.zero_grad()
            value.backward()
            torch.nn.utils.clip_grad_norm_(plain.parameters(), 0.5)
            solver.step()
            step += 1
    for key, value in plain.state_dict().items():
        assert_close(net.state_dict()[key], value, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_the_head_may_have_a_rate_of_its_own(optimizer):
    """Tiny for the backbone: it stays, and the head goes where it goes on frozen features."""
    data, net, same = images(), model(norm="none"), model(norm="none")
    before = {key: value.clone() for key, value in net.backbone.state_dict().items()}
    quick_train(net, data, options=quick(lr=1e-12, head_lr=0.05, optimizer=optimizer))
    for key, value in net.backbone.state_dict().items():
        assert_close(value, before[key], atol=1e-9, rtol=0)
    for parameter in same.backbone.parameters():
        parameter.requires_grad_(False)
    quick_train(same, data, options=quick(lr=0.05, optimizer=optimizer))
    assert_close(net.head.weight, same.head.weight)


@pytest.mark.parametrize("name", ["LogitAdjusted", "CrossEntropy, weighted"])
def test_pieces_of_a_batch_give_the_gradient_of_the_batch(name):
    whole, weights = curve(name)
    pieces, in_pieces = curve(name, accumulate=3)  # 16 images in pieces of 6, 5 and 5
    assert_close(pieces, whole, atol=1e-5, rtol=0)
    for key, value in weights.items():
        assert_close(in_pieces[key], value, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", ["LADE", "ELM"])
def test_batch_statistics_are_those_of_the_pieces(name):
    data, net, other = images(16), flat_model(), flat_model()
    seen = []
    quick_train(
        net,
        data,
        LOSSES[name](data.counts),
        quick(epochs=1, accumulate=2),
        progress=lambda event: seen.append(event.loss) if isinstance(event, StepEnd) else None,
    )
    order = torch.tensor(list(InstanceSampler(data.labels, CLASSES)))
    outputs = other(NORMALIZE(data.images[order]))
    loss, labels = LOSSES[name](data.counts), data.labels[order]
    halves = [slice(0, 8), slice(8, 16)]
    values = [loss(outputs.logits[at], labels[at], outputs.features[at]).item() for at in halves]
    assert seen == pytest.approx([sum(values) / 2], abs=1e-6)


def test_the_rate_moves_within_an_epoch_or_stays_for_it():
    data, rates = images(32), {}
    for by_epoch in (False, True):
        seen = rates[by_epoch] = []
        quick_train(
            flat_model(),
            data,
            options=quick(epochs=4, lr=0.8, schedule=Steps((2,), 0.1, warmup=2), by_epoch=by_epoch),
            progress=lambda event, seen=seen: (
                seen.append(event.lr) if hasattr(event, "lr") else None
            ),
        )
    assert rates[False] == pytest.approx([0.2, 0.4, 0.6, 0.8, 0.08, 0.08, 0.08, 0.08])
    assert rates[True] == pytest.approx([0.4, 0.4, 0.8, 0.8, 0.08, 0.08, 0.08, 0.08])


def test_the_average_is_what_is_validated_and_what_the_model_ends_with():
    data, held, plain = images(), images(40, seed=1), []
    net = model()
    result = quick_train(net, data, options=quick(ema=0.9), validation=held)
    logits = predict(net, held, NORMALIZE).logits
    scores = lt.Scores(logits, labels=held.labels, counts=data.counts)
    for name, value in (("accuracy", "val_accuracy"), ("nll", "val_nll"), ("few", "val_few")):
        assert result.history[-1][value] == pytest.approx(lt.metrics.evaluate(scores)[name])

    class Tracked(torch.optim.SGD):
        def step(self, closure=None):
            super().step(closure)
            plain.append([p.detach().clone() for p in self.param_groups[0]["params"]])

    original, torch.optim.SGD = torch.optim.SGD, Tracked
    try:
        quick_train(model(), data, options=quick())
    finally:
        torch.optim.SGD = original
    average = plain[0]
    for number, weights in enumerate(plain[1:], start=1):
        kept = min(0.9, (1 + number) / (10 + number))
        average = [kept * a + (1 - kept) * w for a, w in zip(average, weights, strict=True)]
    for found, expected in zip(net.parameters(), average, strict=True):
        assert_close(found, expected, atol=1e-5, rtol=1e-4)


def test_logits_carry_the_loss_times_batches_over_train():
    data, prior = images(), lt.Prior.of(images().counts)
    balanced = ClassBalancedSampler(data.labels, CLASSES)
    uniform = lt.Prior.uniform(CLASSES)
    for loss, sampler, expected in (
        (lt.losses.CrossEntropy(prior), None, prior),
        (lt.losses.LogitAdjusted(prior), None, uniform),
        (lt.losses.CrossEntropy(uniform), balanced, uniform),
        (lt.losses.LogitAdjusted(prior, tau=0.5), balanced, prior.tempered(-0.5)),
        (lt.losses.LDAM(prior), None, None),
    ):
        net = flat_model()
        result = quick_train(net, data, loss, quick(epochs=1), sampler)
        assert result.carried == net.carried == expected


def test_a_model_that_carried_something_is_trained_like_one_that_did_not(tmp_path):
    data, net, other = images(), flat_model(), flat_model()
    net.head.carry([1, 2, 3, 4])
    quick_train(net, data, options=quick(ema=0.9), run=tmp_path, stop_after=3)
    assert net.carried is None
    quick_train(net, data, options=quick(ema=0.9), run=tmp_path)
    quick_train(other, data, options=quick(ema=0.9))
    assert net.carried == other.carried == lt.Prior.of(data.counts)
    assert torch.equal(net.head.weight, other.head.weight)


def test_deferred_weights_count_from_their_epoch_on():
    data, carried = images(), []
    loss = lt.losses.deferred_reweighting(lt.losses.CrossEntropy, data.counts, start=2, beta=0.99)
    for epochs in (2, 3):
        result = quick_train(flat_model(), data, loss, quick(epochs=epochs))
        carried.append(result.carried)
    weights = lt.losses.class_balanced_weights(data.counts, 0.99)
    assert carried[0] == lt.Prior.of(data.counts)
    assert carried[1] == lt.Prior.of(data.counts).reweighted(weights)


def test_deferred_resampling_draws_what_the_loss_asks_for_from_its_epoch_on():
    data = images()
    loss = lt.losses.deferred_resampling(lt.losses.CrossEntropy, data.counts, start=1, beta=0.999)
    drawn = shared_sampler(InstanceSampler(data.labels, CLASSES, seed=2), data.labels, loss)
    assert list(drawn) == list(InstanceSampler(data.labels, CLASSES, seed=2))
    loss.set_epoch(1)
    drawn.set_epoch(1)
    counts = data.labels[list(drawn)].bincount()
    assert counts.max() - counts.min() <= 2
    result = quick_train(flat_model(), data, loss)
    assert result.carried == lt.Prior.of(data.counts).reweighted(loss.sampling_weights)
    with pytest.raises(ValueError, match="InstanceSampler"):
        quick_train(flat_model(), data, loss, sampler=ClassBalancedSampler(data.labels, CLASSES))


def test_a_progressive_sampler_moves_on_with_the_epochs():
    data = images()
    sampler = ProgressiveSampler(data.labels, CLASSES, num_epochs=3)
    uniform = lt.Prior.uniform(CLASSES)
    loss = lt.losses.CrossEntropy(uniform)
    result = quick_train(flat_model(), data, loss, quick(epochs=3), sampler)
    assert result.carried == uniform
    assert (sampler.epoch, sampler.num_replicas) == (0, 1)  # what was given is left alone


@pytest.mark.parametrize(
    "changes",
    [
        {"optimizer": "adamw", "lr": 0.01, "weight_decay": 0.1},
        {"precision": "bfloat16"},
        {"mixup": 1.0},
        {"compile": "eager"},
        {"clip_norm": 1e-3},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_an_option_changes_the_weights_and_still_learns(changes):
    data, plain, net = images(), model(), model()
    quick_train(plain, data, options=quick(epochs=3))
    result = quick_train(net, data, options=quick(epochs=3, **changes))
    losses = [row["train_loss"] for row in result.history]
    assert losses[-1] < losses[0]
    same = torch.equal(net.head.weight, plain.head.weight)
    assert same == ("compile" in changes)


def test_images_are_small_in_the_first_epochs_and_their_own_size_after_them():
    data, net, seen = images(size=8), model(), []
    net.backbone.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    options = quick(epochs=3, early_sizes=((1, 4), (2, 6)))
    quick_train(net, data, options=options, augment=None)
    steps = len(seen) // 3
    assert [tuple(batch.shape[2:]) for batch in seen[::steps]] == [(4, 4), (6, 6), (8, 8)]
    # A quarter of the pixels: each is a mean of those around its place, so the mean image stays.
    first, last = torch.cat(seen[:steps]), torch.cat(seen[-steps:])
    assert torch.allclose(first.mean(dim=(0, 2, 3)), last.mean(dim=(0, 2, 3)), atol=0.02)
    assert first.std() < last.std()


def test_a_step_and_an_epoch_are_told_and_logged(tmp_path):
    data, seen = images(), []
    result = quick_train(
        flat_model(), data, validation=images(40, seed=1), run=tmp_path, progress=seen.append
    )
    steps = [event for event in seen if isinstance(event, StepEnd)]
    assert [(event.epoch, event.step) for event in steps] == [
        (epoch, step) for epoch in (1, 2) for step in range(1, 7)
    ]
    epochs = [event for event in seen if isinstance(event, EpochEnd)]
    assert [event.row for event in epochs] == result.history
    mean = sum(event.loss for event in steps[:6]) / 6
    assert result.history[0]["train_loss"] == pytest.approx(mean)
    header, *rows = (tmp_path / "log.csv").read_text().splitlines()
    assert header.split(",")[:4] == ["epoch", "step", "lr", "train_loss"]
    assert len(rows) == 2
    assert float(rows[1].split(",")[3]) == result.history[1]["train_loss"]


def test_validation_comes_every_few_epochs_and_after_the_last():
    data = images()
    result = quick_train(
        flat_model(), data, options=quick(epochs=5), validation=data, evaluate_every=2
    )
    assert ["val_accuracy" in row for row in result.history] == [False, True, False, True, True]
    best = max(row.get("val_uniform_balanced_accuracy", 0) for row in result.history)
    assert result.history[result.best_epoch - 1]["val_uniform_balanced_accuracy"] == best


def test_validation_leaves_no_trace_in_the_weights():
    data, net, other = images(), model(), model()
    quick_train(net, data, validation=images(40, seed=1))
    quick_train(other, data)
    for key, value in other.state_dict().items():
        assert torch.equal(net.state_dict()[key], value)


def test_a_loss_that_is_no_longer_finite_is_named_by_epoch_and_step():
    data, net = images(), flat_model()
    with pytest.raises(FloatingPointError, match=r"nan in epoch 1 at step [2-6]"):
        quick_train(net, data, options=quick(lr=1e30))


def test_nothing_is_written_where_the_loss_is_not_finite(tmp_path):
    with pytest.raises(FloatingPointError):
        quick_train(flat_model(), images(), options=quick(lr=1e30), run=tmp_path)
    assert not (tmp_path / "checkpoint").exists()


def test_frozen_parameters_stay_as_they_are():
    data, net = images(), flat_model()
    net.backbone.requires_grad_(False)
    before = {key: value.clone() for key, value in net.state_dict().items()}
    quick_train(net, data)
    assert torch.equal(net.backbone.layers[0].weight, before["backbone.layers.0.weight"])
    assert not torch.equal(net.head.weight, before["head.weight"])


def test_it_trains_where_the_caller_has_gradients_off_and_leaves_the_model_predicting():
    net, other = flat_model(), flat_model()
    with torch.inference_mode():
        quick_train(net, images())
    quick_train(other, images())
    assert torch.equal(net.head.weight, other.head.weight)
    assert not torch.equal(net.head.weight, flat_model().head.weight)
    assert not net.training


def test_augmentation_follows_the_seed():
    data = images()

    def weights(seed):
        net = flat_model()
        quick_train(net, data, options=quick(seed=seed), augment=AUGMENT)
        return net.head.weight

    assert torch.equal(weights(1), weights(1))
    assert not torch.equal(weights(1), weights(2))


def test_zero_epochs_change_nothing_but_what_is_carried():
    data, net = images(), flat_model()
    result = quick_train(net, data, options=quick(epochs=0))
    assert result.history == []
    assert result.best_epoch is None
    assert torch.equal(net.head.weight, flat_model().head.weight)


def test_heads_that_take_no_prior_carry_none():
    data = images()
    torch.manual_seed(0)
    body = MLP(inputs=192, hidden=(16,))
    net = Model(body, lt.heads.EstimatedOffset(16, CLASSES))
    loss = lt.losses.EstimatedOffset(data.counts, head=net.head)
    result = quick_train(net, data, loss)
    assert result.carried is net.carried is None
    assert result.history[1]["train_loss"] < result.history[0]["train_loss"]


def test_nothing_is_said_of_the_prior_on_the_way_with_such_a_head(tmp_path):
    data = images()
    torch.manual_seed(0)
    net = Model(MLP(inputs=192, hidden=(16,)), lt.heads.CausalNorm(16, CLASSES))
    result = quick_train(net, data, validation=data, run=tmp_path)
    assert result.carried is net.carried is None
    assert [row["val_uniform_balanced_accuracy"] for row in result.history] == [None, None]
    assert read_checkpoint(tmp_path / "checkpoint").state["carried"] is None


@pytest.mark.slow
def test_inductor_trains_to_the_same_loss():
    data = images()
    plain = quick_train(model(), data, options=quick(epochs=3))
    fast = quick_train(model(), data, options=quick(epochs=3, compile=True))
    for row, other in zip(plain.history, fast.history, strict=True):
        assert row["train_loss"] == pytest.approx(other["train_loss"], rel=1e-3)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"optimizer": "adam"}, r'optimizer.*"adamw"'),
        ({"precision": "half"}, 'precision must be "float32"'),
        ({"epochs": -1}, "epochs must be .* at least 0"),
        ({"batch_size": 0}, "batch_size must be .* at least 1"),
        ({"lr": float("nan")}, r"lr.*above 0"),
        ({"head_lr": 0.0}, r"head_lr.*above 0"),
        ({"momentum": 1.0}, "momentum must be .* below 1"),
        ({"weight_decay": float("nan")}, "weight_decay must be .* at least 0"),
        ({"momentum": 0.0, "nesterov": True}, "nesterov looks ahead"),
        ({"clip_norm": 0.0}, r"clip_norm.*above 0"),
        ({"accumulate": 17}, "cannot go through in 17 pieces"),
        ({"early_sizes": ((2, 6), (2, 4))}, "epochs of early_sizes must rise"),
        ({"early_sizes": ((0, 6),)}, "early_sizes must be"),
    ],
)
def test_options_that_make_no_sense_are_refused(changes, named):
    with pytest.raises(ValueError, match=named):
        replace(quick(), **changes)


BESIDE = lt.losses.LossWithTerms(lt.losses.CrossEntropy([1] * 4), [(lt.losses.SpreadOut(), 0.1)])


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"loss": lt.losses.CrossEntropy([1, 2])}, "the loss has 2"),
        ({"loss": lt.losses.CrossEntropy([1] * 4, reduction="sum")}, 'reduction="mean"'),
        ({"loss": lt.losses.LADE([1] * 4), "options": quick(mixup=1.0)}, "LADE does not take"),
        ({"loss": BESIDE, "options": quick(mixup=1.0)}, "LossWithTerms does not take"),
        ({"sampler": InstanceSampler([0, 1, 2, 3], CLASSES)}, "made for other labels"),
        ({"sampler": InstanceSampler(images().labels.flip(0), CLASSES)}, "made for other labels"),
        ({"sampler": InstanceSampler(images().labels, CLASSES + 1)}, "made for other labels"),
        ({"loss": lt.losses.CrossEntropy([1] * 4, ignore_index=3)}, "leave the images"),
        ({"recipe": {"place": object()}}, r"recipe.*JSON"),
        ({"options": quick(precision="float16")}, "float16. needs a GPU"),
        ({"options": quick(early_sizes=((1, 8),))}, "theirs are 8 pixels"),
        ({"tensorboard": True}, "give one with run"),
        ({"evaluate_every": 0}, "evaluate_every must be 1 or more"),
        ({"checkpoint_every": 0}, "checkpoint_every must be 1 or more"),
        ({"validation": images().subset([])}, "to validate on, got none"),
        ({"validation": ImageArrays(torch.zeros(2, 3, 8, 8).byte(), [0, 1])}, "images have 2"),
    ],
)
def test_what_does_not_fit_together_is_refused(changes, named):
    with pytest.raises(ValueError, match=named):
        quick_train(flat_model(), images(), **changes)


def test_a_head_of_another_size_is_refused():
    with pytest.raises(ValueError, match="make the head with dim=2"):
        Model(MLP(), lt.heads.Linear(3, 2))


def test_defaults_are_plain():
    options = TrainingOptions(epochs=1)
    assert options.schedule == Constant()
    assert options.ema is options.mixup is options.clip_norm is None
