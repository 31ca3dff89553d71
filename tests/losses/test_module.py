"""Losses as modules: what they accept and refuse, precision, compilation, state."""

from functools import partial

import pytest
import torch
from torch.testing import assert_close

from longtail import Prior, heads, losses
from longtail.losses.kernel import for_autograd
from loss_examples import MAKE

PRIOR = Prior.of([70, 20, 8, 2])
LOGITS = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
LABELS = torch.tensor([0, 1, 2, 3, 0, 1])
FEATURES = torch.randn(6, 3, generator=torch.Generator().manual_seed(1))


def value_of(loss, logits, labels):
    return loss(logits, labels, features=FEATURES if loss.needs_features else None)


def takes_soft_labels(name):
    return MAKE[name](PRIOR).takes_soft_labels


@pytest.mark.parametrize(
    ("logits", "labels", "sentence"),
    [
        (LOGITS[:, :3], LABELS, "must have 4 classes on axis 1"),
        (LOGITS.long(), LABELS, r"logits.*floating"),
        (LOGITS, LABELS[:3], r"integers of shape \(6,\)"),
        (LOGITS, LABELS.float(), r"class probabilities.*shape"),
        (LOGITS, LABELS > 1, "got torch.bool"),
        (LOGITS, LABELS + 3, r"0 to 3.*got 4 at position 1"),
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
        ({"weight": [1, 1]}, r"weight.*each of 4 classes"),
        ({"weight": [1, 1, 1, -1]}, "none negative, got -1 for class 3"),
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
    with pytest.raises(ValueError, match=r"train prior.*every class"):
        MAKE[name](Prior.of([5, 3, 2, 0], zeros="keep"))
    loss = MAKE[name](Prior.of([5, 3, 2, 0], zeros="smooth"))
    assert value_of(loss, LOGITS, LABELS).isfinite()


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: losses.ConsistentMargin(PRIOR, [1, 1, 1, 0]), "delta must be positive"),
        (lambda: losses.ConsistentMargin(PRIOR, [1, 1]), r"delta.*one number for each"),
        (lambda: losses.ConsistentMargin(PRIOR, [[1], [1], [1], [1]]), r"got shape \(4, 1\)"),
        (lambda: losses.PairwiseMargin(PRIOR, [[0, 1], [1, 0]]), r"shape \(4, 4\)"),
        (
            lambda: losses.PairwiseMargin(PRIOR, torch.eye(4), weights=[1]),
            "weights must have one number",
        ),
        (lambda: losses.PairwiseMargin(PRIOR, torch.eye(4), weights=[-1] * 4), "be positive"),
        (lambda: losses.PairwiseMargin(PRIOR, torch.eye(4) * torch.nan), "must be finite"),
        (lambda: losses.LogitAdjusted(PRIOR, tau=torch.nan), r"tau.*finite"),
        (lambda: losses.VS(PRIOR, gamma=torch.inf), r"gamma.*finite"),
        (lambda: losses.TwoScale(PRIOR, tau_pos=torch.nan), "tau_pos must be"),
        (lambda: losses.Equalized(PRIOR, tau=2.0, threshold=0.1), "tau belongs to"),
        (lambda: losses.Equalized(PRIOR, drop_rate=0.5), "drop_rate to the one"),
        (lambda: losses.Equalized(PRIOR, threshold=0.1, drop_rate=2), "drop_rate must be"),
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
    value = value_of(MAKE[name](PRIOR, reduction="sum").eval(), logits, LABELS)
    assert value.dtype == torch.float32
    assert value.isfinite()


@pytest.mark.parametrize("name", MAKE)
def test_autocast_gives_a_float32_loss(name):
    loss = MAKE[name](PRIOR).eval()
    with torch.autocast("cpu", torch.bfloat16):
        value = value_of(loss, LOGITS.bfloat16(), LABELS)
    assert_close(value, value_of(loss, LOGITS.bfloat16().float(), LABELS))


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
    # Which rows are of one class is not known to a compiler: those losses break the graph.
    compiled = torch.compile(loss, backend=backend, fullgraph=loss.takes_soft_labels)
    soft = torch.softmax(LOGITS.flip(0), dim=1)
    for labels in (LABELS, soft) if loss.takes_soft_labels else (LABELS,):
        ours, theirs = (LOGITS.clone().requires_grad_() for _ in range(2))
        expected, got = value_of(loss, ours, labels), value_of(compiled, theirs, labels)
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
        value_of(MAKE[name](PRIOR).eval(), logits, LABELS)
    assert torch.equal(logits, LOGITS)


def test_printing_a_loss_says_what_it_carries():
    assert "carried=Prior([0.25, 0.25, 0.25, 0.25])" in repr(losses.LogitAdjusted(PRIOR))


def test_no_margin_loss_of_8142_classes_holds_a_square_matrix():
    counts = torch.arange(8142, 0, -1)
    for name in ("LogitAdjusted", "Adaptive", "Equalized", "TwoScale", "VS"):
        assert sum(b.numel() for b in MAKE[name](counts).buffers()) <= 4 * 8142


@pytest.mark.parametrize("name", MAKE)
def test_loading_a_state_writes_into_nothing_that_the_user_holds(name):
    prior, weight = Prior.of([70, 20, 8, 2]), torch.tensor([1.0, 2.0, 3.0, 4.0]).double()
    loss = MAKE[name](prior, weight=weight)
    loss.load_state_dict(MAKE[name]([2, 8, 20, 70], weight=[9, 9, 9, 9]).state_dict())
    assert prior.is_close(Prior.of([70, 20, 8, 2]), 1e-15)
    assert weight.tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("name", ["CrossEntropy", "LogitAdjusted", "WeightedLogitAdjusted", "ELM"])
def test_a_state_can_be_loaded_into_a_loss_for_other_counts_even_ones_included(name):
    even, uneven = MAKE[name]([1, 1, 1, 1]).eval(), MAKE[name](PRIOR).eval()
    even.load_state_dict(uneven.state_dict())
    assert_close(value_of(even, LOGITS, LABELS), value_of(uneven, LOGITS, LABELS))
    even = MAKE[name]([1, 1, 1, 1]).eval()
    uneven.load_state_dict(even.state_dict())
    assert_close(value_of(uneven, LOGITS, LABELS), value_of(even, LOGITS, LABELS))


@pytest.mark.parametrize("name", ["CrossEntropy", "LogitAdjusted", "LADE", "ELM"])
def test_a_model_made_half_precision_leaves_the_constants_of_its_loss_exact(name):
    loss = MAKE[name](PRIOR)
    exact = {key: value.clone() for key, value in loss.state_dict().items()}
    torch.nn.ModuleList([loss]).half().bfloat16().float()
    for key, value in loss.state_dict().items():
        assert value.dtype == exact[key].dtype
        assert torch.equal(value, exact[key])


@pytest.mark.parametrize("weight", [None, [1.0, 2.0, 3.0, 4.0]])
def test_an_empty_batch_is_nan_in_a_mean_and_zero_in_a_sum_as_in_torch(weight):
    empty = LOGITS[:0], LABELS[:0]
    assert losses.LogitAdjusted(PRIOR, weight=weight)(*empty).isnan()
    assert losses.LogitAdjusted(PRIOR, weight=weight, reduction="sum")(*empty) == 0
    assert losses.LogitAdjusted(PRIOR, weight=weight, reduction="none")(*empty).shape == (0,)


def test_torch_func_sees_through_a_loss():
    loss = losses.LogitAdjusted(PRIOR)
    ours = LOGITS.clone().requires_grad_()
    (expected,) = torch.autograd.grad(loss(ours, LABELS), ours)
    assert_close(torch.func.grad(lambda z: loss(z, LABELS))(LOGITS), expected)
    each = torch.func.vmap(lambda z, y: loss(z.unsqueeze(0), y.unsqueeze(0)))(LOGITS, LABELS)
    assert_close(each, losses.LogitAdjusted(PRIOR, reduction="none")(LOGITS, LABELS))


def test_who_takes_a_gradient_may_change_it():
    logits = LOGITS.clone().requires_grad_()
    value = losses.LogitAdjusted(PRIOR)(logits, LABELS)
    (first,) = torch.autograd.grad(value, logits, retain_graph=True)
    kept = first.clone()
    first.zero_()
    assert_close(torch.autograd.grad(value, logits)[0], kept)


def test_logits_may_be_changed_in_place_before_backward():
    leaf = LOGITS.clone().requires_grad_()
    logits = leaf * 1
    value = losses.LogitAdjusted(PRIOR)(logits, LABELS)
    logits.detach().mul_(3)
    value.backward()
    again = LOGITS.clone().requires_grad_()
    losses.LogitAdjusted(PRIOR)(again, LABELS).backward()
    assert_close(leaf.grad, again.grad)


def test_a_second_derivative_is_scaled_by_what_comes_after_the_loss():
    logits = LOGITS.double().requires_grad_()
    loss = losses.LogitAdjusted(PRIOR)
    assert torch.autograd.gradgradcheck(lambda z: 3 * loss(z, LABELS) ** 2, logits)


def test_a_nan_in_one_sample_leaves_the_others_as_they_are():
    logits = torch.tensor([[200.0, 0.0], [torch.nan, 0.0]])
    each = losses.CrossEntropy([1, 1], reduction="none")(logits, torch.tensor([1, 0]))
    assert each[0].item() == pytest.approx(200.0)
    assert each[1].isnan()


def test_the_place_of_a_wrong_label_is_counted_among_all():
    with pytest.raises(ValueError, match="got 9 at position 3"):
        losses.LogitAdjusted(PRIOR)(LOGITS, torch.tensor([-100, -100, 0, 9, 0, 1]))


def test_numpy_is_refused_with_a_sentence():
    with pytest.raises(TypeError, match=r"torch tensors.*ndarray"):
        losses.LogitAdjusted(PRIOR)(LOGITS.numpy(), LABELS)


def test_the_estimated_offset_can_be_compiled_with_its_head_in_training():
    torch.compiler.reset()
    torch.manual_seed(0)
    eager, other = (heads.EstimatedOffset(3, 4) for _ in range(2))
    other.load_state_dict(eager.state_dict())
    for head, wrap in ((eager, lambda f: f), (other, partial(torch.compile, backend="aot_eager"))):
        loss = losses.EstimatedOffset(PRIOR, head)
        step = wrap(lambda x, head=head, loss=loss: loss(head(x), LABELS, features=x))
        for _ in range(2):
            step(FEATURES).backward()
    assert_close(other.weight.grad, eager.weight.grad)
    assert_close(other.centers, eager.centers)


def test_tensors_of_inference_mode_are_copied_for_autograd_and_others_are_not():
    with torch.inference_mode():
        made = torch.ones(2)
        assert not for_autograd(made).is_inference()
    plain = torch.ones(2)
    assert for_autograd(plain) is plain
