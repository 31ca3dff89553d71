"""Embedding regularisers as modules: finite everywhere, precision, what they refuse, state."""

import pytest
import torch
from torch.testing import assert_close

from longtail.losses import DROLT, Center, LiftedStructure, Range, SpreadOut

MAKE = {
    "Center": lambda **options: Center(6, 4, **options),
    "Range": lambda **options: Range(margin=20.0, **options),
    "LiftedStructure": LiftedStructure,
    "DROLT": lambda **options: DROLT([70, 20, 8, 2], 6, **options),
    "SpreadOut": SpreadOut,
    "SpreadOut, all": lambda **options: SpreadOut("all", **options),
}
WITH_CENTERS = ["Center", "DROLT"]
GENERATOR = torch.Generator().manual_seed(0)
ROWS = torch.randn(12, 6, generator=GENERATOR)
LABELS = torch.tensor([0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 3, 0])
UNIT = torch.nn.functional.normalize(ROWS, dim=1)
CASES = {
    "features of norm 1e3": (1000 * UNIT, LABELS),
    "features of norm 1e3, near each other": (1000 * UNIT[:1] + UNIT, LABELS),
    "identical rows": (ROWS[:1].expand(12, 6), LABELS),
    "identical rows of norm 1e3": (1000 * UNIT[:1].expand(12, 6), LABELS),
    "two identical rows of a class": (ROWS[[0, 0, 1, 1]], torch.tensor([0, 0, 1, 1])),
    "rows of zeros": (0 * ROWS, LABELS),
    "one row of zeros": (torch.cat([0 * ROWS[:1], ROWS[1:]]), LABELS),
    "tiny distances": (1e-18 * ROWS, LABELS),
    "a batch of one": (ROWS[:1], LABELS[:1]),
    "every class with one row": (ROWS[:4], torch.arange(4)),
    "all rows of one class": (ROWS, 0 * LABELS),
    "no rows": (ROWS[:0], LABELS[:0]),
    "all rows ignored": (ROWS, torch.full((12,), -100)),
}


def value_and_gradient(term, rows, labels):
    leaf = rows.clone().requires_grad_()
    value = term(leaf, labels)
    (gradient,) = torch.autograd.grad(value, leaf)
    return value, gradient


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", MAKE)
def test_value_and_gradient_are_finite(name, case, dtype):
    rows, labels = CASES[case]
    term = MAKE[name]()
    for _ in range(2):  # with centres at zero, and then with centres that moved
        value, gradient = value_and_gradient(term, rows.to(dtype), labels)
        assert value.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
        assert value.shape == ()
        assert value.isfinite()
        assert gradient.isfinite().all()


@pytest.mark.parametrize("case", ["no rows", "all rows ignored"])
@pytest.mark.parametrize("name", MAKE)
def test_without_rows_it_is_zero_and_no_center_moves(name, case):
    term = MAKE[name]()
    value, gradient = value_and_gradient(term, *CASES[case])
    assert value == 0
    assert not gradient.any()
    assert not (name in WITH_CENTERS and term.centers.any())


def moved(name):
    """The term in evaluation mode, with centres that have seen a batch."""
    term = MAKE[name]()
    term(ROWS.flip(0), LABELS)
    return term.eval()


@pytest.mark.parametrize("name", MAKE)
def test_the_gradient_is_that_of_the_value(name):
    term = moved(name)
    rows = ROWS.double().requires_grad_()
    assert torch.autograd.gradcheck(lambda rows: term(rows, LABELS), rows)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", MAKE)
def test_halves_give_what_float64_gives_for_the_same_numbers(name, dtype):
    term, rows = moved(name), ROWS.to(dtype)
    value, gradient = value_and_gradient(term, rows, LABELS)
    expected, exact = value_and_gradient(term, rows.double(), LABELS)
    assert gradient.dtype == dtype
    assert_close(value.double(), expected, rtol=1e-3, atol=0)
    assert_close(gradient.double(), exact, rtol=1e-2, atol=1e-2 * float(exact.abs().max()))


@pytest.mark.parametrize("name", MAKE)
def test_autocast_changes_nothing(name):
    term = moved(name)
    with torch.autocast("cpu", torch.bfloat16):
        value = term(ROWS, LABELS)
    assert_close(value, term(ROWS, LABELS))


@pytest.mark.parametrize("ignore_index", [-100, 0])
@pytest.mark.parametrize("name", MAKE)
def test_ignored_rows_are_as_if_they_were_not_there(name, ignore_index):
    term, other = (MAKE[name](ignore_index=ignore_index) for _ in range(2))
    labels = LABELS.clone()
    labels[[1, 5, 10]] = ignore_index
    kept = labels != ignore_index
    value, gradient = value_and_gradient(term, ROWS, labels)
    expected, dropped = value_and_gradient(other, ROWS[kept], labels[kept])
    assert_close(value, expected)
    assert_close(gradient[kept], dropped)
    assert not gradient[~kept].any()
    assert_close(dict(term.state_dict()), dict(other.state_dict()))


@pytest.mark.parametrize("name", MAKE)
def test_soft_labels_are_refused(name):
    with pytest.raises(ValueError, match="class indices, not soft"):
        MAKE[name]()(ROWS, torch.full((12, 4), 0.25))


@pytest.mark.parametrize("name", MAKE)
def test_rows_of_more_dimensions_are_as_many_rows(name):
    term = moved(name)
    flat = term(ROWS, LABELS)
    maps = ROWS.view(3, 4, 6).movedim(2, 1)  # (N, D, d)
    assert_close(term(maps, LABELS.view(3, 4)), flat)
    assert_close(term(maps.unsqueeze(3), LABELS.view(3, 4, 1)), flat)


@pytest.mark.parametrize("name", MAKE)
def test_the_order_of_rows_does_not_matter(name):
    term = moved(name)
    order = torch.randperm(12, generator=torch.Generator().manual_seed(1))
    assert_close(term(ROWS[order], LABELS[order]), term(ROWS, LABELS))


@pytest.mark.parametrize("name", WITH_CENTERS)
def test_centers_are_saved_and_loaded(name):
    term, other = moved(name), MAKE[name]().eval()
    assert term.centers.any()
    other.load_state_dict(term.state_dict())
    assert torch.equal(other.centers, term.centers)
    assert torch.equal(other(ROWS, LABELS), term(ROWS, LABELS))


@pytest.mark.parametrize("name", MAKE)
def test_buffers_move_with_the_module_and_are_no_parameters(name):
    term = MAKE[name]()
    assert not list(term.parameters())
    assert {b.device.type for b in term.to("meta").buffers()} <= {"meta"}


@pytest.mark.parametrize("name", MAKE)
def test_compiled_equals_eager(name):
    compiled_equals_eager(name, backend="aot_eager")


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKE)
def test_compiled_by_inductor_equals_eager(name):
    compiled_equals_eager(name, backend="inductor")


def compiled_equals_eager(name, backend):
    """Twice in training mode: the second time with centres that the compiled code has moved."""
    torch.compiler.reset()
    eager, inner = MAKE[name](), MAKE[name]()
    compiled = torch.compile(inner, backend=backend)
    for rows in (ROWS, ROWS.flip(0)):
        expected, exact = value_and_gradient(eager, rows, LABELS)
        value, gradient = value_and_gradient(compiled, rows, LABELS)
        assert_close(value, expected)
        assert_close(gradient, exact)
        assert_close(dict(inner.state_dict()), dict(eager.state_dict()))


@pytest.mark.parametrize("name", WITH_CENTERS)
def test_labels_without_a_center_and_features_of_another_dimension_are_named(name):
    with pytest.raises(ValueError, match=r"0 to 3.*got 4 at position 1"):
        MAKE[name]()(ROWS[:2], torch.tensor([0, 4]))
    with pytest.raises(ValueError, match="got -1 at position 0"):
        MAKE[name]()(ROWS[:2], torch.tensor([-1, 0]))
    with pytest.raises(ValueError, match="dim=6, features have 5"):
        MAKE[name]()(ROWS[:, :5], LABELS)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Center(6, 4, rate=1.5), "rate must be .* got 1.5"),
        (lambda: Center(0, 4), "dim must be 1 or more"),
        (lambda: DROLT([5, 3], 6, rate=-1), "rate must be"),
        (lambda: DROLT([5, 3], 6, scale=-1), "0 or more"),
        (lambda: DROLT([5, 0], 6), "zeros='smooth'"),
        (lambda: Range(largest=0), "largest must be 1 or more"),
        (lambda: Range(margin=-1), "0 or more"),
        (lambda: SpreadOut("every"), 'pairs must be "different" or "all", got \'every\''),
    ],
)
def test_wrong_parameters_are_refused(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


@pytest.mark.parametrize("name", MAKE)
def test_the_rows_are_left_as_they_were(name):
    rows = ROWS.clone()
    MAKE[name]()(rows, LABELS)
    assert torch.equal(rows, ROWS)
