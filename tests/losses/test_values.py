"""Values: every margin loss against a naive loop over LA eq. 11, and losses against each other."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from longtail import Prior, losses
from loss_examples import MAKE, OTHER_FORMS, margins

PRIOR = Prior.of([70, 20, 8, 2])
GENERATOR = torch.Generator().manual_seed(0)
LOGITS = 3 * torch.randn(30, 4, generator=GENERATOR, dtype=torch.float64)
LABELS = torch.randint(0, 4, (30,), generator=GENERATOR)
MARGIN_LOSSES = [name for name in MAKE if not name.startswith(OTHER_FORMS)]


def naive(logits, y, delta, alpha, scale):
    """LA eq. 11 for one sample, with a loop."""
    f = [float(value) * float(factor) for value, factor in zip(logits, scale, strict=True)]
    total = 1.0
    for other in range(len(f)):
        if other != y:
            total += math.exp(float(delta[y][other]) + f[other] - f[y])
    return float(alpha[y]) * math.log(total)


@pytest.mark.parametrize("name", MARGIN_LOSSES)
def test_a_loop_over_the_equation_gives_the_same(name):
    loss = MAKE[name](PRIOR, reduction="none").eval()
    table = margins(name, PRIOR.probs)
    expected = [naive(f, int(y), *table) for f, y in zip(LOGITS, LABELS, strict=True)]
    assert_close(
        loss(LOGITS, LABELS), torch.tensor(expected, dtype=torch.float64), rtol=1e-10, atol=1e-10
    )


@pytest.mark.parametrize("name", MARGIN_LOSSES)
def test_a_loop_over_the_equation_gives_the_same_for_soft_labels(name):
    loss = MAKE[name](PRIOR, reduction="none").eval()
    table = margins(name, PRIOR.probs)
    soft = torch.softmax(LOGITS.flip(0), dim=1)
    expected = [
        sum(float(q[y]) * naive(f, y, *table) for y in range(4))
        for f, q in zip(LOGITS, soft, strict=True)
    ]
    assert_close(
        loss(LOGITS, soft), torch.tensor(expected, dtype=torch.float64), rtol=1e-10, atol=1e-10
    )


@pytest.mark.parametrize("shape", ["linear", "sine"])
def test_label_aware_smoothing_by_a_loop(shape):
    loss = losses.LabelAwareSmoothing(PRIOR, head=0.35, tail=0.05, shape=shape, reduction="none")
    n = [70, 20, 8, 2]
    expected = []
    for f, y in zip(LOGITS, LABELS.tolist(), strict=True):
        height = (n[y] - 2) / 68
        height = math.sin(math.pi / 2 * height) if shape == "sine" else height
        epsilon = 0.05 + 0.3 * height
        log_p = (f - torch.logsumexp(f, 0)).tolist()
        others = sum(log_p[k] for k in range(4) if k != y)
        expected.append(-(1 - epsilon) * log_p[y] - epsilon / 3 * others)
    assert_close(
        loss(LOGITS, LABELS), torch.tensor(expected, dtype=torch.float64), rtol=1e-10, atol=1e-10
    )


def test_smoothing_is_the_same_for_all_classes_of_equal_size():
    loss = losses.LabelAwareSmoothing([5, 5, 5], head=0.3)
    assert_close(loss.epsilon, torch.full((3,), 0.3, dtype=torch.float64))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weight", [None, [0.5, 1.0, 2.0, 4.0]])
def test_plain_cross_entropy_is_torchs(reduction, weight):
    ours = losses.CrossEntropy(PRIOR, weight=weight, reduction=reduction, ignore_index=2)
    given = None if weight is None else torch.tensor(weight, dtype=torch.float64)
    expected = F.cross_entropy(LOGITS, LABELS, given, reduction=reduction, ignore_index=2)
    assert_close(ours(LOGITS, LABELS), expected)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_plain_cross_entropy_is_torchs_for_weighted_soft_labels_too(reduction):
    weight = torch.tensor([0.5, 1.0, 2.0, 4.0], dtype=torch.float64)
    soft = torch.softmax(LOGITS.flip(0), dim=1)
    ours = losses.CrossEntropy(PRIOR, weight=weight, reduction=reduction)
    assert_close(ours(LOGITS, soft), F.cross_entropy(LOGITS, soft, weight, reduction=reduction))


def test_the_papers_class_weights_divide_by_the_number_of_samples():
    loss = losses.Balanced(PRIOR)
    weighted = F.cross_entropy(LOGITS, LABELS, torch.as_tensor(1 / PRIOR.probs), reduction="sum")
    assert_close(loss(LOGITS, LABELS), weighted / len(LABELS))


def same(first, second):
    return torch.allclose(first(LOGITS, LABELS), second(LOGITS, LABELS), rtol=1e-12)


def test_losses_that_are_one_another_agree():
    make = losses
    assert same(make.LogitAdjusted(PRIOR, tau=0), make.CrossEntropy(PRIOR))
    assert same(make.LogitAdjusted(PRIOR), make.BalancedSoftmax(PRIOR))
    assert same(make.WeightedLogitAdjusted(PRIOR, tau=1), make.LogitAdjusted(PRIOR))
    assert same(make.WeightedLogitAdjusted(PRIOR, tau=0), make.Balanced(PRIOR))
    assert same(make.ConsistentMargin(PRIOR, PRIOR.probs), make.LogitAdjusted(PRIOR))
    assert same(make.ConsistentMargin(PRIOR, [1, 1, 1, 1]), make.Balanced(PRIOR))
    assert same(make.TwoScale(PRIOR, 0.6, 0.6), make.LogitAdjusted(PRIOR, tau=0.6))
    assert same(make.TwoScale(PRIOR, 0.0, 1.0), make.Equalized(PRIOR))
    assert same(make.VS(PRIOR, gamma=0), make.LogitAdjusted(PRIOR))
    assert same(make.LabelAwareSmoothing(PRIOR, 0, 0), make.CrossEntropy(PRIOR))


@pytest.mark.parametrize("name", ["LogitAdjusted", "BalancedSoftmax", "Balanced", "VS", "CDT"])
def test_equal_counts_leave_plain_cross_entropy(name):
    equal = Prior.of([9, 9, 9, 9])
    times = 4 if name == "Balanced" else 1  # α = 1/π
    assert_close(
        MAKE[name](equal)(LOGITS, LABELS), times * losses.CrossEntropy(equal)(LOGITS, LABELS)
    )


def test_counts_and_their_prior_make_the_same_loss():
    assert same(losses.LogitAdjusted([70, 20, 8, 2]), losses.LogitAdjusted(PRIOR))


def test_a_hard_sample_of_a_loss_far_from_underflow_and_far_into_it_is_exact():
    for gap in (50.0, 90.0, 110.0, 1e4):
        logits = torch.tensor([[gap, 0.0, 0.0, 0.0]], dtype=torch.float32)
        loss = losses.CrossEntropy([1, 1, 1, 1])(logits, torch.tensor([1]))
        assert loss.item() == pytest.approx(gap, rel=1e-6)


def test_soft_labels_lose_nothing_where_one_class_dominates():
    """The sum over the others must be taken anew there: 1 − p would round to zero."""
    logits = torch.tensor([[60.0, 0.0, 1.0, 2.0]], dtype=torch.float64)
    loss = losses.Adaptive(PRIOR)
    hard, soft = loss(logits, torch.tensor([0])), loss(logits, torch.eye(4).double()[:1])
    assert 0 < soft.item() < 1e-20
    assert_close(soft, hard, rtol=1e-10, atol=1e-17)


def test_the_thresholded_form_drops_rare_negatives_at_the_given_rate():
    generator = torch.Generator().manual_seed(1)
    loss = losses.Equalized(
        PRIOR, threshold=0.1, drop_rate=0.75, generator=generator, reduction="none"
    )
    logits = torch.zeros(20_000, 4)
    values = loss(logits, torch.zeros(20_000, dtype=torch.long))
    # Classes 2 and 3 are rare: log(4 - d) with d of them dropped.
    dropped = (4 - values.exp()).round()
    assert set(dropped.tolist()) == {0.0, 1.0, 2.0}
    assert dropped.mean().item() == pytest.approx(2 * 0.75, abs=0.02)


def test_the_thresholded_form_never_drops_the_positive_class():
    loss = losses.Equalized(PRIOR, threshold=0.1, drop_rate=1.0, reduction="none")
    values = loss(torch.zeros(2, 4), torch.tensor([3, 0]))
    assert_close(values, torch.tensor([3.0, 2.0]).log())
    soft = loss(torch.zeros(2, 4), F.one_hot(torch.tensor([3, 0]), 4).float())
    assert_close(soft, values)


def test_the_thresholded_form_is_finite_where_every_negative_is_dropped():
    loss = losses.Equalized([1, 1, 1, 1], threshold=0.5, drop_rate=1.0)
    logits = torch.randn(5, 4, generator=torch.Generator().manual_seed(0), requires_grad=True)
    for labels in (torch.arange(5) % 4, torch.full((5, 4), 0.25)):
        value = loss(logits, labels)
        (gradient,) = torch.autograd.grad(value, logits)
        assert value.item() == 0.0
        assert gradient.isfinite().all()
