"""Pull and ELM: by loops, only pairs of one class, and proposition 1."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from longtail import Prior, losses
from longtail.losses import elm
from longtail.losses.elm import pull_margins, same_class_pairs

COUNTS = [64, 16, 4]
GENERATOR = torch.Generator().manual_seed(0)
FEATURES = torch.randn(12, 5, generator=GENERATOR, dtype=torch.float64)
LABELS = torch.tensor([0, 1, 0, 2, 0, 1, 0, 0, 1, 0, 1, 0])


def naive(features, labels, margins):
    values = []
    for i, x in enumerate(features):
        total = 1.0
        for j, other in enumerate(features):
            if i != j and labels[i] == labels[j]:
                distance = sum((a - b) ** 2 for a, b in zip(x, other, strict=True))
                total += math.exp(distance - margins[labels[i]])
        values.append(math.log(total))
    return values


@pytest.mark.parametrize(
    "rule", ["relative", "prior", "sqrt_prior", "sqrt_count", "count", [0.5, 0.1, 2.0]]
)
def test_a_loop_over_the_pairs_gives_the_same(rule):
    term = losses.Pull(COUNTS, rule, scale=1.5)
    expected = naive(FEATURES.tolist(), LABELS.tolist(), pull_margins(COUNTS, rule, 1.5).tolist())
    got = term.values(FEATURES, LABELS)
    assert_close(got, torch.tensor(expected, dtype=torch.float64), rtol=1e-10, atol=1e-10)
    assert term(FEATURES, LABELS).item() == pytest.approx(sum(expected) / 12, abs=1e-10)


def test_the_margins_follow_the_papers_rules():
    pi = torch.tensor(COUNTS, dtype=torch.float64) / 84
    assert_close(pull_margins(COUNTS, "prior"), pi)
    assert_close(pull_margins(COUNTS, "sqrt_prior", 10.0), 10 * pi.sqrt())
    assert pull_margins(COUNTS, "sqrt_count").tolist() == [8.0, 4.0, 2.0]
    assert pull_margins(COUNTS, "count").tolist() == COUNTS
    assert pull_margins(COUNTS, "count", 0.5).tolist() == [32.0, 8.0, 2.0]
    assert pull_margins(COUNTS).tolist() == pytest.approx([1.0, 0.5, 0.25])


def test_gradients_agree_with_finite_differences_also_in_chunks(monkeypatch):
    term = losses.Pull(COUNTS)
    rows = FEATURES.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: term.values(x, LABELS), rows)
    whole = torch.autograd.grad(term(rows, LABELS), rows)[0]
    monkeypatch.setattr(elm, "BLOCK", 15)  # three pairs at a time
    assert_close(torch.autograd.grad(term(rows, LABELS), rows)[0], whole)


@given(st.lists(st.integers(0, 5), max_size=30))
def test_the_pairs_are_all_of_one_class_both_ways_round_and_in_order(labels):
    first, second, begins = same_class_pairs(torch.tensor(labels, dtype=torch.long))
    expected = [
        (i, j)
        for i in range(len(labels))
        for j in range(len(labels))
        if i != j and labels[i] == labels[j]
    ]
    assert sorted(zip(first.tolist(), second.tolist(), strict=True)) == expected
    assert first.tolist() == sorted(first.tolist())
    assert begins.tolist() == [sum(i < row for i, _ in expected) for row in range(len(labels))]


@pytest.mark.parametrize("spread", [0.1, 1.0, 1e3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_mean_found_with_its_gradient_is_that_of_the_values(spread, dtype):
    """Also for rows so far apart that exponentials overflow, which it must notice."""
    term = losses.Pull(COUNTS)
    ours, theirs = ((spread * FEATURES).to(dtype, copy=True).requires_grad_() for _ in range(2))
    got, expected = term(ours, LABELS), term.values(theirs, LABELS).mean()
    assert_close(got, expected)
    got.backward()
    expected.backward()
    assert_close(ours.grad, theirs.grad)


def test_memory_is_that_of_the_pairs_and_not_of_pairs_times_dimensions():
    """4,000 rows of 512 dimensions in 1,000 classes: Σ n_y² is 16,000, where N² is 16 million."""
    labels = torch.arange(4000) % 1000
    features = torch.randn(4000, 512, generator=torch.Generator().manual_seed(0))
    features.requires_grad_()
    sizes = []
    with torch.autograd.graph.saved_tensors_hooks(
        lambda tensor: sizes.append(tensor.numel()) or tensor, lambda tensor: tensor
    ):
        losses.Pull(torch.ones(1000, dtype=torch.long))(features, labels).backward()
    assert len(same_class_pairs(labels)[0]) == 12_000
    assert max(sizes) == features.numel()  # the features themselves
    assert sorted(sizes)[-2] <= 16_000


@settings(max_examples=50, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    rows=st.integers(2, 8),
    spread=st.floats(0.01, 10),
    margin=st.floats(0, 5),
)
def test_proposition_1_the_mean_pull_term_bounds_the_variance_of_a_class(
    seed, rows, spread, margin
):
    """With the variance that divides by |S_y|."""
    generator = torch.Generator().manual_seed(seed)
    features = spread * torch.randn(rows, 3, generator=generator, dtype=torch.float64)
    mean = losses.Pull([1, 1], [margin, margin])(features, torch.zeros(rows, dtype=torch.long))
    variance = features.var(dim=0, correction=0).sum()
    bound = 2 * rows / (rows - 1) * variance - margin + math.log(rows - 1)
    assert float(bound) <= float(mean) + 1e-9


def test_odd_batches_and_huge_features_stay_finite():
    term = losses.Pull(COUNTS)
    cases = {
        "norm 1,000": (1e3 * FEATURES, LABELS),
        "norm 1,000 in float32": (1e3 * FEATURES.float(), LABELS),
        "one row": (FEATURES[:1], LABELS[:1]),
        "one class": (FEATURES, torch.zeros(12, dtype=torch.long)),
        "identical rows": (torch.ones(4, 3), torch.zeros(4, dtype=torch.long)),
        "half": (FEATURES.half(), LABELS),
        "bfloat16": (FEATURES.bfloat16(), LABELS),
        "nothing left": (FEATURES, torch.full((12,), -100)),
    }
    for name, (rows, labels) in cases.items():
        rows = rows.detach().requires_grad_()
        value = term(rows, labels)
        (gradient,) = torch.autograd.grad(value, rows)
        assert value.isfinite(), name
        assert gradient.isfinite().all(), name


def test_rows_alone_in_their_class_are_not_pulled():
    assert losses.Pull(COUNTS)(FEATURES[:3], torch.tensor([0, 1, 2])).item() == 0


def test_elm_is_the_logit_adjusted_loss_plus_lambda_times_pull():
    logits = FEATURES[:, :3]
    elm = losses.ELM(COUNTS, lam=0.3, margins="sqrt_prior", scale=2.0)
    expected = losses.LogitAdjusted(COUNTS)(logits, LABELS) + 0.3 * losses.Pull(
        COUNTS, "sqrt_prior", 2.0
    )(FEATURES, LABELS)
    assert_close(elm(logits, LABELS, features=FEATURES), expected)
    assert elm.carried.is_close(Prior.uniform(3))


def test_elm_draws_the_features_and_leaves_the_logits_to_their_loss():
    logits, features = FEATURES[:, :3].clone().requires_grad_(), FEATURES.clone().requires_grad_()
    elm, plain = losses.ELM(COUNTS, lam=0.3), losses.LogitAdjusted(COUNTS)
    on_logits, on_features = torch.autograd.grad(
        elm(logits, LABELS, features=features), (logits, features)
    )
    assert_close(on_logits, torch.autograd.grad(plain(logits, LABELS), logits)[0])
    pulled = torch.autograd.grad(losses.Pull(COUNTS)(features, LABELS), features)[0]
    assert_close(on_features, 0.3 * pulled)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: losses.Pull(COUNTS, "cubic"), "'cubic'"),
        (lambda: losses.Pull([0.5, 0.5], "sqrt_count"), "needs class counts"),
        (lambda: losses.Pull([0.5, 0.5], "count"), "margins='count' needs class counts"),
        (lambda: losses.Pull(COUNTS, [1.0]), "margins must have one number"),
        (lambda: losses.Pull(COUNTS, [1.0, math.inf, 1.0]), "must be finite"),
        (lambda: losses.ELM(COUNTS)(FEATURES[:, :3], LABELS), "ELM needs features"),
        (lambda: losses.ELM(COUNTS, lam=-1), "strength"),
        (
            lambda: losses.ELM(COUNTS)(FEATURES[:, :3], LABELS, features=FEATURES[:5]),
            r"labels of shape \(5,\)",
        ),
        (lambda: losses.Pull(COUNTS)(FEATURES, FEATURES[:, :3]), "not soft labels"),
        (lambda: losses.Pull(COUNTS)(FEATURES.long(), LABELS), "floating type"),
    ],
)
def test_wrong_input_gives_one_clear_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()
