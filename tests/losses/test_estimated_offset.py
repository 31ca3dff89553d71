"""The estimated-offset objective: by loops, its two ablations, and who moves what."""

import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from longtail import heads, losses

COUNTS = [70, 25, 5]
GENERATOR = torch.Generator().manual_seed(0)
FEATURES = torch.randn(7, 4, generator=GENERATOR, dtype=torch.float64)
LABELS = torch.tensor([0, 1, 0, 2, 0, 1, 0])


def make_head(use_offset=True):
    generator = torch.Generator().manual_seed(1)
    head = heads.EstimatedOffset(4, 3, use_offset).double()
    with torch.no_grad():
        head.weight.normal_(generator=generator)
        head.centers.normal_(generator=generator)
    return head


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def naive(head, features, labels, center_weight, uniform_weight, use_offset=True, averaged=False):
    """EO equation 6 with loops; `averaged`: the squares over the dimensions, not added up."""
    w, c = head.weight.tolist(), head.centers.tolist()
    offset = [0.5 * dot(c[k], w[k]) for k in range(len(w))]
    shares = [math.exp(-o) / sum(math.exp(-p) for p in offset) for o in offset]
    uniform = sum(s * math.log(s) for s in shares)
    total = 0.0
    for x, y in zip(features.tolist(), labels.tolist(), strict=True):
        f = [dot(w[k], x) - (offset[k] if use_offset else 0.0) for k in range(len(w))]
        total += math.log(sum(math.exp(v) for v in f)) - f[y]
        squares = [(a - b) ** 2 for a, b in zip(x, c[y], strict=True)]
        total += center_weight * sum(squares) / (len(squares) if averaged else 1)
    return total / len(features) + uniform_weight * uniform


@pytest.mark.parametrize(
    ("center_weight", "uniform_weight", "use_offset"),
    [(1.0, 1.0, True), (0.3, 2.0, True), (1.0, 0.0, True), (1.0, 1.0, False)],
    ids=["eq. 6", "other weights", "w/o UC", "UC only"],
)
def test_a_loop_over_the_equation_gives_the_same(center_weight, uniform_weight, use_offset):
    head = make_head(use_offset)
    loss = losses.EstimatedOffset(COUNTS, head, center_weight, uniform_weight).eval()
    value = loss(head(FEATURES), LABELS, features=FEATURES)
    expected = naive(head, FEATURES, LABELS, center_weight, uniform_weight, use_offset)
    assert value.item() == pytest.approx(expected, abs=1e-10)


def test_the_centre_term_is_averaged_over_the_dimensions_where_asked_for():
    head = make_head()
    loss = losses.EstimatedOffset(COUNTS, head, 0.7, 3.0, center_squares="mean").eval()
    value = loss(head(FEATURES), LABELS, features=FEATURES)
    expected = naive(head, FEATURES, LABELS, 0.7, 3.0, averaged=True)
    assert value.item() == pytest.approx(expected, abs=1e-10)


def test_the_centres_move_alike_however_the_centre_term_is_scaled():
    moved = []
    for squares in ("sum", "mean"):
        head = make_head()
        loss = losses.EstimatedOffset(COUNTS, head, center_squares=squares)
        loss(head(FEATURES), LABELS, features=FEATURES)
        moved.append(head.centers)
    assert_close(*moved)


def test_the_centres_follow_the_centre_loss_rule_in_training_and_rest_in_evaluation():
    head = make_head()
    before = head.centers.clone()
    loss = losses.EstimatedOffset(COUNTS, head, rate=0.5).eval()
    loss(head(FEATURES), LABELS, features=FEATURES)
    assert torch.equal(head.centers, before)
    loss.train()
    loss(head(FEATURES), LABELS, features=FEATURES)
    for k in range(3):
        rows = FEATURES[k == LABELS]
        moved = before[k] - 0.5 * (before[k] - rows).sum(dim=0) / (1 + len(rows))
        assert_close(head.centers[k], moved)


def test_no_gradient_reaches_the_centres_and_the_offset_reaches_the_weights():
    head = make_head()
    loss = losses.EstimatedOffset(COUNTS, head, center_weight=0.0, uniform_weight=0.0).eval()
    value = loss(head(FEATURES), LABELS, features=FEATURES)
    value.backward()
    assert head.centers.grad is None
    assert not head.centers.requires_grad
    with_offset = head.weight.grad.clone()
    head.weight.grad = None
    plain = torch.nn.functional.linear(FEATURES, head.weight, -head.offset.detach())
    losses.CrossEntropy(COUNTS)(plain, LABELS).backward()
    assert not torch.allclose(with_offset, head.weight.grad)


def test_the_gradients_of_weights_and_features_agree_with_finite_differences():
    head = make_head()
    loss = losses.EstimatedOffset(COUNTS, head).eval()

    def value(features, weight):
        changed = make_head()
        del changed.weight
        changed.weight = weight
        logits = torch.nn.functional.linear(features, weight, -changed.offset)
        loss.regularizer._head = (changed,)
        return loss(logits, LABELS, features=features)

    inputs = (FEATURES.clone().requires_grad_(), head.weight.detach().clone().requires_grad_())
    assert torch.autograd.gradcheck(value, inputs)


def test_the_uniform_constraint_is_least_where_all_offsets_are_equal():
    head = make_head()
    loss = losses.EstimatedOffset(COUNTS, head, center_weight=0.0).eval()
    plain = losses.EstimatedOffset(COUNTS, head, center_weight=0.0, uniform_weight=0.0).eval()

    def constraint():
        logits = head(FEATURES)
        with_it, without = (each(logits, LABELS, features=FEATURES) for each in (loss, plain))
        return (with_it - without).item()

    assert constraint() > -math.log(3)
    head.centers.zero_()
    assert constraint() == pytest.approx(-math.log(3))


def test_two_forward_passes_before_backward_keep_their_gradients():
    head = make_head()
    loss = losses.EstimatedOffset(COUNTS, head)
    total = sum(loss(head(FEATURES), LABELS, features=FEATURES) for _ in range(2))
    total.backward()
    assert head.weight.grad.isfinite().all()


def test_the_head_is_held_but_not_registered():
    head = make_head()
    loss = losses.EstimatedOffset(COUNTS, head)
    assert not list(loss.parameters())
    assert not [name for name in loss.state_dict() if "head" in name or "centers" in name]


def test_it_claims_no_prior():
    assert losses.EstimatedOffset(COUNTS, make_head()).carried is None


def test_a_head_starts_from_trained_weights_without_their_bias():
    linear = nn.Linear(4, 3)
    head = heads.EstimatedOffset.from_linear(linear)
    assert_close(head(torch.ones(2, 4)), torch.ones(2, 4) @ linear.weight.T)


def test_the_boundary_is_equally_far_from_both_centres_where_weights_are_those_of_lda():
    """EO equation 4."""
    generator = torch.Generator().manual_seed(3)
    root = torch.randn(4, 4, generator=generator, dtype=torch.float64)
    precision = root @ root.T + torch.eye(4, dtype=torch.float64)
    head = make_head()
    with torch.no_grad():
        head.weight.copy_(head.centers @ precision)
        logits = head(head.centers)
    for j in range(3):
        for k in range(j):
            assert_close(logits[j, j] - logits[j, k], logits[k, k] - logits[k, j])


def test_huge_features_and_odd_batches_stay_finite():
    cases = {
        "norm 1,000": (1e3 * FEATURES, LABELS),
        "one row": (FEATURES[:1], LABELS[:1]),
        "one class": (FEATURES, torch.zeros(7, dtype=torch.long)),
        "half": (FEATURES.half(), LABELS),
        "bfloat16": (FEATURES.bfloat16(), LABELS),
    }
    for name, (rows, labels) in cases.items():
        head = make_head().to(rows.dtype)
        loss = losses.EstimatedOffset(COUNTS, head)
        rows = rows.detach().requires_grad_()
        value = loss(head(rows), labels, features=rows)
        value.backward()
        assert value.isfinite(), name
        assert rows.grad.isfinite().all(), name
        assert head.weight.grad.isfinite().all(), name


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: losses.EstimatedOffset([1, 1], make_head()), "the head has 3 classes"),
        (lambda: losses.EstimatedOffset(COUNTS, make_head(), center_weight=-1), "0 or more"),
        (lambda: losses.EstimatedOffset(COUNTS, make_head(), rate=2), "rate must be"),
        (
            lambda: losses.EstimatedOffset(COUNTS, make_head(), center_squares="max"),
            'center_squares must be "sum" or "mean"',
        ),
        (
            lambda: losses.EstimatedOffset(COUNTS, make_head())(FEATURES[:, :3], LABELS),
            "needs features",
        ),
    ],
)
def test_wrong_input_gives_one_clear_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()
