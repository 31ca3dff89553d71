"""Label smoothing: labels and prior change together, by hand to the last digit, and it shows."""

import math
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from longtail import Prior, fit_head, heads, images, losses
from longtail.engine import fit_linear
from longtail.testing import FiniteWorld, check_carried, loss_checks
from loss_examples import CONTRACT, MAKE, OTHER_FORMS, margins

COUNTS = [70, 20, 5, 5]
PRIOR = Prior.of(COUNTS)
EPSILON = 0.2
SMOOTHED = [0.61, 0.21, 0.09, 0.09]  # 0.8 · π + 0.2/4
GENERATOR = torch.Generator().manual_seed(0)
LOGITS = 3 * torch.randn(30, 4, generator=GENERATOR, dtype=torch.float64)
LABELS = torch.randint(0, 4, (30,), generator=GENERATOR)
MARGIN_LOSSES = [name for name in MAKE if not name.startswith(OTHER_FORMS)]
SMOOTHING = [name for name in MAKE if not name.startswith("LADE")]
DECLARED = [name for name in CONTRACT if not name.startswith("LADE")]


@pytest.mark.parametrize("name", MARGIN_LOSSES)
@pytest.mark.parametrize("weight", [None, [0.5, 1.0, 2.0, 4.0]])
def test_a_loop_over_smoothed_labels_gives_the_same(name, weight):
    loss = MAKE[name](PRIOR, label_smoothing=EPSILON, weight=weight, reduction="none").eval()
    delta, alpha, scale = margins(name, torch.tensor(SMOOTHED, dtype=torch.float64))
    expected = []
    for logits, y in zip(LOGITS, LABELS.tolist(), strict=True):
        f = [float(value) * float(factor) for value, factor in zip(logits, scale, strict=True)]
        total = 0.0
        for k in range(4):
            share = EPSILON / 4 + (1 - EPSILON if k == y else 0.0)
            inner = sum(math.exp(float(delta[k][j]) + f[j] - f[k]) for j in range(4) if j != k)
            factor = float(alpha[k]) * (1.0 if weight is None else weight[k])
            total += share * factor * math.log(1 + inner)
        expected.append(total)
    expected = torch.tensor(expected, dtype=torch.float64)
    assert_close(loss(LOGITS, LABELS), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weight", [None, [0.5, 1.0, 2.0, 4.0]])
def test_plain_cross_entropy_smooths_as_torch_does(reduction, weight):
    options = {"label_smoothing": 0.1, "reduction": reduction}
    ours = losses.CrossEntropy(PRIOR, weight=weight, **options)
    theirs = partial(
        F.cross_entropy,
        weight=None if weight is None else torch.tensor(weight, dtype=torch.float64),
        **options,
    )
    some = torch.where(LABELS == 2, -100, LABELS)
    soft = torch.softmax(LOGITS.flip(0), dim=1)
    grid = LOGITS.view(5, 6, 4).movedim(-1, 1)
    for logits, labels in ((LOGITS, LABELS), (LOGITS, some), (LOGITS, soft)):
        assert_close(ours(logits, labels), theirs(logits, labels), rtol=1e-12, atol=1e-12)
    marks = some.view(5, 6)
    assert_close(ours(grid, marks), theirs(grid, marks), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", DECLARED)
def test_what_is_carried_is_said_of_the_smoothed_labels_and_true_of_them(name):
    world = FiniteWorld.long_tailed()
    loss = MAKE[name](world.prior, label_smoothing=0.1)
    if name == "ClassBalanced":  # its weights depend on the number of smoothed labels too
        n = 158 * world.prior.smoothed(0.1).probs
        expected = world.prior.smoothed(0.1).reweighted(1 / (1 - 0.99**n))
    else:
        expected = CONTRACT[name](world.prior.smoothed(0.1))
    assert loss.carried.is_close(expected, 1e-12)
    assert loss.batches == world.prior
    for seed in (0, 1):
        check_carried(MAKE[name], FiniteWorld.drawn(seed), label_smoothing=0.1)


@pytest.mark.parametrize("name", DECLARED)
def test_class_weights_change_what_is_carried_of_smoothed_labels(name):
    make = partial(MAKE[name], weight=[1.0, 3.0, 0.5, 7.0])
    check_carried(make, label_smoothing=0.2)


def test_the_contract_catches_a_loss_that_smooths_labels_alone():
    class LabelsAlone(losses.LogitAdjusted):
        def __init__(self, train, **options):
            epsilon = options.pop("label_smoothing", 0.0)
            super().__init__(train, **options)
            self.label_smoothing = epsilon

    with pytest.raises(AssertionError, match=r"true posterior|must raise"):
        loss_checks.check_label_smoothing(LabelsAlone)
    with pytest.raises(AssertionError, match="off the true posterior"):
        check_carried(LabelsAlone, label_smoothing=0.1)


KEPT_CHECKS = (
    loss_checks.check_soft_labels,
    loss_checks.check_ignore_index,
    loss_checks.check_positions,
    loss_checks.check_half_precision,
    loss_checks.check_extremes,
    loss_checks.check_gradients,
    loss_checks.check_state,
)


@pytest.mark.parametrize("check", KEPT_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", ["LogitAdjusted", "Adaptive", "Focal", "SigmoidFocal", "ELM"])
def test_the_rest_of_the_contract_holds_with_label_smoothing(name, check):
    check(partial(MAKE[name], label_smoothing=0.1))


@pytest.mark.parametrize("name", SMOOTHING)
def test_without_smoothing_nothing_changes(name):
    features = torch.ones(30, 3, dtype=torch.float64)
    plain, zero = MAKE[name](PRIOR).eval(), MAKE[name](PRIOR, label_smoothing=0.0).eval()
    got, expected = (loss(LOGITS, LABELS, features=features) for loss in (zero, plain))
    assert torch.equal(got, expected)
    for key, value in plain.state_dict().items():
        assert torch.equal(zero.state_dict()[key], value)


def test_without_smoothing_the_kernel_still_sums(monkeypatch):
    loss = losses.LogitAdjusted(PRIOR, label_smoothing=0.0)
    monkeypatch.setattr(loss, "class_losses", None)  # would need all classes of each sample
    assert loss(LOGITS, LABELS).isfinite()


def test_a_term_on_features_sees_the_labels_as_they_are():
    features = torch.randn(30, 3, generator=torch.Generator().manual_seed(1)).double()
    loss = losses.ELM(PRIOR, lam=0.3, label_smoothing=EPSILON)
    logit_term = losses.LogitAdjusted(PRIOR, label_smoothing=EPSILON)(LOGITS, LABELS)
    pull = losses.Pull(PRIOR)(features, LABELS)
    assert_close(loss(LOGITS, LABELS, features=features), logit_term + 0.3 * pull)


def test_lade_refuses_since_its_two_terms_would_pull_apart():
    with pytest.raises(ValueError, match="LADE takes no label_smoothing"):
        losses.LADE(PRIOR, label_smoothing=0.1)
    assert losses.LADE(PRIOR, label_smoothing=0.0).carried == Prior.uniform(4)


@pytest.mark.parametrize("wrong", [-0.1, 1.0, 1.5, math.nan, math.inf])
def test_only_a_share_below_one_can_be_smoothed(wrong):
    with pytest.raises(ValueError, match=r"label_smoothing.*0 or more"):
        losses.CrossEntropy(PRIOR, label_smoothing=wrong)


def test_printing_a_loss_says_of_which_labels_it_speaks():
    assert "of labels smoothed by 0.1" in repr(losses.LogitAdjusted(PRIOR, label_smoothing=0.1))


def test_compiled_equals_eager_with_label_smoothing():
    torch.compiler.reset()
    loss = losses.LogitAdjusted(PRIOR, label_smoothing=0.1, weight=[1.0, 2.0, 3.0, 4.0])
    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
    assert_close(compiled(LOGITS, LABELS), loss(LOGITS, LABELS))


def test_deferred_reweighting_weighs_by_the_smoothed_counts():
    make = partial(losses.CrossEntropy, label_smoothing=EPSILON)
    loss = losses.deferred_reweighting(make, PRIOR, start=1, beta=1 - 1e-9)
    loss.set_epoch(1)
    assert loss.label_smoothing == EPSILON
    assert loss.carried.is_close(Prior.uniform(4), 1e-6)  # at β = 1 weights are 1/n


@pytest.mark.parametrize("weight", [None, [0.5, 1.0, 2.0, 4.0]])
def test_fit_linear_minimises_the_smoothed_loss(weight):
    features = torch.randn(200, 3, generator=torch.Generator().manual_seed(2)).double()
    labels = torch.arange(200) % 4
    loss = losses.Balanced([50] * 4, label_smoothing=0.3, weight=weight)
    layer = fit_linear(features, labels, loss, weight_decay=0.01, tolerance=1e-8)
    for parameter in layer.parameters():
        parameter.requires_grad_()
    decay = 0.005 * layer.weight.square().sum()
    gradients = torch.autograd.grad(loss(layer(features), labels) + decay, layer.parameters())
    assert max(float(g.abs().max()) for g in gradients) < 1e-7


def test_a_sampler_that_the_loss_was_not_made_for_changes_the_prior_of_smoothed_labels():
    labels = torch.arange(4).repeat_interleave(torch.tensor(COUNTS))
    features = F.one_hot(labels, 4).float()
    head = heads.Linear(4, 4)
    carried = fit_head(
        head,
        features,
        labels,
        loss=losses.CrossEntropy(PRIOR, label_smoothing=EPSILON),
        sampler=images.ClassBalancedSampler(labels, 4),
        sgd=heads.SGDConfig(lr=0.1, epochs=1),
    )
    assert carried.is_close(Prior.uniform(4))  # smoothed, it is uniform still


def balanced_accuracy_of(loss, train_labels, problem):
    """Of a small network trained with the loss."""
    points, test_points, test_labels = problem
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 5))
    optimizer = torch.optim.Adam(network.parameters(), lr=0.02)
    for _ in range(100):
        optimizer.zero_grad()
        loss(network(points), train_labels).backward()
        optimizer.step()
    with torch.no_grad():
        return (network(test_points).argmax(dim=1) == test_labels).double().mean().item()


def test_trained_with_label_smoothing_is_far_better_than_on_labels_smoothed_by_hand():
    generator = torch.Generator().manual_seed(0)
    counts, epsilon = [1000, 178, 32, 6, 3], 0.1
    centers = 3 * torch.randn(5, 4, generator=generator)

    def drawn(sizes):
        labels = torch.arange(5).repeat_interleave(torch.tensor(sizes))
        return centers[labels] + torch.randn(len(labels), 4, generator=generator), labels

    (points, labels), (test_points, test_labels) = drawn(counts), drawn([200] * 5)
    by_hand = (1 - epsilon) * F.one_hot(labels, 5).float() + epsilon / 5
    problem = (points, test_points, test_labels)
    wrong = balanced_accuracy_of(losses.LogitAdjusted(counts), by_hand, problem)
    smoothing = losses.LogitAdjusted(counts, label_smoothing=epsilon)
    right = balanced_accuracy_of(smoothing, labels, problem)
    assert wrong < 0.7
    assert right > 0.9
