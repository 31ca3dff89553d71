"""LADER and LADE: the paper's equations by loops, the published goldens, the separable limit."""

import math

import pytest
import torch
from torch.testing import assert_close

from longtail import Prior, losses
from longtail.losses import lade as lade_module

F = torch.tensor(
    [[2, 0.5, -1], [1, 1.5, 0], [0.2, -0.3, 0.8], [1.5, 0.1, 0.4]], dtype=torch.float64
)
Y = torch.tensor([0, 1, 2, 0])
COUNTS = [70, 25, 5]
GOLDEN = {"paper": -0.06500358, "released": -0.77122426}
GOLDEN_WITHOUT_CLASS_2 = {"paper": -0.47896945, "released": -0.52714699}


def naive(f, y, counts, lam, variant):
    """Equations 13, 15 and 16 with loops, or the widely copied code."""
    n, c = len(f), len(counts)
    prior = [k / sum(counts) for k in counts]
    total = 0.0
    for k in range(c):
        own = [f[i][k] for i in range(n) if y[i] == k]
        if variant == "paper":
            if not own:
                continue
            first = sum(own) / len(own)
            inside = sum((1 / c) / prior[y[i]] * math.exp(f[i][k]) for i in range(n)) / n
        else:
            first = sum(own) / (len(own) + 1e-8)
            inside = sum((1 / c) / (prior[k] + 1e-9) * math.exp(f[i][k]) for i in range(n)) / n
        total += prior[k] * (-first + math.log(inside) + lam * math.log(inside) ** 2)
    return total


@pytest.mark.parametrize("variant", GOLDEN)
def test_the_golden_values_come_out(variant):
    lader = losses.LADER(COUNTS, lam=0.1, variant=variant)
    assert lader(F, Y).item() == pytest.approx(GOLDEN[variant], abs=2e-8)
    rows = torch.tensor([0, 1, 3])
    without = lader(F[rows], Y[rows]).item()
    assert without == pytest.approx(GOLDEN_WITHOUT_CLASS_2[variant], abs=2e-8)


def test_the_cross_entropy_term_of_the_golden_example():
    assert losses.LADE(COUNTS, alpha=0)(F, Y).item() == pytest.approx(0.88294257, abs=1e-8)


@pytest.mark.parametrize("variant", GOLDEN)
@pytest.mark.parametrize("seed", range(3))
def test_loops_over_the_equations_give_the_same(variant, seed):
    generator = torch.Generator().manual_seed(seed)
    f = 3 * torch.randn(9, 4, generator=generator, dtype=torch.float64)
    y = torch.randint(0, 4, (9,), generator=generator)
    counts = [50, 30, 15, 5]
    expected = naive(f.tolist(), y.tolist(), counts, 0.3, variant)
    lader = losses.LADER(counts, lam=0.3, variant=variant)
    assert lader(f, y).item() == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("variant", GOLDEN)
def test_lade_is_balanced_softmax_plus_alpha_times_lader(variant):
    lade = losses.LADE(COUNTS, alpha=0.7, lam=0.2, variant=variant)
    lader = losses.LADER(COUNTS, lam=0.2, variant=variant)
    expected = losses.BalancedSoftmax(COUNTS)(F, Y) + 0.7 * lader(F, Y)
    assert_close(lade(F, Y), expected, rtol=0, atol=1e-7 if variant == "released" else 1e-12)


@pytest.mark.parametrize("spread", [1.0, 30.0, 1e3, 1e4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_one_pass_gives_what_the_terms_give_one_after_the_other(spread, dtype):
    """Also where exponentials underflow, which the pass must notice."""
    generator = torch.Generator().manual_seed(0)
    f = spread * torch.randn(20, 8, generator=generator, dtype=torch.float64)
    y = torch.randint(0, 6, (20,), generator=generator)  # classes 6 and 7 are absent
    counts = [900, 80, 70, 60, 50, 4, 3, 1]
    loss = losses.LADE(counts, alpha=0.3, lam=0.05)
    separate = losses.BalancedSoftmax(counts)
    ours, theirs = f.to(dtype, copy=True).requires_grad_(), f.clone().requires_grad_()
    log_prior = torch.as_tensor(Prior.of(counts).log)
    terms = lade_module.Terms(log_prior, log_prior.exp(), 0.05, 0.0, 0.3)
    total = loss(ours, y)
    expected = separate(theirs, y) + lade_module._plain(theirs, y, terms)
    total.backward()
    expected.backward()
    tolerance = {"rtol": 1e-4 if dtype == torch.float32 else 1e-10, "atol": 1e-5}
    assert_close(total.double(), expected, **tolerance)
    assert_close(ours.grad.double(), theirs.grad, **tolerance)


def test_a_backward_pass_can_be_asked_for_twice_and_scaled():
    loss = losses.LADE(COUNTS)
    f = F.clone().requires_grad_()
    total = loss(f, Y)
    (once,) = torch.autograd.grad(total, f, retain_graph=True)
    kept = once.clone()
    once.zero_()  # whoever takes a gradient may change it
    (again,) = torch.autograd.grad(3 * total, f)
    assert_close(again, 3 * kept)


def test_a_label_out_of_range_is_named_by_lade():
    with pytest.raises(ValueError, match="labels must lie in 0 to 2"):
        losses.LADE(COUNTS)(F, torch.tensor([0, 1, 3, 0]))


def test_lambda_is_above_zero_by_default():
    assert losses.LADER(COUNTS).lam > 0
    assert losses.LADE(COUNTS).regularizer.lam > 0


def test_separable_data_drive_the_positive_logit_to_log_c():
    """Equation 21: with p_u(x|y)/p_u(x) = C where the class is, the minimiser has log C there."""
    classes = 5
    labels = torch.arange(classes).repeat_interleave(torch.tensor([16, 8, 4, 2, 2]))
    logits = torch.zeros(classes, classes, dtype=torch.float64, requires_grad=True)
    lader = losses.LADER([16, 8, 4, 2, 2], lam=0.1)
    solver = torch.optim.LBFGS([logits], max_iter=500, line_search_fn="strong_wolfe")

    def closure():
        solver.zero_grad()
        value = lader(logits[labels], labels)
        value.backward()
        return value

    solver.step(closure)
    positive = logits.detach().diagonal()
    assert_close(positive, torch.full_like(positive, math.log(classes)), rtol=0, atol=1e-2)


@pytest.mark.parametrize("variant", GOLDEN)
def test_huge_logits_and_odd_batches_stay_finite(variant):
    lader = losses.LADER(COUNTS, variant=variant)
    cases = {
        "±10,000": (torch.where(F > 0.3, 1e4, -1e4), Y),
        "one sample": (F[:1], Y[:1]),
        "one class": (F, torch.zeros(4, dtype=torch.long)),
        "half": (F.half(), Y),
        "bfloat16": (F.bfloat16(), Y),
    }
    for name, (f, y) in cases.items():
        f = f.detach().requires_grad_()
        value = lader(f, y)
        (gradient,) = torch.autograd.grad(value, f)
        assert value.isfinite(), name
        assert gradient.isfinite().all(), name


def test_ignored_samples_are_left_out_and_an_empty_batch_is_zero():
    lader = losses.LADER(COUNTS)
    ignored = torch.tensor([0, 1, -100, 0])
    assert_close(lader(F, ignored), lader(F[[0, 1, 3]], Y[[0, 1, 3]]))
    assert lader(F, torch.full((4,), -100)).item() == 0


def test_the_compiled_form_takes_every_column_and_gives_the_same():
    """Eager takes one pass with a gradient of its own; a compiler and a GPU plain torch."""
    for variant in GOLDEN:
        lader = losses.LADER([70, 25, 5, 3], lam=0.1, variant=variant)
        rows = torch.cat([F, F[:, :1]], dim=1)  # class 3 is absent
        torch.compiler.reset()
        compiled = torch.compile(lader, backend="aot_eager")
        ours, theirs = (rows.clone().requires_grad_() for _ in range(2))
        assert_close(compiled(theirs, Y), lader(ours, Y))
        compiled(theirs, Y).backward()
        lader(ours, Y).backward()
        assert_close(theirs.grad, ours.grad)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: losses.LADER(COUNTS, lam=-1), r"lam.*0 or more"),
        (lambda: losses.LADER(COUNTS, variant="code"), '"paper" or "released"'),
        (lambda: losses.LADE(COUNTS, alpha=-1), "strength"),
        (lambda: losses.LADER(COUNTS)(F[:, :2], Y), "must have 3 classes"),
        (lambda: losses.LADER(COUNTS)(F, torch.softmax(F, dim=1)), "not soft labels"),
        (lambda: losses.LADE(COUNTS)(F, torch.softmax(F, dim=1)), "not soft labels"),
    ],
)
def test_wrong_input_gives_one_clear_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()
