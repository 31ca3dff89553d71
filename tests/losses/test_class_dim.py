"""The axis of the classes: axis 1 as in torch, or the one that class_dim names."""

import warnings

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from longtail import losses
from loss_examples import MAKE

COUNTS = [70, 20, 8, 2]
GENERATOR = torch.Generator().manual_seed(0)
LOGITS = torch.randn(3, 4, 4, generator=GENERATOR)  # (N, T, C) with T = C
LABELS = torch.randint(0, 4, (3, 4), generator=GENERATOR)
FEATURES = torch.randn(3, 4, 5, generator=GENERATOR)


def test_tokens_before_classes_are_read_by_class_dim():
    last = losses.CrossEntropy(COUNTS, class_dim=-1)
    assert_close(last(LOGITS, LABELS), F.cross_entropy(LOGITS.flatten(0, 1), LABELS.flatten()))
    assert_close(losses.CrossEntropy(COUNTS, class_dim=2)(LOGITS, LABELS), last(LOGITS, LABELS))
    second = losses.CrossEntropy(COUNTS, class_dim=1)
    assert_close(second(LOGITS, LABELS), F.cross_entropy(LOGITS, LABELS))


@pytest.mark.parametrize("name", MAKE)
def test_where_both_axes_fit_a_loss_warns_once(name):
    loss = MAKE[name](COUNTS).eval()
    rows = torch.randn(3, 3, 4, generator=torch.Generator().manual_seed(1))  # (N, D, T)
    features = rows if loss.needs_features else None
    with pytest.warns(UserWarning, match="class_dim=-1"):
        loss(LOGITS, LABELS, features=features)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loss(LOGITS, LABELS, features=features)
        MAKE[name](COUNTS, class_dim=1).eval()(LOGITS, LABELS, features=features)


def test_soft_labels_that_fit_both_ways_warn_too():
    soft = torch.softmax(LOGITS, dim=-1)
    with pytest.warns(UserWarning, match="axis 1 is taken"):
        losses.CrossEntropy(COUNTS)(LOGITS, soft)
    last = losses.CrossEntropy(COUNTS, class_dim=-1)
    assert_close(last(LOGITS, soft), F.cross_entropy(LOGITS.flatten(0, 1), soft.flatten(0, 1)))


def test_a_term_on_features_warns_where_both_axes_fit():
    term = losses.Pull(COUNTS)
    rows = torch.randn(3, 4, 4, generator=torch.Generator().manual_seed(1))
    with pytest.warns(UserWarning, match="axis 1"):
        term(rows, LABELS)


@pytest.mark.parametrize("shape", [(3, 4), (3, 4, 5), (3, 4, 4, 5)])
def test_where_one_axis_fits_there_is_no_warning(shape):
    logits = torch.zeros(shape)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        losses.CrossEntropy(COUNTS)(logits, torch.zeros(shape[:1] + shape[2:], dtype=torch.long))


def test_ignored_tokens_and_reduction_follow_the_axis():
    labels = LABELS.masked_fill(LABELS == 0, -100)
    each = losses.LogitAdjusted(COUNTS, class_dim=-1, reduction="none")(LOGITS, labels)
    assert each.shape == labels.shape
    assert not each[labels == -100].any()
    flat = losses.LogitAdjusted(COUNTS)(LOGITS.flatten(0, 1), labels.flatten())
    assert_close(losses.LogitAdjusted(COUNTS, class_dim=-1)(LOGITS, labels), flat)


def test_features_have_their_numbers_on_the_same_axis():
    got = losses.ELM(COUNTS, class_dim=-1)(LOGITS, LABELS, features=FEATURES)
    flat = losses.ELM(COUNTS)(LOGITS.flatten(0, 1), LABELS.flatten(), FEATURES.flatten(0, 1))
    assert_close(got, flat)


@pytest.mark.parametrize("class_dim", [1, -1])
def test_compiled_equals_eager_on_either_axis(class_dim):
    torch.compiler.reset()
    loss = losses.LogitAdjusted(COUNTS, class_dim=class_dim)
    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
    assert_close(compiled(LOGITS, LABELS), loss(LOGITS, LABELS))


def test_a_compiled_loss_warns_as_it_is_traced():
    torch.compiler.reset()
    loss = losses.LogitAdjusted(COUNTS)
    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
    with pytest.warns(UserWarning, match="axis 1 is taken") as caught:
        values = [compiled(LOGITS, LABELS) for _ in range(3)]
    assert len([each for each in caught if "axis 1 is taken" in str(each.message)]) == 1
    assert_close(values[2], losses.LogitAdjusted(COUNTS, class_dim=1)(LOGITS, LABELS))


@pytest.mark.parametrize(
    ("options", "logits", "sentence"),
    [
        ({}, torch.zeros(3, 7, 4), r"4 classes on axis 1.*class_dim=-1"),
        ({"class_dim": -1}, torch.zeros(3, 4, 7), "4 classes on axis -1"),
        ({"class_dim": 3}, torch.zeros(3, 4, 7), "class_dim=3 names no axis"),
    ],
)
def test_classes_that_are_not_there_are_named_with_the_way_out(options, logits, sentence):
    with pytest.raises(ValueError, match=sentence):
        losses.CrossEntropy(COUNTS, **options)(logits, torch.zeros(3, 7, dtype=torch.long))


@pytest.mark.parametrize("wrong", [True, 1.5, "last"])
def test_an_axis_is_a_whole_number(wrong):
    with pytest.raises(ValueError, match=r"class_dim.*axis"):
        losses.CrossEntropy(COUNTS, class_dim=wrong)
