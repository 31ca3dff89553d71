"""Subsets: the published draws bit for bit, the published sizes, and no class short of samples."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from longtail.data import (
    exponential_counts,
    exponential_subset,
    long_tailed_subset,
    shifted_subset,
)
from longtail.data.subsets import capped_subset

SHIFTED_SIZES = {
    "CIFAR-100": (100, 100, {50: 2_486, 25: 2_956, 10: 3_876, 5: 4_932, 2: 7_166}),
    "ImageNet-LT": (50, 1000, {50: 12_058, 25: 14_437, 10: 19_059, 5: 24_365, 2: 35_574}),
}
SHIFTS = [
    pytest.param(each, num_classes, ratio, size, id=f"{name} {ratio}")
    for name, (each, num_classes, sizes) in SHIFTED_SIZES.items()
    for ratio, size in sizes.items()
]


def mixed_labels(each, num_classes):
    return np.random.RandomState(7).permutation(np.repeat(np.arange(num_classes), each))


def published_builder(targets, counts, seed):
    """The builder of the published CIFAR-LT code, written out."""
    np.random.seed(seed)
    selected = []
    for the_class, the_img_num in zip(np.unique(targets), counts, strict=True):
        idx = np.where(targets == the_class)[0]
        np.random.shuffle(idx)
        selected.append(idx[:the_img_num])
    return np.concatenate(selected)


@pytest.mark.parametrize("seed", [0, 1])
def test_long_tailed_subset_is_the_published_builder_bit_for_bit(seed):
    labels, counts = mixed_labels(500, 10), exponential_counts(500, 10, 100)
    before = np.random.get_state()
    expected = published_builder(labels, counts, seed)
    np.random.set_state(before)
    assert np.array_equal(long_tailed_subset(labels, counts, seed), expected)


def test_long_tailed_subset_starts_from_seed_zero():
    labels = mixed_labels(20, 3)
    assert np.array_equal(
        long_tailed_subset(labels, [9, 3, 1]), long_tailed_subset(labels, [9, 3, 1], seed=0)
    )
    assert not np.array_equal(
        long_tailed_subset(labels, [9, 3, 1]), long_tailed_subset(labels, [9, 3, 1], seed=1)
    )


def test_long_tailed_subset_leaves_the_global_stream_and_its_arguments_alone():
    labels, counts = mixed_labels(20, 3), np.array([9, 3, 1])
    given_labels, given_counts = labels.copy(), counts.copy()
    np.random.seed(3)
    expected = np.random.random()
    np.random.seed(3)
    long_tailed_subset(labels, counts)
    assert np.random.random() == expected
    assert np.array_equal(labels, given_labels)
    assert np.array_equal(counts, given_counts)


@given(data=st.data(), num_classes=st.integers(1, 8), seed=st.integers(0, 2**32 - 1))
def test_long_tailed_subset_has_the_counts_class_by_class_and_no_sample_twice(
    data, num_classes, seed
):
    available = data.draw(st.lists(st.integers(0, 9), min_size=num_classes, max_size=num_classes))
    counts = [data.draw(st.integers(0, number)) for number in available]
    labels = np.random.RandomState(seed).permutation(np.repeat(np.arange(num_classes), available))
    kept = long_tailed_subset(labels, counts, seed)
    assert labels[kept].tolist() == np.repeat(np.arange(num_classes), counts).tolist()
    assert len(set(kept.tolist())) == sum(counts)


def test_exponential_subset_takes_no_more_than_there_are_and_the_largest_class_first():
    sizes = [3, 40, 9, 40]
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(4), sizes))
    kept = exponential_subset(labels, largest=20, imbalance_ratio=8, seed=1)
    # By size: classes 1, 3, 2, 0; the profile is 20, 10, 5, 2.5 rounded down.
    assert np.bincount(labels[kept]).tolist() == [2, 20, 5, 10]
    tight = exponential_subset(labels, largest=40, imbalance_ratio=2, seed=1)
    assert np.bincount(labels[tight]).tolist() == [3, 40, 9, 31]
    assert not np.array_equal(kept, exponential_subset(labels, 20, 8, seed=2))


def test_long_tailed_subset_names_the_class_that_is_too_small():
    with pytest.raises(ValueError, match=r"class 2.*4 samples.*5"):
        long_tailed_subset(mixed_labels(4, 3), [4, 4, 5])


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize(("each", "num_classes", "ratio", "size"), SHIFTS)
def test_shifted_subset_has_the_published_size(each, num_classes, ratio, size, direction):
    counts = np.random.RandomState(0).permutation(num_classes) + 1
    labels = mixed_labels(each, num_classes)
    assert len(shifted_subset(labels, counts, ratio, direction)) == size


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_shifted_subset_is_the_published_protocol_written_out(direction):
    labels, counts = mixed_labels(40, 6), [50, 7, 300, 7, 2, 90]
    ranks = [2, 3, 0, 4, 5, 1]  # classes 1 and 3 tie: the lower index first
    kept = []
    for label, rank in enumerate(ranks):
        step = rank if direction == "forward" else 5 - rank
        number = int(40 * (1 / 10) ** (step / 5))
        kept += [at for at, other in enumerate(labels) if other == label][:number]
    assert shifted_subset(labels, counts, 10, direction).tolist() == sorted(kept)


@given(
    available=st.lists(st.integers(5, 60), min_size=2, max_size=12),
    ratio=st.floats(1, 5),
    direction=st.sampled_from(["forward", "backward"]),
    seed=st.integers(0, 1000),
)
def test_shifted_subset_is_as_large_as_an_uneven_test_set_allows(available, ratio, direction, seed):
    num_classes = len(available)
    labels = np.random.RandomState(seed).permutation(np.repeat(np.arange(num_classes), available))
    counts = np.random.RandomState(seed).permutation(num_classes) + 1
    sizes = np.bincount(labels[shifted_subset(labels, counts, ratio, direction)])
    assert (sizes <= available).all()
    # Some class is used up, or the subset could have been larger.
    assert (sizes == available).any()
    by_rank = sizes[np.argsort(-counts)]
    assert (np.diff(by_rank if direction == "forward" else by_rank[::-1]) <= 0).all()
    assert sizes.max() / ratio - 1 < sizes.min() <= (sizes.max() + 1) / ratio


def test_shifted_subset_of_ratio_one_is_everything():
    assert shifted_subset(mixed_labels(3, 4), [4, 3, 2, 1], 1).tolist() == list(range(12))


def test_shifted_subset_of_one_class_is_everything():
    assert shifted_subset([0, 0, 0], [5], 50).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 1], [2, 1], 2, "sideways"), r"direction must be .* got 'sideways'"),
        (([0, 1], [2, 1], 0.02), r"got 0\.02; 0\.02 is written 50 here"),
        (([0, 2], [3, 2, 1], 2), r"class 1 has none"),
        (([0, 0, 1, 1], [2, 1], 50), r"leave the smallest with 0\.04"),
        (([0, 2], [2, 1], 2), r"labels must lie in 0 to 1"),
    ],
)
def test_shifted_subset_refuses_nonsense(arguments, message):
    with pytest.raises(ValueError, match=message):
        shifted_subset(*arguments)


@pytest.mark.parametrize(
    "subset",
    [lambda labels: long_tailed_subset(labels, [2, 1]), lambda y: shifted_subset(y, [2, 1], 2)],
    ids=["long_tailed", "shifted"],
)
def test_positions_come_back_as_the_kind_the_labels_came_in(subset):
    from_numpy = subset(np.array([0, 1, 0, 1]))
    from_torch = subset(torch.tensor([0, 1, 0, 1]))
    assert isinstance(from_numpy, np.ndarray)
    assert isinstance(from_torch, torch.Tensor)
    assert from_numpy.dtype == np.int64
    assert from_numpy.tolist() == from_torch.tolist() == subset([0, 1, 0, 1]).tolist()


@pytest.mark.parametrize(("most", "kept"), [(20, None), (13, [5, 5, 2, 1]), (2, [1, 1, 1, 1])])
def test_large_classes_give_up_samples_first_and_none_is_lost(most, kept):
    labels = np.repeat(np.arange(4), [9, 6, 2, 1])
    some = capped_subset(labels, 4, most)
    assert (some is None) == (kept is None)
    if some is not None:
        assert np.bincount(labels[some]).tolist() == kept
        assert (np.diff(some) > 0).all()
