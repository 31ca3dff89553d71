"""Labels, counts and many/medium/few."""

import numpy as np
import pytest
import torch

from longtail import GroupEdges, class_counts, shot_groups
from longtail.core.labels import check_counts, check_num_classes


def test_counts_come_back_as_the_kind_of_the_labels():
    assert isinstance(class_counts(np.array([0, 1]), 3), np.ndarray)
    assert isinstance(class_counts(torch.tensor([0, 1]), 3), torch.Tensor)


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        (np.array([0.0, 1.0]), "integer type, got float64"),
        (np.array([True, False]), "integer type, got bool"),
        (np.array([0, 3]), r"0 to 2.*got 3 at position 1"),
        (np.array([0, -1]), "got -1 at position 1"),
        (np.array([[0, 1]]), r"one dimension.*\(1, 2\)"),
    ],
)
def test_wrong_labels_give_one_clear_sentence(labels, sentence):
    with pytest.raises(ValueError, match=sentence):
        class_counts(labels, 3)


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        ([1, -2], "none negative"),
        ([1.5, 2], "whole numbers"),
        ([[1]], "one number a class"),
        ([2**53 + 1, 1], r"below 2\*\*53"),
        ([2**63, 1], r"below 2\*\*53"),
        ([1e300, 1], r"below 2\*\*53"),
    ],
)
def test_wrong_counts_give_one_clear_sentence(counts, sentence):
    with pytest.raises(ValueError, match=sentence):
        check_counts(counts)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int16, np.int64])
@pytest.mark.parametrize("num_classes", [200, 256, 300])
def test_labels_of_every_integer_type_are_taken(dtype, num_classes):
    assert int(class_counts(np.array([5, 199], dtype), num_classes)[199]) == 1


def test_no_labels_count_as_none_of_every_class():
    assert class_counts([], 3).tolist() == [0, 0, 0]


PAPERS = "many=100,few=20,inclusive"  # of LA, ELM and NCM
EDGES = [101, 100, 99, 21, 20, 19]


@pytest.mark.parametrize(
    ("edges", "many", "few"),
    [
        (None, 1, 1),
        ("inclusive", 2, 1),
        ("few_inclusive", 1, 2),
        (GroupEdges(many=50, few=21), 3, 2),
    ],
)
def test_thresholds_and_their_inclusivity_are_parameters(edges, many, few):
    groups = shot_groups(EDGES, edges)
    assert int(groups["many"].sum()) == many
    assert int(groups["few"].sum()) == few


def test_every_class_is_in_exactly_one_group():
    groups = shot_groups(np.arange(300))
    assert isinstance(groups["many"], np.ndarray)
    np.testing.assert_array_equal(sum(mask.astype(int) for mask in groups.values()), 1)


@pytest.mark.parametrize(
    ("edges", "ratio", "sizes"),
    [
        (None, 200, (30, 31, 39)),
        (PAPERS, 200, (31, 30, 39)),
        (PAPERS, 100, (35, 35, 30)),
    ],
)
def test_cifar100_lt_has_the_groups_that_papers_disagree_about(edges, ratio, sizes):
    counts = [int(500 * ratio ** (-i / 99)) for i in range(100)]
    groups = shot_groups(counts, edges)
    assert tuple(int(mask.sum()) for mask in groups.values()) == sizes


@pytest.mark.parametrize(
    "edges", [GroupEdges(), GroupEdges.of(PAPERS), GroupEdges(7, 3, few_inclusive=True)]
)
def test_edges_are_what_their_text_says(edges):
    assert GroupEdges.of(str(edges)) == edges == GroupEdges.of(edges)
    assert GroupEdges.of(f" {edges}".replace(",", " , ")) == edges


@pytest.mark.parametrize(
    "text", ["", "many", "many=", "many=-5", "few=1.5", "most=5", "inclusive=1", "few=3,few=4", ","]
)
def test_a_text_that_says_no_edges_is_refused_with_an_example(text):
    with pytest.raises(ValueError, match="many=100,few=20,inclusive"):
        GroupEdges.of(text)


@pytest.mark.parametrize("edges", [(1.5, 1), (10, -1), (True, 0)])
def test_edges_are_numbers_of_samples(edges):
    with pytest.raises(ValueError, match="number of samples"):
        GroupEdges(*edges)


def test_overlapping_groups_are_refused():
    with pytest.raises(ValueError, match="must not overlap"):
        shot_groups([1], "many=10,few=20")
    with pytest.raises(ValueError, match="must not overlap"):
        GroupEdges(20, 20, many_inclusive=True, few_inclusive=True)


def test_classes_may_have_gaps_but_must_be_worth_a_table():
    assert check_num_classes(8142, 5) == 8142
    assert check_num_classes(3_000_000, 2_000_000) == 3_000_000
    with pytest.raises(ValueError, match=r"1000000 classes.*got 10000000001"):
        check_num_classes(10**10 + 1, 5)
