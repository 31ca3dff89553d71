"""Decisions by costs: least in expectation by loops, a target where they are one a class."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from longtail import Prior, Scores, UnknownPriorError
from longtail.core.costs import Costs
from longtail.testing import ContractError, check_decisions

LOGITS = np.array([[2.0, 1.0, 0.0], [0.0, 0.2, 0.1], [1.0, 0.0, 3.0]])
CARRIED = [70, 20, 10]
SCORES = Scores(LOGITS, carried=CARRIED)


def least_by_loops(probs, matrix, abstain):
    """The decision of each row, from the definition."""
    size, decided = len(matrix), []
    for row in probs:
        expected = [sum(row[y] * matrix[y][k] for y in range(size)) for k in range(size)]
        best = min(range(size), key=expected.__getitem__)
        decided.append(-1 if abstain is not None and abstain < expected[best] else best)
    return decided


def full(costs):
    """A cost a class as a matrix."""
    return [[0.0 if k == y else c for k in range(len(costs))] for y, c in enumerate(costs)]


@settings(max_examples=60, deadline=None)
@given(
    logits=arrays(float, (5, 3), elements=st.floats(-8, 8)),
    matrix=arrays(float, (3, 3), elements=st.floats(0.1, 9)),
    abstain=st.none() | st.floats(0, 5),
    per_class=st.booleans(),
)
def test_decisions_are_those_of_least_expected_cost_by_loops(logits, matrix, abstain, per_class):
    scores = Scores(logits - 9.0, carried=CARRIED)
    costs = matrix[0] if per_class else matrix
    probs = scores.under([1, 1, 1]).probs()
    whole = np.array(full(matrix[0].tolist())) if per_class else matrix
    got = scores.decide(costs, target=[1, 1, 1], abstain=abstain)
    expected = np.column_stack([probs @ whole, np.full(5, np.inf if abstain is None else abstain)])
    # Where two are as good to rounding, either will do.
    np.testing.assert_allclose(expected[np.arange(5), got], expected.min(axis=1), rtol=1e-9)
    clear = np.partition(expected, 1, axis=1)[:, 1] - expected.min(axis=1) > 1e-9
    loops = np.array(least_by_loops(probs, whole, abstain))
    assert (got == loops)[clear].all()


def test_a_cost_a_class_is_a_target():
    costs, prior = [1.0, 4.0, 30.0], Prior.of(CARRIED)
    expected = SCORES.under(prior.reweighted(costs)).predict()
    np.testing.assert_array_equal(SCORES.decide(costs), expected)
    target = Prior.of([1, 2, 3])
    moved = SCORES.under(target.reweighted(costs)).predict()
    np.testing.assert_array_equal(SCORES.decide(costs, target=target), moved)


def test_equal_costs_decide_for_the_most_likely_class_whatever_is_carried():
    unknown = Scores(LOGITS)
    np.testing.assert_array_equal(unknown.decide([3, 3, 3]), unknown.predict())
    with pytest.raises(UnknownPriorError):
        unknown.decide([3, 3, 3], target=[1, 1, 1])


def test_what_a_right_decision_costs_counts_like_every_other_cost():
    even = Scores([[0.0, 0.1]])
    assert even.decide([[0, 1], [1, 0]]).tolist() == [1]
    assert even.decide([[0, 1], [1, 0.5]]).tolist() == [0]  # class 1 costs much even if it is right
    # A number added to a row, what a true class costs anyway, decides nothing.
    assert even.decide([[0, 1], [4, 3]]).tolist() == even.decide([[0, 1], [1, 0]]).tolist()


def test_nothing_is_decided_where_that_is_cheaper():
    scores = Scores(np.log([[0.9, 0.1], [0.6, 0.4]]))
    assert scores.decide([1, 1]).tolist() == [0, 0]
    assert scores.decide([1, 1], abstain=0.3).tolist() == [0, -1]
    assert scores.decide([[0, 1], [1, 0]], abstain=0.3).tolist() == [0, -1]
    assert scores.decide([1, 1], abstain=0).tolist() == [-1, -1]
    assert scores.decide([1, 1], abstain=9).tolist() == [0, 0]


def test_a_class_that_costs_nothing_is_decided_on_only_where_no_other_can_be():
    scores = Scores([[9.0, 0.0, 0.0], [5.0, -np.inf, -np.inf]])
    assert scores.decide([0, 1, 1]).tolist()[0] == 1
    assert scores.decide([0, 1, 1]).tolist()[1] in (0, 1, 2)  # all cost the same


def test_one_class_is_always_decided_on():
    assert Scores([[1.0], [2.0]]).decide([3]).tolist() == [0, 0]


@pytest.mark.parametrize("costs", [[1, 4, 30], np.array(full([1.0, 4.0, 30.0]))])
@pytest.mark.parametrize("abstain", [None, 0.7])
def test_torch_stays_torch_and_decides_as_numpy(costs, abstain):
    expected = SCORES.decide(costs, abstain=abstain)
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        rows = torch.tensor(LOGITS, dtype=dtype)
        got = Scores(rows, carried=CARRIED).decide(costs, abstain=abstain)
        assert isinstance(got, torch.Tensor)
        assert not got.is_floating_point()
        assert got.tolist() == expected.tolist()


def test_costs_may_be_given_by_name_and_a_table_must_have_the_order_of_the_classes():
    scores = Scores(LOGITS, carried=CARRIED, classes=["cat", "dog", "fox"])
    by_name = scores.decide({"fox": 30, "cat": 1, "dog": 4})
    np.testing.assert_array_equal(by_name, scores.decide([1, 4, 30]))

    class Frame:
        columns = ("fox", "dog", "cat")

        def to_numpy(self):
            return np.ones((3, 3))

    with pytest.raises(ValueError, match="in their order"):
        scores.decide(Frame())
    with pytest.raises(ValueError, match="name each class once"):
        scores.decide({"fox": 30, "cat": 1})
    with pytest.raises(ValueError, match="do not name"):
        SCORES.decide({"fox": 30, "cat": 1, "dog": 4})


@pytest.mark.parametrize(
    ("costs", "words"),
    [
        ([1, 2], "3 classes.*shape"),
        (np.ones((3, 2)), "shape"),
        ([1, -1, 2], "none negative, got -1 for class 1"),
        ([[0, 1, 1], [1, 0, -2], [1, 1, 0]], "true class 1 taken for 2"),
        ([1, np.nan, 2], "finite"),
        ([1, np.inf, 2], "finite"),
        ([0, 0, 0], "not be all zero"),
        (["a", "b", "c"], "array of numbers"),
    ],
)
def test_costs_that_are_none_are_refused(costs, words):
    with pytest.raises(ValueError, match=words):
        SCORES.decide(costs)


@pytest.mark.parametrize("abstain", [-1, np.nan, np.inf])
def test_what_not_deciding_costs_must_be_a_cost(abstain):
    with pytest.raises(ValueError, match="abstain must be"):
        SCORES.decide([1, 1, 1], abstain=abstain)


def test_what_decisions_came_to_cost_is_the_entry_of_the_matrix():
    matrix = np.array([[0.5, 1.0], [7.0, 0.0]])
    labels, decided = np.array([0, 0, 1, 1]), np.array([0, 1, 0, -1])
    realised = Costs.of(matrix, 2).realised(labels, decided, abstain=0.25)
    assert realised.tolist() == [0.5, 1.0, 7.0, 0.25]
    assert Costs.of([2, 3], 2).realised(labels, decided, 0.25).tolist() == [0, 2, 3, 0.25]


def test_no_decision_is_better_in_worlds_that_are_known():
    check_decisions()
    with pytest.raises(ContractError, match="others"):
        check_decisions(lambda scores, costs, target, abstain: scores.under(target).predict())
