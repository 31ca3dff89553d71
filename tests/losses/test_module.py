"""Losses as modules: what they accept and refuse, precision, compilation, state."""

import pytest
import torch
from torch.testing import assert_close

from longtail import Prior, losses
from loss_examples import MAKE

PRIOR = Prior.of([70, 20, 8, 2])
LOGITS = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
LABELS = torch.tensor([0, 1, 2, 3, 0, 1])


@pytest.mark.parametrize(
    ("logits", "labels", "sentence"),
    [
        (LOGITS[:, :3], LABELS, "must have 4 classes on axis 1"),
        (LOGITS.long(), LABELS, "logits must be of a floating type"),
        (LOGITS, LABELS[:3], r"integers of shape \(6,\)"),
        (LOGITS, LABELS.float(), "class probabilities and must have the logits' shape"),
        (LOGITS, LABELS > 1, "got torch.bool"),
        (LOGITS, LABELS + 3, "lie in 0 to 3 for 4 classes, got 4 at position 1"),
        (LOGITS, LABELS - 1, "got -1 at position 0"),
        (LOGITS[0], LABELS[0], r"shape \(N, C\)"),
    ],
)
@pytest.mark.parametrize("name", ["LogitAdjusted", "Adaptive", "PairwiseMargin", "VS"])
def test_wrong_input_gives_one_clear_sentence(name, logits, labels, sentence):
    with pytest.raises(ValueError, match=sentence):
        MAKE[name](PRIOR)(logits, labels)


def test_ignore_index_with_soft_labels_is_refused():
    loss = losses.CrossEntropy(PRIOR, ignore_index=0)
    with pytest.raises(ValueError, match="applies to class indices"):
        loss(LOGITS, torch.softmax(LOGITS, dim=1))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"reduction": "avg"}, "reduction must be"),
        ({"weight": [1, 1]}, "weight has 2 classes but the prior has 4"),
        ({"weight": [1, 1, 1, -1]}, "none negative"),
    ],
)
@pytest.mark.parametrize("name", MAKE)
def test_wrong_options_are_refused(name, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        MAKE[name](PRIOR, **options)


@pytest.mark.parametrize("name", MAKE)
def test_a_class_without_samples_needs_an_explicit_word(name):
    with pytest.raises(ValueError, match="zeros='smooth'"):
        MAKE[name]([5, 3, 2, 0])
    with pytest.raises(ValueError, match="the train prior must give every class"):
        MAKE[name](Prior.of([5, 3, 2, 0], zeros="keep"))
    loss = MAKE[name](Prior.of([5, 3, 2, 0], zeros="smooth"))
    assert loss(LOGITS, LABELS).isfinite()


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: losses.ConsistentMargin(PRIOR, [1, 1, 1, 0]), "delta must be positive"),
        (lambda: losses.ConsistentMargin(PRIOR, [1, 1]), "delta has 2 classes"),
        (lambda: losses.PairwiseMargin(PRIOR, [[0, 1], [1, 0]]), r"shape \(4, 4\)"),
        (lambda: losses.PairwiseMargin(PRIOR, torch.eye(4), weights=[1]), "weights have 1"),
        (lambda: losses.Equalized(PRIOR, threshold=0.1, drop_rate=2), "probability"),
        (lambda: losses.LabelAwareSmoothing(PRIOR, head=1.5), r"in \[0, 1\)"),
        (lambda: losses.LabelAwareSmoothing(PRIOR, shape="cubic"), "linear"),
    ],
)
def test_wrong_parameters_are_refused(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32, torch.int64])
def test_labels_of_every_integer_type_are_taken(dtype):
    loss = losses.LogitAdjusted(PRIOR)
    assert_close(loss(LOGITS, LABELS.to(dtype)), loss(LOGITS, LABELS))


@pytest.mark.parametrize("name", MAKE)
def test_the_loss_of_halves_is_float32_so_that_it_cannot_overflow(name):
    logits = (1000 * LOGITS).half()
    value = MAKE[name](PRIOR, reduction="sum").eval()(logits, LABELS)
    assert value.dtype == torch.float32
    assert value.isfinite()


@pytest.mark.parametrize("name", MAKE)
def test_autocast_gives_a_float32_loss(name):
    loss = MAKE[name](PRIOR).eval()
    with torch.autocast("cpu", torch.bfloat16):
        value = loss(LOGITS.bfloat16(), LABELS)
    assert_close(value, loss(LOGITS.bfloat16().float(), LABELS))


@pytest.mark.parametrize("name", MAKE)
def test_compiled_equals_eager(name):
    compiled_equals_eager(name, backend="aot_eager")


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKE)
def test_compiled_by_inductor_equals_eager(name):
    compiled_equals_eager(name, backend="inductor")


def compiled_equals_eager(name, backend):
    torch.compiler.reset()
    loss = MAKE[name](PRIOR, weight=[1.0, 2.0, 3.0, 4.0]).eval()
    compiled = torch.compile(loss, backend=backend, fullgraph=True)
    for labels in (LABELS, torch.softmax(LOGITS.flip(0), dim=1)):
        ours, theirs = (LOGITS.clone().requires_grad_() for _ in range(2))
        expected, got = loss(ours, labels), compiled(theirs, labels)
        assert_close(got, expected)
        got.backward()
        expected.backward()
        assert_close(theirs.grad, ours.grad)


@pytest.mark.parametrize("name", MAKE)
def test_buffers_move_with_the_module_and_are_saved(name):
    loss = MAKE[name](PRIOR)
    assert not list(loss.parameters())
    assert all(value.dtype in (torch.float64, torch.bool) for value in loss.state_dict().values())
    assert {b.device.type for b in loss.to("meta").buffers()} <= {"meta"}


def test_a_batch_in_which_everything_is_ignored_is_nan_as_in_torch():
    loss = losses.LogitAdjusted(PRIOR)
    assert loss(LOGITS, torch.full((6,), -100)).isnan()
    assert losses.LogitAdjusted(PRIOR, reduction="sum")(LOGITS, torch.full((6,), -100)) == 0


def test_backward_can_run_twice_on_one_graph():
    logits = LOGITS.clone().requires_grad_()
    value = losses.LogitAdjusted(PRIOR)(logits, LABELS)
    (first,) = torch.autograd.grad(value, logits, retain_graph=True)
    (second,) = torch.autograd.grad(value, logits)
    assert_close(first, second, rtol=0, atol=0)


def test_gradients_add_up_over_two_passes_through_one_graph():
    logits = LOGITS.clone().requires_grad_()
    value = losses.LogitAdjusted(PRIOR)(logits, LABELS)
    value.backward(retain_graph=True)
    once = logits.grad.clone()
    value.backward()
    assert_close(logits.grad, 2 * once)


def test_a_scaled_loss_has_a_scaled_gradient():
    for factor in (0.25, 1024.0):  # gradient accumulation, loss scaling
        logits, again = (LOGITS.clone().requires_grad_() for _ in range(2))
        (factor * losses.LogitAdjusted(PRIOR)(logits, LABELS)).backward()
        losses.LogitAdjusted(PRIOR)(again, LABELS).backward()
        assert_close(logits.grad, factor * again.grad)


def test_the_logits_are_left_as_they_were():
    logits = LOGITS.clone()
    for name in MAKE:
        MAKE[name](PRIOR)(logits, LABELS)
    assert torch.equal(logits, LOGITS)


def test_printing_a_loss_says_what_it_carries():
    assert "carried=Prior([0.25, 0.25, 0.25, 0.25])" in repr(losses.LogitAdjusted(PRIOR))


def test_no_margin_loss_of_8142_classes_holds_a_square_matrix():
    counts = torch.arange(8142, 0, -1)
    for name in ("LogitAdjusted", "Adaptive", "Equalized", "TwoScale", "VS"):
        assert sum(b.numel() for b in MAKE[name](counts).buffers()) <= 4 * 8142
