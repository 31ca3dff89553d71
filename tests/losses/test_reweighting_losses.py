"""Class-balanced, focal and LDAM: loops over the formulas, golden values, extremes, refusals."""

import math
from decimal import Decimal, getcontext
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from longtail import Prior, UnknownPriorError, retarget
from longtail.losses import (
    LDAM,
    ClassBalanced,
    CrossEntropy,
    Focal,
    SigmoidFocal,
    class_balanced_weights,
)
from longtail.testing import LOSS_CHECKS, check_carried

COUNTS = [70, 20, 8, 2]
PRIOR = Prior.of(COUNTS)
GENERATOR = torch.Generator().manual_seed(0)
LOGITS = 3 * torch.randn(30, 4, generator=GENERATOR, dtype=torch.float64)
LABELS = torch.randint(0, 4, (30,), generator=GENERATOR)
WEIGHT = torch.tensor([0.5, 1.0, 2.0, 4.0], dtype=torch.float64)

MAKE = {
    "ClassBalanced": ClassBalanced,
    "ClassBalanced, beta 0.9": partial(ClassBalanced, beta=0.9),
    "ClassBalanced, gamma 2": partial(ClassBalanced, beta=0.99, gamma=2.0),
    "ClassBalanced, gamma 0": partial(ClassBalanced, gamma=0.0),
    "Focal": Focal,
    "Focal, gamma 0": partial(Focal, gamma=0.0),
    "Focal, gamma 0.5": partial(Focal, gamma=0.5),
    "SigmoidFocal": SigmoidFocal,
    "SigmoidFocal, gamma 0": partial(SigmoidFocal, gamma=0.0),
    "SigmoidFocal, gamma 0.5": partial(SigmoidFocal, gamma=0.5),
    "LDAM": LDAM,
    "LDAM, in the head": partial(LDAM, max_margin=0.3, scale=10.0, scale_in="head"),
}
CARRIED = {
    "ClassBalanced": PRIOR.reweighted(class_balanced_weights(COUNTS)),
    "ClassBalanced, beta 0.9": PRIOR.reweighted(class_balanced_weights(COUNTS, 0.9)),
    "ClassBalanced, gamma 0": PRIOR.reweighted(class_balanced_weights(COUNTS)),
    "Focal, gamma 0": PRIOR,
}


def log_softmax(f):
    largest = max(f)
    total = sum(math.exp(value - largest) for value in f)
    return [value - largest - math.log(total) for value in f]


def focal(f, y, gamma):
    log_p = log_softmax(f)[y]
    return (1 - math.exp(log_p)) ** gamma * -log_p


def sigmoid_focal(f, y, gamma):
    total = 0.0
    for c, value in enumerate(f):
        p = 1 / (1 + math.exp(-value))
        if c == y:
            total += (1 - p) ** gamma * -math.log(p)
        else:
            total += p**gamma * -math.log(1 - p)
    return total


def effective(y, beta):
    """By the geometric sum 1 + β + ... + β^(n−1), which is (1 − β^n)/(1 − β)."""
    weights = [1 / sum(beta**k for k in range(n)) for n in COUNTS]
    return 4 * weights[y] / sum(weights)


def ldam(f, y, max_margin, scale, head=False):
    largest = max(n**-0.25 for n in COUNTS)
    margin = COUNTS[y] ** -0.25 * max_margin / largest
    cosines = [value / scale for value in f] if head else list(f)
    cosines[y] -= margin
    return -log_softmax([scale * value for value in cosines])[y]


NAIVE = {
    "ClassBalanced": lambda f, y: effective(y, 0.9999) * focal(f, y, 0.0),
    "ClassBalanced, beta 0.9": lambda f, y: effective(y, 0.9) * focal(f, y, 0.0),
    "ClassBalanced, gamma 2": lambda f, y: effective(y, 0.99) * focal(f, y, 2.0),
    "ClassBalanced, gamma 0": lambda f, y: effective(y, 0.9999) * focal(f, y, 0.0),
    "Focal": lambda f, y: focal(f, y, 2.0),
    "Focal, gamma 0": lambda f, y: focal(f, y, 0.0),
    "Focal, gamma 0.5": lambda f, y: focal(f, y, 0.5),
    "SigmoidFocal": lambda f, y: sigmoid_focal(f, y, 2.0),
    "SigmoidFocal, gamma 0": lambda f, y: sigmoid_focal(f, y, 0.0),
    "SigmoidFocal, gamma 0.5": lambda f, y: sigmoid_focal(f, y, 0.5),
    "LDAM": lambda f, y: ldam(f, y, 0.5, 30.0),
    "LDAM, in the head": lambda f, y: ldam(f, y, 0.3, 10.0, head=True),
}


def same(got, expected):
    expected = torch.as_tensor(expected, dtype=torch.float64)
    assert_close(got, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", MAKE)
def test_a_loop_over_the_formula_gives_the_same(name):
    loss = MAKE[name](PRIOR, reduction="none")
    rows = LOGITS.tolist()
    same(
        loss(LOGITS, LABELS),
        [NAIVE[name](f, y) for f, y in zip(rows, LABELS.tolist(), strict=True)],
    )


@pytest.mark.parametrize("name", MAKE)
def test_a_loop_over_the_formula_gives_the_same_for_soft_labels(name):
    loss = MAKE[name](PRIOR, reduction="none")
    soft = torch.softmax(LOGITS.flip(0), dim=1)
    expected = [
        sum(q[y] * NAIVE[name](f, y) for y in range(4))
        for f, q in zip(LOGITS.tolist(), soft.tolist(), strict=True)
    ]
    same(loss(LOGITS, soft), expected)


@pytest.mark.parametrize("check", LOSS_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", MAKE)
def test_the_contract_holds(name, check):
    check(MAKE[name])


@pytest.mark.parametrize("name", MAKE)
def test_what_is_carried_is_that_of_the_methods_table(name):
    carried = MAKE[name](PRIOR).carried
    if name in CARRIED:
        assert carried.is_close(CARRIED[name], 1e-12)
        check_carried(partial(MAKE[name], weight=WEIGHT))
    else:
        assert carried is None
        with pytest.raises(UnknownPriorError, match="measure_carried"):
            retarget(LOGITS, carried, Prior.uniform(4))


def test_golden_class_balanced_weights():
    weights = torch.as_tensor(class_balanced_weights([70, 25, 5]))
    expected = torch.tensor([0.16903016, 0.47222155, 2.35874829], dtype=torch.float64)
    assert_close(weights, expected, rtol=0, atol=5e-9)
    assert_close(ClassBalanced([70, 25, 5]).alpha, weights)


def test_golden_ldam_margins():
    for train in ([70, 25, 5], Prior.of([0.70, 0.25, 0.05])):
        margins = LDAM(train, scale_in="head").positive / -30
        expected = torch.tensor([0.25848658, 0.33437015, 0.5], dtype=torch.float64)
        assert_close(margins, expected, rtol=0, atol=5e-9)


@pytest.mark.parametrize("beta", [0.5, 0.9999, 0.999999, 1 - 1e-12, 1 - 2**-53])
def test_class_balanced_weights_are_exact_for_beta_near_one(beta):
    getcontext().prec = 60
    counts = [1_000_000, 1000, 7, 1]
    exact = [(1 - Decimal(beta)) / (1 - Decimal(beta) ** n) for n in counts]
    expected = [float(4 * weight / sum(exact)) for weight in exact]
    got = torch.as_tensor(class_balanced_weights(counts, beta))
    assert_close(got, torch.tensor(expected, dtype=torch.float64), rtol=1e-13, atol=0)


def test_beta_zero_weighs_all_classes_alike_and_beta_one_in_the_limit_by_their_counts():
    assert class_balanced_weights(COUNTS, 0.0).tolist() == [1.0] * 4
    by_count = torch.tensor([1 / n for n in COUNTS], dtype=torch.float64)
    weights = torch.as_tensor(class_balanced_weights(COUNTS, 1 - 1e-13))
    assert_close(weights, 4 * by_count / by_count.sum())
    same(ClassBalanced(PRIOR, beta=0)(LOGITS, LABELS), CrossEntropy(PRIOR)(LOGITS, LABELS))


def test_a_class_without_samples_counts_half_a_sample_as_in_its_prior():
    weights = class_balanced_weights(Prior.of([5, 3, 0], zeros="smooth"), 1 - 1e-13)
    by_count = torch.tensor([1 / 5.5, 1 / 3.5, 1 / 0.5], dtype=torch.float64)
    assert_close(torch.as_tensor(weights), 3 * by_count / by_count.sum())


def test_class_balanced_weights_divide_by_the_number_of_samples_as_all_weights_of_papers():
    each = ClassBalanced(PRIOR, reduction="none")(LOGITS, LABELS)
    same(ClassBalanced(PRIOR)(LOGITS, LABELS), each.sum() / len(each))


FOCAL = [name for name in MAKE if "Focal" in name or "gamma" in name]


@pytest.mark.parametrize("name", FOCAL)
def test_the_probability_that_fades_is_not_that_of_a_weighted_cross_entropy(name):
    """The bug of much public code: p = exp(−w·ce), so that a weight changes what fades."""
    plain = MAKE[name](PRIOR, reduction="none")
    weighted = MAKE[name](PRIOR, reduction="none", weight=WEIGHT)
    same(weighted(LOGITS, LABELS), WEIGHT[LABELS] * plain(LOGITS, LABELS))
    bug = F.cross_entropy(LOGITS, LABELS, WEIGHT, reduction="none")
    bug = (1 - (-bug).exp()) ** 2 * bug
    assert not torch.allclose(Focal(PRIOR, reduction="none", weight=WEIGHT)(LOGITS, LABELS), bug)


@pytest.mark.parametrize("wanted", [LABELS, torch.softmax(LOGITS.flip(0), dim=1)])
def test_losses_that_are_one_another_agree(wanted):
    def equal(first, second):
        same(first(LOGITS, wanted), second(LOGITS, wanted))

    equal(Focal(PRIOR, gamma=0), CrossEntropy(PRIOR))
    equal(ClassBalanced(PRIOR, beta=0, gamma=2), Focal(PRIOR))
    equal(LDAM(PRIOR, max_margin=0, scale_in="head"), CrossEntropy(PRIOR))
    binary = F.one_hot(LABELS, 4).double() if wanted is LABELS else wanted
    expected = F.binary_cross_entropy_with_logits(LOGITS, binary, reduction="none").sum(dim=1)
    same(SigmoidFocal(PRIOR, gamma=0)(LOGITS, wanted), expected.mean())


@pytest.mark.parametrize("wanted", [LABELS, torch.softmax(LOGITS.flip(0), dim=1)])
def test_the_scale_in_the_head_or_in_the_loss_is_one_loss(wanted):
    cosines = torch.tanh(LOGITS)
    in_loss = LDAM(PRIOR, scale=20.0)(cosines, wanted)
    same(LDAM(PRIOR, scale=20.0, scale_in="head")(20 * cosines, wanted), in_loss)


def test_scaling_twice_is_another_loss():
    cosines = torch.tanh(LOGITS)
    assert not torch.allclose(LDAM(PRIOR)(30 * cosines, LABELS), LDAM(PRIOR)(cosines, LABELS))


@pytest.mark.parametrize("gamma", [0.01, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("make", [Focal, SigmoidFocal, ClassBalanced])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_gradients_are_finite_and_vanish_where_the_label_is_certain(make, gamma, dtype):
    for gap in (20.0, 40.0, 100.0, 1e4):
        logits = torch.tensor([[gap, -gap, -gap, -gap]], dtype=dtype, requires_grad=True)
        for labels in (torch.tensor([0]), torch.tensor([[1.0, 0.0, 0.0, 0.0]])):
            value = make(PRIOR, gamma=gamma)(logits, labels)
            (slope,) = torch.autograd.grad(value, logits, create_graph=True)
            (curvature,) = torch.autograd.grad(slope.sum(), logits)
            assert 0 <= value.item() < 1e-6
            assert slope.abs().max() < 1e-6
            assert curvature.isfinite().all()


@pytest.mark.parametrize("name", MAKE)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_values_and_gradients_are_finite_in_the_extremes(name, dtype):
    loss = MAKE[name]([70, 20, 8, 1])  # a class with one sample
    huge = torch.where(LOGITS > 0, 1e4, -1e4)
    for rows, labels in [
        (huge, LABELS),
        (LOGITS[:1], LABELS[:1]),
        (LOGITS, torch.full_like(LABELS, 3)),
    ]:
        logits = rows.clone().to(dtype).requires_grad_()
        for wanted in (labels, F.one_hot(labels, 4).to(dtype)):
            value = loss(logits, wanted)
            (gradient,) = torch.autograd.grad(value, logits)
            assert value.isfinite()
            assert gradient.isfinite().all()
            assert gradient.dtype == dtype


@pytest.mark.parametrize(("logit", "loss"), [(1e4, 1e4), (25.0, 25.0 + 1.3887943864771144e-11)])
def test_sigmoid_focal_is_exact_for_large_logits(logit, loss):
    """F.softplus would be 25 at 25, log1p(exp x) infinite at 10,000; σ is one at both."""
    logits = torch.tensor([[-50.0, logit, -50.0]], dtype=torch.float64)
    value = SigmoidFocal([3, 2, 1], gamma=0)(logits, torch.tensor([1]))
    wrong = SigmoidFocal([3, 2, 1], gamma=0)(logits, torch.tensor([0]))
    assert value.item() == pytest.approx(math.exp(-logit), rel=1e-9, abs=1e-20)
    assert wrong.item() - 50 == pytest.approx(loss, rel=1e-12)


def test_soft_labels_lose_nothing_where_one_class_dominates():
    logits = torch.tensor([[60.0, -20.0, -20.0, -20.0]], dtype=torch.float64)
    for gamma in (0.0, 0.5):
        loss = SigmoidFocal(PRIOR, gamma=gamma)
        hard, soft = loss(logits, torch.tensor([0])), loss(logits, torch.eye(4).double()[:1])
        assert 0 < hard.item() < 1e-8
        assert_close(soft, hard, rtol=1e-12, atol=0)


def test_the_usual_bias_gives_every_class_the_same_start():
    logits = torch.full((1, 5), -math.log(4), dtype=torch.float64)
    value = SigmoidFocal([1] * 5, gamma=0)(logits, torch.tensor([0]))
    same(value, -math.log(1 / 5) - 4 * math.log(4 / 5))


@pytest.mark.parametrize("name", MAKE)
def test_compiled_equals_eager(name):
    torch.compiler.reset()
    loss = MAKE[name](PRIOR, weight=WEIGHT)
    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
    for labels in (LABELS, torch.softmax(LOGITS.flip(0), dim=1)):
        ours, theirs = (LOGITS.clone().requires_grad_() for _ in range(2))
        expected, got = loss(ours, labels), compiled(theirs, labels)
        assert_close(got, expected)
        got.backward()
        expected.backward()
        assert_close(theirs.grad, ours.grad)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: ClassBalanced(PRIOR, beta=1.0), r"beta must lie in \[0, 1\), got 1.0"),
        (lambda: ClassBalanced(PRIOR, beta=-0.1), r"beta must lie in \[0, 1\)"),
        (lambda: ClassBalanced(PRIOR, beta=math.nan), r"beta must lie in \[0, 1\)"),
        (lambda: ClassBalanced(PRIOR, gamma=-1.0), r"gamma.*finite"),
        (lambda: ClassBalanced([0.7, 0.2, 0.1]), r"need class counts.*Prior.of\(counts\)"),
        (lambda: class_balanced_weights(PRIOR.tempered(0.5)), "need class counts"),
        (lambda: class_balanced_weights([3, 0]), "zeros='smooth'"),
        (lambda: Focal(PRIOR, gamma=-0.5), r"gamma.*got -0\.5"),
        (lambda: Focal(PRIOR, gamma=math.inf), r"gamma.*finite"),
        (lambda: SigmoidFocal(PRIOR, gamma=math.nan), r"gamma.*finite"),
        (lambda: LDAM(PRIOR, max_margin=-1), "max_margin must be"),
        (lambda: LDAM(PRIOR, scale=0), r"scale.*above zero"),
        (lambda: LDAM(PRIOR, scale_in="both"), r"scale_in.*got 'both'"),
    ],
)
def test_parameters_out_of_range_are_refused(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()
