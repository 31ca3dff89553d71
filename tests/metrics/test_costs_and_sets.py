"""What decisions cost, and how good sets are, against loops over samples."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail import Scores
from longtail.metrics import class_coverage, cost, evaluate, evaluate_sets, recalls
from longtail.stats import share_interval

LABELS = np.array([0, 0, 0, 0, 1, 1, 2])
LOGITS = np.random.default_rng(0).normal(size=(7, 3)) + 2 * np.eye(3)[LABELS]
SCORES = Scores(LOGITS, LABELS, carried=[4, 2, 1])
MATRIX = np.array([[0.0, 1.0, 2.0], [3.0, 0.5, 4.0], [5.0, 6.0, 0.0]])


def mean_by_loops(terms, labels, target):
    """Σ_y t(y) · the mean of class y, over classes that have samples."""
    classes = sorted(set(labels.tolist()))
    shares = [target[y] for y in classes]
    means = [np.mean([t for t, y in zip(terms, labels, strict=True) if y == k]) for k in classes]
    return sum(s * m for s, m in zip(shares, means, strict=True)) / sum(shares)


@pytest.mark.parametrize("costs", [[1.0, 2.0, 5.0], MATRIX])
@pytest.mark.parametrize("abstain", [None, 0.4])
def test_a_cost_is_the_mean_of_what_each_decision_cost_weighted_to_the_target(costs, abstain):
    target = [0.2, 0.3, 0.5]
    decided = SCORES.decide(costs, target=target, abstain=abstain)
    matrix = MATRIX if np.ndim(costs) == 2 else np.array(costs)[:, None] * (1 - np.eye(3))
    each = [
        abstain if k < 0 else matrix[y, k] for y, k in zip(LABELS, decided.tolist(), strict=True)
    ]
    measured = cost(SCORES, costs=costs, target=target, abstain=abstain)
    assert measured.value == pytest.approx(mean_by_loops(each, LABELS, target))
    again = cost(decided, LABELS, costs=costs, target=target, abstain=abstain)
    assert again == measured
    values = evaluate(SCORES, target=target, costs=costs, abstain=abstain)
    assert values["cost"] == pytest.approx(measured.value)
    assert (values["cost_low"], values["cost_high"]) == (measured.low, measured.high)
    plain = cost(decided, LABELS, costs=costs, abstain=abstain)
    assert plain.value == pytest.approx(np.mean(each))


def test_equal_costs_of_one_cost_as_much_as_there_are_errors():
    values = evaluate(SCORES, costs=[1, 1, 1])
    assert values["cost"] == pytest.approx(1 - values["accuracy"])
    uniform = evaluate(SCORES, target=[1, 1, 1], costs=[1, 1, 1])
    assert uniform["cost"] == pytest.approx(1 - uniform["balanced_accuracy"])
    assert "cost" not in evaluate(SCORES)


def test_logits_are_decided_as_they_are():
    measured = cost(LOGITS, LABELS, costs=[1, 2, 5], target=[1, 1, 1])
    decided = SCORES.decide([1, 2, 5])
    assert measured == cost(decided, LABELS, costs=[1, 2, 5], target=[1, 1, 1])


def test_the_interval_of_a_cost_holds_it_in_95_of_100_draws():
    random, inside = np.random.default_rng(0), 0
    chances, costs, target = np.array([0.1, 0.4]), [1.0, 6.0], [1, 1]
    true = 0.5 * 0.1 * 1 + 0.5 * 0.4 * 6
    for _ in range(400):
        labels = np.repeat([0, 1], [300, 60])
        wrong = random.random(360) < chances[labels]
        measured = cost(np.where(wrong, 1 - labels, labels), labels, costs=costs, target=target)
        inside += measured.low <= true <= measured.high
    assert 0.92 <= inside / 400 <= 0.98


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([0, 1],), "no labels"),
        (([0, 1], [0]), "2 decisions but 1 labels"),
        (([0, -1], [0, 1]), "abstain"),
        (([0, 3], [0, 1]), "decisions must lie"),
        (([0.0, 1.0], [0, 1]), "class indices"),
    ],
)
def test_decisions_that_are_none_are_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        cost(*arguments, costs=[1, 1])


def test_not_deciding_has_no_cost_where_nothing_has():
    with pytest.raises(ValueError, match="give the other costs"):
        evaluate(SCORES, abstain=0.5)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_measures_of_sets_are_those_by_loops(seed, with_target):
    random = np.random.default_rng(seed)
    labels = random.integers(0, 4, 30)
    labels[:4] = np.arange(4)
    sets = random.random((30, 4)) < random.random()
    target = [0.1, 0.2, 0.3, 0.4] if with_target else None
    groups = {"these": [True, True, False, False], "none": [False] * 4}
    found = evaluate_sets(sets, labels, target, groups=groups)
    held = [bool(row[y]) for row, y in zip(sets, labels, strict=True)]
    sizes = [sum(row) for row in sets.tolist()]
    usual = (np.bincount(labels) / 30).tolist()
    weights = usual if target is None else target
    assert found["coverage"].value == pytest.approx(np.mean(held))
    assert found["macro_coverage"].value == pytest.approx(mean_by_loops(held, labels, [1] * 4))
    assert ("coverage_under_target" in found) == with_target
    if with_target:
        under = mean_by_loops(held, labels, target)
        assert found["coverage_under_target"].value == pytest.approx(under)
    assert found["size"].value == pytest.approx(mean_by_loops(sizes, labels, weights))
    for name, number in (("empty", 0), ("full", 4)):
        expected = mean_by_loops([size == number for size in sizes], labels, weights)
        assert found[name].value == pytest.approx(expected)
    these = [(h, y) for h, y in zip(held, labels, strict=True) if y < 2]
    alike = mean_by_loops([h for h, _ in these], np.array([y for _, y in these]), [1] * 4)
    assert found["these"].value == pytest.approx(alike)
    assert found["none"].value is None
    for measured in found.values():
        assert measured.value is None or measured.low <= measured.value <= measured.high


def test_sets_of_the_most_likely_class_are_covered_as_often_as_it_is_right():
    top = np.eye(3, dtype=bool)[SCORES.predict()]
    np.testing.assert_allclose(class_coverage(top, LABELS), recalls(SCORES))
    found = evaluate_sets(top, LABELS)
    assert found["size"].value == 1
    right = np.array([(SCORES.predict() == LABELS)[y == LABELS].sum() for y in range(3)])
    ends = share_interval(right.astype(float), np.array([4.0, 2, 1]), np.array([4, 2, 1]) / 7)
    assert (found["coverage"].low, found["coverage"].high) == pytest.approx(ends)


def test_class_coverage_comes_back_in_the_kind_of_the_sets():
    sets = torch.tensor([[True, False, False], [True, True, False]])
    got = class_coverage(sets, [0, 1])
    assert isinstance(got, torch.Tensor)
    assert got[:2].tolist() == [1.0, 1.0]
    assert got[2].isnan()


@pytest.mark.parametrize(
    ("sets", "labels", "words"),
    [
        ([[0.2, 0.8]], [1], "booleans"),
        ([True, False], [1, 0], "shape"),
        ([[True, False]], [0, 1], "1 sets but 2 labels"),
        ([[True, False]], [2], "labels must lie"),
    ],
)
def test_sets_that_are_none_are_refused(sets, labels, words):
    with pytest.raises(ValueError, match=words):
        evaluate_sets(sets, labels)
