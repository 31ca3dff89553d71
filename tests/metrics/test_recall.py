"""Recalls, and the accuracies that are means of them."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from longtail.core import Prior, shot_groups
from longtail.metrics import (
    accuracy,
    accuracy_under,
    balanced_accuracy,
    balanced_error,
    geometric_mean,
    group_accuracies,
    recalls,
    worst_class,
)

NAN = float("nan")
pairs = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=40)


def having(recalls):
    """Sums of classes with these recalls; NaN for a class without samples."""
    values = np.array(recalls, dtype=float)
    return SimpleNamespace(samples=1.0 - np.isnan(values), right=np.nan_to_num(values))


def columns(drawn: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    return [prediction for prediction, _ in drawn], [label for _, label in drawn]


@given(pairs)
def test_recalls_are_what_a_loop_over_samples_counts(drawn):
    expected = []
    for one_class in range(5):
        right = [prediction == label for prediction, label in drawn if label == one_class]
        expected.append(sum(right) / len(right) if right else NAN)
    np.testing.assert_array_equal(recalls(*columns(drawn), 5), expected)


@given(pairs)
def test_accuracy_is_accuracy_under_the_test_frequencies(drawn):
    predictions, labels = columns(drawn)
    share = sum(prediction == label for prediction, label in drawn) / len(drawn)
    test_prior = Prior.from_labels(labels, 5, zeros="keep")
    assert accuracy(predictions, labels, 5) == pytest.approx(share)
    assert accuracy_under(predictions, labels, 5, target=test_prior) == pytest.approx(share)


@given(pairs, st.permutations(range(5)))
def test_renaming_the_classes_changes_no_mean(drawn, names):
    plain = (*columns(drawn), 5)
    renamed = (*columns([(names[p], names[y]) for p, y in drawn]), 5)
    target = torch.tensor([5.0, 4.0, 3.0, 2.0, 1.0])
    moved = torch.empty(5)
    moved[torch.tensor(names)] = target
    under = accuracy_under(*plain, target=target)
    assert accuracy_under(*renamed, target=moved) == pytest.approx(under)
    for metric in (balanced_accuracy, geometric_mean, worst_class):
        assert metric(*renamed) == pytest.approx(metric(*plain))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_the_worst_class_bounds_every_accuracy_from_below(values):
    worst = worst_class(having(values))
    assert worst == min(values)
    assert balanced_accuracy(having(values)) >= worst - 1e-12
    target = np.arange(1, len(values) + 1)
    assert accuracy_under(having(values), target=target) >= worst - 1e-12


def test_numpy_in_numpy_out():
    result = recalls(np.array([0, 1]), np.array([0, 0]), 2)
    assert isinstance(result, np.ndarray)
    assert result.dtype == np.float64
    assert isinstance(recalls(torch.tensor([0, 1]), torch.tensor([0, 0]), 2), torch.Tensor)
    assert type(balanced_accuracy(np.array([0, 1]), np.array([0, 0]))) is float


def test_a_class_without_samples_is_left_out_of_every_mean():
    seen = having([0.9, NAN, 0.4])
    assert balanced_accuracy(seen) == pytest.approx(0.65)
    assert balanced_error(seen) == pytest.approx(0.35)
    assert geometric_mean(seen) == pytest.approx(0.6)
    assert worst_class(seen) == 0.4
    assert accuracy_under(seen, target=[1, 17, 3]) == pytest.approx((0.9 + 3 * 0.4) / 4)


def test_perfect_predictions_give_exactly_one_and_wrong_ones_exactly_zero():
    labels = [0, 0, 0, 1, 2, 2]
    right, wrong = (labels, labels, 3), ([1, 1, 1, 2, 0, 0], labels, 3)
    assert balanced_accuracy(*right) == worst_class(*right) == geometric_mean(*right) == 1.0
    assert accuracy_under(*right, target=[7, 2, 4]) == 1.0
    assert balanced_error(*wrong) == 1.0
    assert worst_class(*wrong) == 0.0


def test_the_geometric_mean_replaces_only_zeros():
    assert geometric_mean(having([0.0, 0.5])) == pytest.approx(math.sqrt(0.001 * 0.5))
    assert geometric_mean(having([0.0, 0.5]), epsilon=0.01) == pytest.approx(math.sqrt(0.01 * 0.5))
    assert geometric_mean(having([0.0, 0.5]), epsilon=0) == 0.0
    assert geometric_mean(having([0.0001, 1.0])) == pytest.approx(0.01)
    with pytest.raises(ValueError, match="epsilon must"):
        geometric_mean(having([0.5]), epsilon=-1)


def test_group_accuracies_are_means_within_the_group():
    groups = shot_groups([500, 200, 50, 5, 1])
    means = group_accuracies(having([0.9, 0.7, 0.5, NAN, 0.2]), groups=groups)
    assert means == {
        "many": pytest.approx(0.8),
        "medium": pytest.approx(0.5),
        "few": pytest.approx(0.2),
    }


def test_a_group_without_classes_or_without_samples_is_none_and_not_zero():
    groups = {"empty": np.zeros(3, bool), "absent": np.array([False, True, False])}
    assert group_accuracies(having([0.0, NAN, 1.0]), groups=groups) == {
        "empty": None,
        "absent": None,
    }
    wrong = {"wrong": np.array([True, True, False])}
    assert group_accuracies(having([0.0, NAN, 1.0]), groups=wrong) == {"wrong": 0.0}


def test_a_target_on_absent_classes_only_is_refused():
    target = Prior.of([0, 1, 0], zeros="keep")
    with pytest.raises(ValueError, match="hold all the weight"):
        accuracy_under(having([0.5, NAN, 0.5]), target=target)


@pytest.mark.parametrize("metric", [balanced_accuracy, geometric_mean, worst_class])
def test_no_samples_at_all_is_refused(metric):
    with pytest.raises(ValueError, match="samples"):
        metric(having([NAN, NAN]))


def test_numbers_that_are_no_classes_are_refused():
    with pytest.raises(ValueError, match="the predictions are no classes"):
        balanced_accuracy([0.5, 0.25], [0, 1])
    with pytest.raises(ValueError, match="got no labels"):
        balanced_accuracy([0, 1])


def test_the_target_must_have_the_same_classes():
    with pytest.raises(ValueError, match=r"2 classes.*target prior has 3"):
        accuracy_under(having([0.5, 0.5]), target=[1, 1, 1])


@pytest.mark.parametrize("mask", [[1, 0], [True], [0.5, 0.5]])
def test_a_group_must_be_a_boolean_mask_over_the_classes(mask):
    with pytest.raises(ValueError, match=r"'head'.*boolean.*2 classes"):
        group_accuracies(having([0.5, 0.5]), groups={"head": mask})


def test_wrong_predictions_and_labels_are_told_apart():
    with pytest.raises(ValueError, match=r"^the predictions are no classes"):
        recalls([0, 3], [0, 1], 3)
    with pytest.raises(ValueError, match=r"^labels must lie"):
        recalls([0, 1], [0, 3], 3)
    with pytest.raises(ValueError, match="2 predictions but 1 labels"):
        recalls([0, 1], [0], 3)
