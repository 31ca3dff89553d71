"""Held-out parts, and the long-tailed cut of a training part."""

import math

import numpy as np
import pytest
import torch

from longtail.images import (
    ImageArrays,
    ImageSplits,
    long_tailed_images,
    split_validation,
    with_validation,
)

COUNTS = [100, 30, 14, 5, 4, 2, 1, 0, 3]


def some_labels(counts=COUNTS, seed=0):
    labels = np.repeat(np.arange(len(counts)), counts)
    return np.random.default_rng(seed).permutation(labels)


def some_images(counts, seed=0):
    labels = some_labels(counts, seed)
    # The pixels tell the place of an image, so that it can be found again.
    pixels = np.zeros((len(labels), 1, 1, 2), np.uint8)
    pixels[:, 0, 0, 0], pixels[:, 0, 0, 1] = divmod(np.arange(len(labels)), 256)
    return ImageArrays(pixels, labels, tuple(f"class {n}" for n in range(len(counts))))


def places(images):
    return (images.images[:, 0, 0, 0].long() * 256 + images.images[:, 0, 0, 1]).tolist()


@pytest.mark.parametrize("fraction", [0.01, 0.1, 0.25, 0.5, 0.99])
def test_each_class_is_divided_by_the_rule(fraction):
    labels = some_labels()
    kept, held = split_validation(labels, fraction)
    assert sorted([*kept, *held]) == list(range(len(labels)))
    assert list(kept) == sorted(kept)
    assert list(held) == sorted(held)
    for label, number in enumerate(COUNTS):
        wanted = min(number - 1, max(1, math.floor(number * fraction + 0.5))) if number > 1 else 0
        assert (labels[held] == label).sum() == wanted
        assert (labels[kept] == label).sum() == number - wanted


def test_the_choice_is_random_and_seeded_and_of_the_kind_of_the_labels():
    labels = some_labels()
    first, again, other = (split_validation(labels, 0.2, seed)[1] for seed in (0, 0, 1))
    assert isinstance(first, np.ndarray)
    assert first.tolist() == again.tolist() != other.tolist()
    assert torch.equal(split_validation(torch.from_numpy(labels), 0.2)[1], torch.from_numpy(first))


def test_every_image_of_a_class_may_be_held_out():
    drawn = [split_validation([0] * 10, 0.2, seed)[1] for seed in range(200)]
    seen = {position for each in drawn for position in each.tolist()}
    assert seen == set(range(10))


def test_nothing_is_held_out_of_nothing_or_by_a_fraction_of_zero():
    kept, held = split_validation([1, 0, 1], fraction=0)
    assert (kept.tolist(), held.tolist()) == ([0, 1, 2], [])
    assert [len(part) for part in split_validation([])] == [0, 0]


@pytest.mark.parametrize("fraction", [-0.1, 1, float("nan")])
def test_a_fraction_that_is_none_is_refused(fraction):
    with pytest.raises(ValueError, match="fraction must lie in 0 to 1"):
        split_validation([0, 1], fraction)


def test_parts_must_have_the_same_classes():
    with pytest.raises(ValueError, match=r"train has 2 .* and test has 3"):
        ImageSplits(some_images([3, 2]), test=some_images([1, 1, 1]))


def test_a_validation_part_is_held_out_once_and_the_test_part_is_left_alone():
    splits = ImageSplits(some_images([20, 10]), test=some_images([5, 5]))
    divided = with_validation(splits, 0.2)
    assert divided.test is splits.test
    assert divided.validation.counts.tolist() == [4, 2]
    assert sorted(places(divided.train) + places(divided.validation)) == list(range(30))
    assert with_validation(divided, 0.2) is divided
    assert with_validation(splits, 0) is splits


@pytest.mark.parametrize(("profile", "smallest"), [("exp", 6), ("step", 6)])
def test_the_cut_is_the_one_of_the_published_builder(profile, smallest):
    splits = ImageSplits(some_images([60] * 5), test=some_images([4] * 5))
    cut = long_tailed_images(splits, 10, profile, validation_share=0)
    # The published way, naively: the global stream, one shuffle a class, first n kept.
    np.random.seed(0)
    expected = []
    for label in range(5):
        number = 60 * 0.1 ** (label / 4) if profile == "exp" else (60, 60, 6, 6, 6)[label]
        at = np.where(splits.train.labels.numpy() == label)[0]
        np.random.shuffle(at)
        expected += at[: int(number + 1e-9)].tolist()
    assert places(cut.train) == expected
    assert cut.train.counts[-1] == smallest
    assert cut.validation is None
    assert cut.test is splits.test


def test_by_default_validation_is_held_out_of_the_cut():
    splits = ImageSplits(some_images([60] * 5))
    whole = long_tailed_images(splits, 10, validation_share=0).train
    cut = long_tailed_images(splits, 10)
    assert cut.validation.counts.tolist() == [6, 3, 2, 1, 1]
    assert sorted(places(cut.train) + places(cut.validation)) == sorted(places(whole))


def test_a_set_that_is_imbalanced_already_is_cut_by_the_rank_of_its_classes():
    cut = long_tailed_images(ImageSplits(some_images([10, 100, 3])), 4, validation_share=0)
    assert cut.train.counts.tolist() == [10, 100, 3]
    cut = long_tailed_images(ImageSplits(some_images([80, 100, 90])), 4, validation_share=0)
    assert cut.train.counts.tolist() == [25, 100, 50]
    cut = long_tailed_images(
        ImageSplits(some_images([80, 100, 90])), 4, "pareto", validation_share=0
    )
    assert cut.train.counts[1] == 100


def test_an_unknown_profile_is_refused():
    with pytest.raises(ValueError, match="\"pareto\", got 'linear'"):
        long_tailed_images(ImageSplits(some_images([3, 3])), 1, "linear")
