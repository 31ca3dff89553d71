"""Values: each embedding regulariser against naive loops, a reference library, and by hand."""

import math

import pytest
import torch
from torch.testing import assert_close

from longtail import Prior
from longtail.losses import DROLT, Center, LiftedStructure, Range, SpreadOut
from longtail.losses.center import moved_centers

COUNTS = [70, 20, 8, 2]
GENERATOR = torch.Generator().manual_seed(0)
ROWS = torch.randn(40, 5, generator=GENERATOR, dtype=torch.float64)
LABELS = torch.randint(0, 4, (40,), generator=GENERATOR)
CENTERS = torch.randn(4, 5, generator=GENERATOR, dtype=torch.float64)
FEW = torch.tensor([0, 0, 0, 1, 2, 2])  # a class with one row, one with two, class 3 absent


def squared(a, b):
    return sum((x - y) ** 2 for x, y in zip(a, b, strict=True))


def naive_center(rows, labels):
    return sum(squared(x, CENTERS[y].tolist()) for x, y in zip(rows, labels, strict=True)) / len(
        rows
    )


def naive_range(rows, labels, largest, margin, intra_weight, inter_weight):
    intra, means = 0.0, []
    for y in sorted(set(labels)):
        own = [x for x, other in zip(rows, labels, strict=True) if other == y]
        means.append([sum(column) / len(own) for column in zip(*own, strict=True)])
        pairs = [squared(own[i], own[j]) for j in range(len(own)) for i in range(j)]
        widest = sorted(pairs, reverse=True)[:largest]
        if widest:
            intra += len(widest) / sum(1 / d for d in widest)
    gaps = [squared(means[i], means[j]) for j in range(len(means)) for i in range(j)]
    inter = max(0.0, margin - min(gaps)) if gaps else 0.0
    return intra_weight * intra + inter_weight * inter


def naive_lifted(rows, labels, margin):
    total, pairs = 0.0, 0
    for i in range(len(rows)):
        for j in range(i):
            if labels[i] != labels[j]:
                continue
            negatives = sum(
                math.exp(margin - math.sqrt(squared(rows[end], rows[k])))
                for end in (i, j)
                for k in range(len(rows))
                if labels[k] != labels[end]
            )
            pairs += 1
            total += max(0.0, math.sqrt(squared(rows[i], rows[j])) + math.log(negatives)) ** 2
    return total / (2 * pairs)


def naive_drolt(rows, labels, scale):
    total = 0.0
    for x, y in zip(rows, labels, strict=True):
        center, epsilon = CENTERS[y].tolist(), scale * math.sqrt(max(COUNTS) / COUNTS[y])
        inner = sum(
            math.exp(squared(x, center) - squared(other, center) + epsilon * (label != y))
            for other, label in zip(rows, labels, strict=True)
        )
        total += math.log(inner)
    return total / len(rows)


def naive_spread_out(rows, labels, all_pairs=False):
    unit = [[v / math.sqrt(sum(u * u for u in x)) for v in x] for x in rows]
    products = [
        sum(a * b for a, b in zip(unit[i], unit[j], strict=True))
        for j in range(len(rows))
        for i in range(j)
        if all_pairs or labels[i] != labels[j]
    ]
    first = sum(products) / len(products)
    second = sum(p * p for p in products) / len(products)
    return first**2 + max(0.0, second - 1 / len(rows[0]))


def with_centers(term):
    term.centers.copy_(CENTERS)
    return term.eval()


PAIRS = {
    "Center": (with_centers(Center(5, 4)), naive_center),
    "Range": (Range(2, 3.0, 0.5, 2.0), lambda x, y: naive_range(x, y, 2, 3.0, 0.5, 2.0)),
    "Range, five pairs": (Range(5, 0.1), lambda x, y: naive_range(x, y, 5, 0.1, 0.5, 0.5)),
    "Range, one pair": (Range(1, 50.0), lambda x, y: naive_range(x, y, 1, 50.0, 0.5, 0.5)),
    "LiftedStructure": (LiftedStructure(), lambda x, y: naive_lifted(x, y, 1.0)),
    "LiftedStructure, 0.3": (LiftedStructure(0.3), lambda x, y: naive_lifted(x, y, 0.3)),
    "DROLT": (with_centers(DROLT(COUNTS, 5)), lambda x, y: naive_drolt(x, y, 1.0)),
    "DROLT, 0.2": (with_centers(DROLT(COUNTS, 5, 0.2)), lambda x, y: naive_drolt(x, y, 0.2)),
    "SpreadOut": (SpreadOut(), naive_spread_out),
    "SpreadOut, all": (SpreadOut("all"), lambda x, y: naive_spread_out(x, y, all_pairs=True)),
}


@pytest.mark.parametrize("few", [False, True], ids=["40 rows", "6 rows"])
@pytest.mark.parametrize("scale", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("name", PAIRS)
def test_loops_over_the_formula_give_the_same(name, scale, few):
    term, naive = PAIRS[name]
    rows, labels = (scale * ROWS[:6], FEW) if few else (scale * ROWS, LABELS)
    expected = torch.tensor(naive(rows.tolist(), labels.tolist()), dtype=torch.float64)
    assert_close(term(rows, labels), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("margin", [0.3, 1.0, 4.0])
def test_lifted_structure_is_that_of_pytorch_metric_learning(margin):
    distances = pytest.importorskip("pytorch_metric_learning.distances")
    theirs = pytest.importorskip("pytorch_metric_learning.losses").LiftedStructureLoss(
        neg_margin=margin, distance=distances.LpDistance(normalize_embeddings=False)
    )
    ours, other = (ROWS.clone().requires_grad_() for _ in range(2))
    value, expected = LiftedStructure(margin)(ours, LABELS), theirs(other, LABELS)
    assert_close(value, expected, rtol=1e-10, atol=1e-10)
    value.backward()
    expected.backward()
    assert_close(ours.grad, other.grad, rtol=1e-9, atol=1e-9)


def test_centers_move_by_the_rule_worked_out_by_hand():
    term = Center(1, 3, rate=0.5)
    rows = torch.tensor([[4.0], [8.0], [3.0]])
    labels = torch.tensor([0, 0, 2])
    assert term(rows, labels).item() == pytest.approx((16 + 64 + 9) / 3)
    # Class 0: 0 + 0.5 · (4 + 8)/(1 + 2); class 2: 0 + 0.5 · 3/(1 + 1); class 1 has no rows.
    assert_close(term.centers.flatten().tolist(), [2.0, 0.0, 0.75])
    assert term(rows, labels).item() == pytest.approx((4 + 36 + 2.25**2) / 3)
    # Class 0: 2 + 0.5 · (2 + 6)/3; class 2: 0.75 + 0.5 · 2.25/2.
    assert_close(term.centers.flatten().tolist(), [2 + 4 / 3, 0.0, 0.75 + 0.5625])


@pytest.mark.parametrize("rate", [0.0, 0.3, 1.0])
def test_a_loop_moves_the_centers_alike(rate):
    expected = CENTERS.clone()
    for j in range(4):
        own = [x for x, y in zip(ROWS, LABELS, strict=True) if y == j]
        delta = sum(CENTERS[j] - x for x in own) / (1 + len(own))
        expected[j] = CENTERS[j] - rate * delta
    before = CENTERS.clone()
    assert_close(moved_centers(CENTERS, ROWS, LABELS, rate), expected, rtol=1e-12, atol=1e-12)
    assert torch.equal(CENTERS, before)


@pytest.mark.parametrize("term", [Center(5, 4, 0.3), DROLT(COUNTS, 5, rate=0.3)], ids=str)
def test_centers_move_in_training_mode_alone_and_come_to_the_class_means(term):
    term.eval()(ROWS, LABELS)
    assert not term.centers.any()
    term.train()
    for _ in range(200):
        term(ROWS, LABELS)
    means = torch.stack([ROWS[y == LABELS].mean(dim=0) for y in range(4)])
    assert_close(term.centers, means, rtol=0, atol=1e-10)


@pytest.mark.parametrize("make", [lambda: Center(5, 4), lambda: DROLT(COUNTS, 5)])
def test_two_calls_before_backward_have_the_gradients_of_their_own_centers(make):
    term, other = make(), ROWS.flip(0)
    start = term.centers.clone()
    both = ROWS.clone().requires_grad_()
    (term(both, LABELS) + term(other + 0 * both, LABELS) + term(both, LABELS)).backward()

    expected = torch.zeros_like(ROWS)
    for rows in (ROWS, other, ROWS):
        alone = make().eval()
        alone.centers.copy_(start)
        leaf = rows.clone().requires_grad_()
        alone(leaf, LABELS).backward()
        expected += leaf.grad if rows is ROWS else 0
        start = moved_centers(start, rows, LABELS, 0.5)
    assert_close(both.grad, expected, rtol=1e-12, atol=1e-12)
    assert_close(term.centers, start, rtol=1e-12, atol=1e-12)


def test_the_gradient_of_the_center_term_reaches_the_features_and_not_the_centers():
    term = with_centers(Center(5, 4)).train()
    rows = ROWS.clone().requires_grad_()
    term(rows, LABELS).backward()
    assert_close(rows.grad, 2 * (ROWS - CENTERS[LABELS]) / len(ROWS))
    assert not list(term.parameters())
    assert not term.centers.requires_grad
    assert term.centers.grad is None


def test_margins_of_drolt_fall_with_the_root_of_the_prior():
    probs = torch.as_tensor(Prior.of(COUNTS).probs)
    margins = DROLT(COUNTS, 5, scale=0.7).margins
    assert margins[0] == 0.7
    assert_close(margins * probs.sqrt(), (0.7 * probs.max().sqrt()).expand(4))
    assert_close(DROLT(Prior.of(COUNTS), 5, scale=0.7).margins, margins)


def test_drolt_of_a_row_alone_is_zero_and_of_equal_rows_the_logarithm_of_how_many():
    assert DROLT(COUNTS, 5)(ROWS[:1], LABELS[:1]).item() == 0
    same = ROWS[:1].expand(7, 5)
    value = DROLT(COUNTS, 5)(same, torch.zeros(7, dtype=torch.long))
    assert value.item() == pytest.approx(math.log(7))


def test_range_counts_a_class_of_two_rows_by_its_one_pair():
    rows = torch.tensor([[0.0, 0.0], [3.0, 4.0]])
    assert Range(largest=2)(rows, torch.tensor([1, 1])).item() == pytest.approx(0.5 * 25)


def test_range_is_zero_for_a_class_with_a_distance_of_zero_among_its_widest():
    rows = torch.tensor([[1.0, 1.0]] * 3, requires_grad=True)
    value = Range()(rows, torch.tensor([0, 0, 0]))
    assert value.item() == pytest.approx(0.0, abs=1e-30)
    (gradient,) = torch.autograd.grad(value, rows)
    assert not gradient.any()


def test_spread_out_is_zero_for_orthogonal_classes_and_blind_to_norms():
    rows = torch.eye(4, dtype=torch.float64)
    assert SpreadOut()(rows, torch.arange(4)) == 0
    lengths = torch.rand(40, 1, generator=GENERATOR, dtype=torch.float64) + 0.1
    assert_close(SpreadOut()(ROWS * lengths, LABELS), SpreadOut()(ROWS, LABELS))
    assert SpreadOut()(ROWS, 0 * LABELS) == 0


@pytest.mark.parametrize("term", [Range(), LiftedStructure()], ids=["Range", "LiftedStructure"])
def test_near_rows_far_from_zero_keep_their_distances_in_float32(term):
    rows = (1000 + 0.1 * ROWS).float()
    assert_close(term(rows, LABELS).double(), term(rows.double(), LABELS), rtol=1e-5, atol=0)
