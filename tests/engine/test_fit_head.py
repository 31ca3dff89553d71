"""fit_head does what the papers' second stages do, and says what the head then carries."""

import os
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch.testing import assert_close

import longtail as lt
from longtail import Prior, data, fit_head, heads, images, losses
from longtail.core.scores import Scores
from longtail.posthoc import WeightNormalization

COUNTS = torch.tensor([60, 25, 10, 5])
C, D = 4, 6


def drawn(counts, seed, spread=1.0):
    generator = torch.Generator().manual_seed(seed)
    means = 2.0 * torch.randn(C, D, generator=torch.Generator().manual_seed(99))
    labels = torch.repeat_interleave(torch.arange(C), counts)
    noise = torch.randn(len(labels), D, generator=generator)
    scale = torch.linspace(0.3, 2.5, D)
    return means[labels] + spread * scale * noise, labels


X, Y = drawn(COUNTS, seed=0)
PRIOR = Prior.of(COUNTS)
SHORT = heads.SGDConfig(lr=0.1, weight_decay=1e-3, epochs=3, batch_size=16)


def layer(seed=0):
    torch.manual_seed(seed)
    return torch.nn.Linear(D, C)


def naive_sgd(parameters, forward, sgd, sampler, objective=F.cross_entropy, clip=None):
    """Momentum, decay, clipping and the cosine written out by hand, batch by batch."""
    velocity = [torch.zeros_like(p) for p in parameters]
    for epoch in range(sgd.epochs):
        sampler.set_epoch(epoch)
        order = list(sampler)
        batches = [order[i : i + sgd.batch_size] for i in range(0, len(order), sgd.batch_size)]
        for number, batch in enumerate(batches):
            for p in parameters:
                p.requires_grad_()
            value = objective(forward(X[batch]), Y[batch])
            slopes = torch.autograd.grad(value, parameters)
            progress = (epoch + number / len(batches)) / sgd.epochs
            factor = 1.0
            if sgd.schedule == "cosine":
                factor = 0.5 * (1 + np.cos(np.pi * progress))
            with torch.no_grad():
                for k, p in enumerate(parameters):
                    slope = slopes[k] if clip is None else slopes[k].clamp(-clip, clip)
                    slope = slope + sgd.weight_decay * p
                    velocity[k] = (
                        slope if not velocity[k].any() else sgd.momentum * velocity[k] + slope
                    )
                    p.requires_grad_(False)
                    p -= sgd.lr * factor * velocity[k]
    return parameters


def test_crt_is_a_new_linear_layer_on_class_balanced_batches():
    start = layer()
    weight, bias = start.weight.detach().clone(), start.bias.detach().clone()
    sampler = images.ClassBalancedSampler(Y, C, seed=3)
    naive_sgd([weight, bias], lambda x: x @ weight.T + bias, SHORT, sampler)
    head = heads.Linear.from_linear(start)
    carried = fit_head(head, X, Y, sgd=SHORT, seed=3)
    assert_close(head.weight, weight)
    assert_close(head.bias, bias)
    assert carried == Prior.uniform(C)
    assert head.carried == Prior.uniform(C)


def test_lws_learns_a_scale_a_class_and_nothing_else():
    start = layer()
    scale = torch.ones(C)
    sampler = images.ClassBalancedSampler(Y, C)
    naive_sgd([scale], lambda x: scale * start(x).detach(), SHORT, sampler)
    head = heads.LearnableScale.from_linear(start)
    assert fit_head(head, X, Y, sgd=SHORT) is None
    assert_close(head.scale, scale)
    assert torch.equal(head.weight, start.weight)


def test_learned_ncm_moves_the_class_means_by_clipped_steps():
    centers = torch.stack([X[k == Y].mean(0) for k in range(C)])
    sgd = replace(heads.LearnedNCM.sgd, epochs=2, batch_size=16)
    sampler = images.ClassBalancedSampler(Y, C)

    def forward(x):
        return torch.stack([-0.5 * (x - c).square().sum(1).sqrt() for c in centers], dim=1)

    naive_sgd([centers], forward, sgd, sampler, clip=0.1)
    head = heads.LearnedNCM(D, C)
    assert fit_head(head, X, Y, sgd=sgd) == Prior.uniform(C)
    assert_close(head.centers.detach(), centers, rtol=1e-4, atol=1e-4)


def test_ncm_is_the_class_means():
    head = heads.NearestClassMean(D, C)
    assert fit_head(head, X, Y) == Prior.uniform(C)
    nearest = torch.stack([(X - X[k == Y].mean(0)).norm(dim=1) for k in range(C)], 1).argmin(1)
    assert torch.equal(head(X).argmax(1), nearest)


def test_the_tau_of_tau_norm_is_the_best_on_held_out_samples_as_far_as_they_determine_it():
    start = layer()
    held, labels = drawn(torch.tensor([30, 30, 30, 30]), seed=5)
    head = heads.TauNorm.from_linear(start)
    assert fit_head(head, X, Y, validation=(held, labels)) is None
    plain = held @ start.weight.T
    norms = start.weight.norm(dim=1)

    def error(tau):
        right = (plain / norms**tau).argmax(1) == labels
        return 1 - sum(right[labels == k].double().mean() for k in range(C)) / C

    with torch.no_grad():
        adjuster = WeightNormalization.fit(
            Scores(plain.detach(), labels, split="validation"), norms.detach()
        )
        least = min(error(tau) for tau in np.linspace(-3, 3, 601))
        assert error(adjuster.choice.optimum) <= least + 1e-9
    assert head.tau == pytest.approx(adjuster.tau)
    assert not adjuster.choice.is_determined  # the norms of a layer at random say little
    assert head.tau == pytest.approx(1, abs=0.3)


def test_learned_ncm_is_not_worse_than_ncm_on_a_third_split():
    """Neither trained nor stopped on, over several problems whose classes have unequal spreads."""
    gains = []
    for seed in range(5):
        generator = torch.Generator().manual_seed(seed)
        means = torch.randn(8, 16, generator=generator)
        spreads = 0.3 + 1.2 * torch.rand(8, 1, generator=generator)
        counts = data.exponential_counts(200, 8, 50)

        def sample(sizes, means=means, spreads=spreads, generator=generator):
            labels = torch.repeat_interleave(torch.arange(8), torch.as_tensor(sizes))
            noise = torch.randn(len(labels), 16, generator=generator)
            return means[labels] + spreads[labels] * noise, labels

        train, stop, third = sample(counts), sample([20] * 8), sample([300] * 8)
        accuracy = []
        for head in (heads.NearestClassMean(16, 8), heads.LearnedNCM(16, 8)):
            options = {} if head.sgd is None else {"validation": stop}
            fit_head(head, *train, **options)
            accuracy.append(lt.metrics.balanced_accuracy(head(third[0]), third[1]))
        gains.append(accuracy[1] - accuracy[0])
    assert min(gains) > -0.005
    assert sum(gains) > 0


def test_adjustment_on_class_balanced_batches_carries_a_power_of_the_prior():
    head = heads.LearnedNCM(D, C)
    sgd = replace(heads.LearnedNCM.adjusted_sgd, epochs=1)
    assert fit_head(head, X, Y, sgd=sgd).is_close(PRIOR.tempered(-1 / 8))


@pytest.mark.parametrize("sampler", ["instance", "class_balanced", "square_root", "reversed"])
@pytest.mark.parametrize("make", [losses.CrossEntropy, losses.LogitAdjusted])
def test_a_loss_class_is_made_for_the_batches(sampler, make):
    head = heads.Linear(D, C)
    batches = images.SAMPLERS[sampler](Y, C).induced(PRIOR)
    carried = fit_head(head, X, Y, loss=make, sampler=sampler, sgd=replace(SHORT, epochs=1))
    assert carried.is_close(make(batches).carried)


def test_a_loss_for_other_batches_is_accounted_for():
    head = heads.Linear(D, C)
    loss = losses.LogitAdjusted(PRIOR)  # as if the batches followed the data
    carried = fit_head(head, X, Y, loss=loss, sampler="class_balanced", sgd=SHORT)
    assert carried.is_close(Prior.of(1 / PRIOR.probs))


def test_a_given_loss_is_not_mixed_with_the_sampler_of_its_sgd():
    head = heads.Linear(D, C)
    assert fit_head(head, X, Y, loss=losses.LogitAdjusted(PRIOR)) == Prior.uniform(C)


def test_what_is_carried_is_what_measuring_finds():
    """On a problem that a linear layer solves exactly, the declared prior is the measured one."""
    many = torch.tensor([4000, 1500, 700, 300])
    features, labels = drawn(many, seed=2, spread=4.0)
    sgd = heads.SGDConfig(lr=0.1, epochs=30, batch_size=256)
    for sampler in ("instance", "class_balanced", "square_root"):
        torch.manual_seed(0)
        head = heads.Linear(D, C)
        declared = fit_head(head, features, labels, losses.CrossEntropy, sampler, sgd=sgd)
        held, truth = drawn(torch.tensor([4000] * 4), seed=3, spread=4.0)
        with torch.no_grad():
            measured = lt.measure_carried(head(held), truth)
        assert abs(measured.probs - declared.probs).max() < 0.03


def test_the_full_solver_is_the_minimum_over_weighted_samples():
    head = heads.Linear(D, C)
    carried = fit_head(head, X, Y, solver="lbfgs", sgd=replace(SHORT, weight_decay=0.01))
    assert carried.is_close(Prior.uniform(C))
    weight = head.weight.detach().double().requires_grad_()
    bias = head.bias.detach().double().requires_grad_()
    per_sample = F.cross_entropy(X.double() @ weight.T + bias, Y, reduction="none")
    share = 1 / (C * COUNTS[Y])  # every class counts alike
    value = (share * per_sample).sum() + 0.005 * weight.square().sum()
    slopes = torch.autograd.grad(value, (weight, bias))
    assert max(s.abs().max() for s in slopes) < 1e-5


def test_the_full_solver_finds_lws_where_many_steps_of_sgd_go():
    start = layer()
    exact = heads.LearnableScale.from_linear(start)
    fit_head(exact, X, Y, solver="lbfgs", sgd=replace(SHORT, weight_decay=0.01))
    scale = exact.scale.detach().double().requires_grad_()
    logits = scale * start(X).double().detach()
    share = 1 / (C * COUNTS[Y])
    value = (share * F.cross_entropy(logits, Y, reduction="none")).sum()
    (slope,) = torch.autograd.grad(value + 0.005 * scale.square().sum(), scale)
    assert slope.abs().max() < 1e-5


def trained_layer():
    return lt.engine.fit_linear(X, Y, losses.CrossEntropy(PRIOR), weight_decay=0.01)


def test_all_heads_go_through_it_and_end_in_evaluation_mode():
    start = trained_layer()
    made = [
        heads.Linear(D, C),
        heads.Cosine(D, C),
        heads.LearnableScale.from_linear(start),
        heads.EmpiricalOffset.from_linear(start),
        heads.EstimatedOffset.from_linear(start),
        heads.Generative(D, C),
        heads.NearestClassMean(D, C, "cosine"),
        heads.NearestClassMean(D, C, "cl2n"),
        heads.LearnedNCM(D, C),
        heads.MultiNCM(D, C, num_displacements=3),
        heads.MetricNCM(D, C),
        heads.MetricNCM(D, C, "per_class"),
        heads.MetricNCM(D, C, "eigenbasis"),
        heads.CausalNorm(D, C, alpha=0.3),
        heads.WeightVectorNorm(D, C, train=COUNTS),
    ]
    for head in made:
        sgd = None if head.sgd is None else replace(head.sgd, epochs=2, batch_size=20)
        carried = fit_head(head, X, Y, sgd=sgd)
        assert not head.training
        assert carried == head.carried
        right = (head(X).argmax(1) == Y).double()
        assert right.mean() > 0.5, type(head).__name__


def test_multi_ncm_keeps_the_centres_it_was_given():
    learned = heads.LearnedNCM(D, C)
    fit_head(learned, X, Y, sgd=replace(learned.sgd, epochs=1))
    multi = heads.MultiNCM.from_learned(learned, num_displacements=3)
    fit_head(multi, X, Y, sgd=replace(multi.sgd, epochs=1))
    assert torch.equal(multi.centers, learned.centers)


@pytest.mark.parametrize("make", [losses.LADE, losses.ELM, losses.LDAM, losses.Focal])
def test_any_loss_can_be_trained_with(make):
    head = heads.Linear(D, C)
    assert fit_head(head, X, Y, loss=make, sgd=SHORT) == make(PRIOR).carried


def test_deferred_losses_are_told_the_epoch():
    loss = losses.Deferred(losses.CrossEntropy(PRIOR), losses.LogitAdjusted(PRIOR), start=2)
    assert fit_head(heads.Linear(D, C), X, Y, loss=loss, sgd=SHORT) == Prior.uniform(C)
    assert loss.epoch == 2


def test_it_stops_by_held_out_samples_and_keeps_the_best_epoch():
    held = drawn(torch.tensor([40] * 4), seed=8, spread=3.0)
    sgd = heads.SGDConfig(lr=3.0, epochs=40, batch_size=10, schedule="constant")
    seen = []
    torch.manual_seed(0)
    head = heads.Linear(D, C)
    fit_head(head, X, Y, sgd=sgd, validation=held, patience=4, progress=seen.append)
    errors = [done.validation_error for done in seen]
    assert len(errors) < 40
    assert len(errors) == errors.index(min(errors)) + 1 + 4
    assert lt.metrics.balanced_error(head(held[0]), held[1]) == pytest.approx(min(errors))


class Stopped(Exception):
    pass


def stop(done):
    if done.epoch == 3:
        raise Stopped


@pytest.mark.parametrize("stopping", [True, False])
@pytest.mark.parametrize("sampler", ["class_balanced", "progressive"])
def test_a_stopped_fit_goes_on_bit_for_bit(tmp_path, stopping, sampler):
    sgd = replace(SHORT, epochs=6)
    held = drawn(torch.tensor([10] * 4), seed=8) if stopping else None
    options = {"sgd": sgd, "validation": held, "patience": 6, "sampler": sampler}
    torch.manual_seed(0)
    unbroken = heads.Linear(D, C)
    fit_head(unbroken, X, Y, **options)
    place = tmp_path / "fit.safetensors"
    torch.manual_seed(0)
    with pytest.raises(Stopped):
        fit_head(heads.Linear(D, C), X, Y, checkpoint=place, progress=stop, **options)
    again = heads.Linear(D, C)  # another start, which the checkpoint replaces
    epochs = []
    fit_head(again, X, Y, checkpoint=place, progress=lambda d: epochs.append(d.epoch), **options)
    assert epochs == [4, 5, 6]
    assert torch.equal(again.weight, unbroken.weight)
    assert again.carried == unbroken.carried
    done = heads.Linear(D, C)  # and once more: there is nothing left to do
    assert fit_head(done, X, Y, checkpoint=place, **options) == unbroken.carried
    assert torch.equal(done.weight, unbroken.weight)


@pytest.mark.parametrize(
    "change",
    [
        {"sgd": replace(SHORT, epochs=7)},
        {"loss": losses.LogitAdjusted(PRIOR, tau=2.0)},
        {"validation": None},
        {"labels": Y.flip(0)},
        {"features": -X},
        {"seed": 1},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_checkpoint_of_another_fit_is_refused(tmp_path, change):
    place = tmp_path / "fit.safetensors"
    held = drawn(torch.tensor([10] * 4), seed=8)
    options = {
        "features": X,
        "labels": Y,
        "loss": losses.LogitAdjusted(PRIOR),
        "validation": held,
        "sgd": SHORT,
        "checkpoint": place,
    }
    fit_head(heads.Linear(D, C), **options)
    with pytest.raises(ValueError, match="is of another fit"):
        fit_head(heads.Linear(D, C), **(options | change))


@pytest.mark.parametrize("change", ["no head", "shapes", "a velocity too many", "a pipe"])
def test_a_checkpoint_whose_tensors_do_not_fit_is_named(tmp_path, change):
    place = tmp_path / "fit.safetensors"
    sgd = replace(heads.Linear.sgd, epochs=2)
    fit_head(heads.Linear(D, C), X, Y, checkpoint=place, sgd=sgd)
    tensors = load_file(place)
    with safe_open(place, "pt") as file:
        about = file.metadata()
    place.unlink()
    if change == "no head":
        tensors = {name: each for name, each in tensors.items() if not name.startswith("head.")}
    elif change == "shapes":
        tensors = {name: each.flatten()[:1].clone() for name, each in tensors.items()}
    else:
        tensors["velocity.7"] = torch.ones(2)
    if change == "a pipe":
        os.mkfifo(place)
    else:
        save_file(tensors, place, about)
    with pytest.raises(ValueError, match=r"fit\.safetensors"):
        fit_head(heads.Linear(D, C), X, Y, checkpoint=place, sgd=sgd)


def test_a_damaged_checkpoint_is_named(tmp_path):
    place = tmp_path / "fit.safetensors"
    place.write_bytes(b"nonsense")
    with pytest.raises(ValueError, match=r"is damaged .* remove it"):
        fit_head(heads.Linear(D, C), X, Y, checkpoint=place)


def test_deferred_resampling_draws_as_the_loss_asks():
    loss = losses.deferred_resampling(losses.CrossEntropy, PRIOR, start=1)
    carried = fit_head(heads.Linear(D, C), X, Y, loss=loss, sgd=SHORT)
    assert carried.is_close(loss.after.carried)
    with pytest.raises(ValueError, match="InstanceSampler"):
        fit_head(heads.Linear(D, C), X, Y, loss=loss, sampler="square_root", sgd=SHORT)


def test_torch_half_features_are_widened():
    for solver in ("sgd", "lbfgs"):
        head = heads.Linear.from_linear(layer())
        fit_head(head, X.half(), Y, sgd=SHORT, solver=solver)
        assert head.weight.isfinite().all()


def test_the_same_seed_gives_the_same_head_and_torchs_own_numbers_stay():
    fitted = []
    for _ in range(2):
        head = heads.Linear.from_linear(layer())
        before = torch.random.get_rng_state()
        fit_head(head, X, Y, sgd=SHORT, seed=4)
        assert torch.equal(torch.random.get_rng_state(), before)
        fitted.append(head.weight)
    assert torch.equal(*fitted)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_memory_mapped_features_give_what_those_in_memory_give(tmp_path, dtype):
    stored = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", dtype, tuple(X.shape))
    stored[:] = X.numpy()
    stored.flush()
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    widened = torch.from_numpy(np.array(mapped, np.float32))
    for solver in ("sgd", "lbfgs"):
        both = [heads.Linear.from_linear(layer()) for _ in range(2)]
        for head, features in zip(both, (mapped, widened), strict=True):
            fit_head(head, features, Y, sgd=SHORT, solver=solver)
        assert_close(both[0].weight, both[1].weight)
    ncm = heads.NearestClassMean(D, C)
    fit_head(ncm, mapped, Y.numpy())
    assert_close(ncm.centers[0], widened[Y == 0].mean(0))


def test_linear_heads_that_were_fitted_fold_into_a_plain_layer():
    start = trained_layer()
    held = drawn(torch.tensor([10] * 4), seed=8)
    for head in (
        heads.LearnableScale.from_linear(start),
        heads.TauNorm.from_linear(start),
        heads.EmpiricalOffset.from_linear(start),
        heads.EstimatedOffset.from_linear(start),
    ):
        options = {"validation": held} if head.sgd is None and head.moment_options is None else {}
        fit_head(head, X, Y, **options)
        plain = head.to_linear()
        assert type(plain) is torch.nn.Linear
        assert_close(plain(held[0]), head(held[0]), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("head", "options", "message"),
    [
        (heads.Linear(D, C), {"sampler": "random"}, r"sampler.*instance"),
        (heads.Linear(D, C), {"sampler": "m_per_class"}, "MPerClassSampler"),
        (heads.Linear(D, C), {"solver": "adam"}, r'solver.*"lbfgs"'),
        (heads.Linear(D, C), {"loss": losses.CrossEntropy([1, 2])}, "the head has 4 classes"),
        (heads.Cosine(D, C), {"solver": "lbfgs"}, "not convex"),
        (heads.NearestClassMean(D, C), {"sampler": "instance"}, "nothing to train"),
        (heads.NearestClassMean(D, C), {"solver": "lbfgs"}, "nothing to train"),
        (heads.NearestClassMean(D, C), {"sgd": SHORT}, "nothing to train"),
        (heads.NearestClassMean(D, C), {"validation": (X, Y)}, "nothing to stop by"),
        (heads.TauNorm(D, C), {}, "give validation"),
        (heads.TauNorm(D, C), {"loss": losses.LDAM}, "nothing to train"),
        (heads.Linear(D, C), {"patience": 0}, "patience must be 1 or more"),
        (heads.Linear(D, C), {"validation": (X / 0, Y)}, "validation features must be finite"),
        (heads.Linear(D, C), {"solver": "lbfgs", "sampler": "progressive"}, "draws no batches"),
        (
            heads.Linear(D, C),
            {"loss": losses.CrossEntropy(PRIOR, reduction="none")},
            "minimises one number",
        ),
        (heads.Linear(D, C), {"sampler": images.InstanceSampler(Y.flip(0), C)}, "other labels"),
        (heads.Linear(D + 1, C), {}, "features must have 7 numbers"),
        (
            heads.Linear(D, C),
            {"solver": "lbfgs", "loss": losses.LogitAdjusted, "sampler": "square_root"},
            "L-BFGS draws no batches",
        ),
        (heads.Linear(D, C), {"solver": "lbfgs", "validation": (X, Y)}, "in one go"),
        (
            heads.Linear(D, C),
            {"sampler": images.InstanceSampler(Y[:50], C)},
            "made for other labels",
        ),
    ],
)
def test_what_cannot_be_done_is_said(head, options, message):
    with pytest.raises(ValueError, match=message):
        fit_head(head, X, Y, **options)


def test_what_is_no_head_or_loss_of_ours_is_told():
    with pytest.raises(TypeError, match=r"heads\.Linear\.from_linear"):
        fit_head(torch.nn.Linear(D, C), X, Y)
    with pytest.raises(TypeError, match=r"losses\.CrossEntropy"):
        fit_head(heads.Linear(D, C), X, Y, loss=torch.nn.CrossEntropyLoss())


def test_features_that_are_not_finite_are_refused():
    broken = X.clone()
    broken[7, 2] = float("nan")
    for head in (heads.Linear(D, C), heads.NearestClassMean(D, C)):
        with pytest.raises(ValueError, match=r"NaN .*row 7"):
            fit_head(head, broken, Y)


def test_an_sgd_that_trains_nothing_is_refused():
    for wrong in ({"epochs": 0}, {"batch_size": 0}, {"schedule": "steps"}):
        with pytest.raises(ValueError, match=r"(epochs|batch_size|schedule) must be"):
            replace(SHORT, **wrong)


def test_a_head_with_a_unit_divides_the_features_and_is_not_fitted_again(tmp_path):
    for head in (heads.NearestClassMean(D, C), heads.Linear.from_linear(layer())):
        fit_head(head, X, Y)
        logits, plain = head(X), head.to_linear()(X)
        head.set_feature_scale(5.0)
        assert_close(head(5 * X), logits)
        assert_close(head.to_linear()(5 * X), plain)
        lt.engine.save_head(head, tmp_path / "head.safetensors")
        again = lt.engine.load_head(tmp_path / "head.safetensors").head
        assert_close(again(5 * X), logits)
        with pytest.raises(ValueError, match="divides features by 5"):
            fit_head(head, X, Y)
        with pytest.raises(ValueError, match="above zero"):
            head.set_feature_scale(0.0)


def test_a_fit_that_diverges_says_so():
    with pytest.raises(ValueError, match="no longer finite in epoch"):
        fit_head(heads.Linear(D, C), 1e30 * X, Y, sgd=replace(SHORT, lr=1e9))
