"""Crop, flip, Cutout, normalisation and mixup, re-derived image by image."""

import pytest
import torch
from torch.testing import assert_close

from longtail.images.augment import (
    AutoAugment,
    Chain,
    ColorJitter,
    Cutout,
    Flip,
    Mixup,
    Normalize,
    RandomCrop,
    channel_statistics,
)

AUGMENTATIONS = {
    "crop": RandomCrop(),
    "flip": Flip(),
    "cutout": Cutout(size=7),
    "autoaugment": AutoAugment(),
    "color jitter": ColorJitter(),
    "chain": Chain(RandomCrop(2), Flip(0.3), AutoAugment(), Cutout(), Normalize()),
}


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def bytes_of(*shape):
    return torch.randint(256, shape, dtype=torch.uint8, generator=seeded(99))


@pytest.mark.parametrize("augment", AUGMENTATIONS.values(), ids=AUGMENTATIONS)
def test_one_state_gives_one_result_and_the_state_can_be_gone_on_from(augment):
    images, generator = bytes_of(20, 3, 32, 32), seeded()
    assert torch.equal(augment(images, generator), augment(images, seeded()))
    state = generator.get_state()
    second = augment(images, generator)
    assert not torch.equal(second, augment(images, seeded()))
    again = torch.Generator()
    again.set_state(state)
    assert torch.equal(augment(images, again), second)


@pytest.mark.parametrize("augment", AUGMENTATIONS.values(), ids=AUGMENTATIONS)
def test_the_global_generator_and_the_images_given_are_left_alone(augment):
    images = bytes_of(8, 3, 32, 32)
    before, state = images.clone(), torch.random.get_rng_state()
    augment(images, seeded())
    assert torch.equal(images, before)
    assert torch.equal(torch.random.get_rng_state(), state)


@pytest.mark.parametrize("augment", AUGMENTATIONS.values(), ids=AUGMENTATIONS)
def test_as_many_numbers_are_drawn_whatever_the_images_show(augment):
    states = []
    for images in (bytes_of(8, 3, 32, 32), torch.zeros(8, 3, 32, 32, dtype=torch.uint8)):
        generator = seeded()
        augment(images, generator)
        states.append(generator.get_state())
    assert torch.equal(*states)


@pytest.mark.parametrize("augment", AUGMENTATIONS.values(), ids=AUGMENTATIONS)
def test_strides_do_not_matter(augment):
    images = bytes_of(8, 3, 32, 32)
    pixels_first = images.contiguous(memory_format=torch.channels_last)
    assert torch.equal(augment(images, seeded()), augment(pixels_first, seeded()))


@pytest.mark.parametrize("augment", AUGMENTATIONS.values(), ids=AUGMENTATIONS)
def test_an_empty_batch_stays_empty(augment):
    assert augment(bytes_of(0, 3, 32, 32), seeded()).shape == (0, 3, 32, 32)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32, torch.float64])
def test_each_crop_is_the_padded_image_from_a_place_of_its_own(dtype):
    images = bytes_of(50, 2, 6, 9).to(dtype)
    cropped = RandomCrop(padding=2, fill=7)(images, seeded())
    places = torch.randint(5, (2, 50), generator=seeded())
    for i in range(50):
        padded = torch.full((2, 10, 13), 7, dtype=dtype)
        padded[:, 2:8, 2:11] = images[i]
        top, left = places[:, i].tolist()
        assert torch.equal(cropped[i], padded[:, top : top + 6, left : left + 9])
    assert cropped.dtype == dtype
    assert torch.equal(RandomCrop(padding=0)(images, seeded()), images)


def test_all_places_of_a_crop_are_as_likely():
    images = torch.zeros(8100, 1, 9, 9)
    images[:, 0, 4, 4] = 1
    where = RandomCrop(padding=4)(images, seeded()).sum(0).flatten()
    assert where.sum() == 8100
    # 100 expected at each of 81 places; five standard deviations.
    assert where.min() > 50
    assert where.max() < 150


def test_half_of_the_images_are_flipped_each_by_its_own_draw():
    images = bytes_of(1000, 3, 4, 5)
    flipped = Flip()(images, seeded())
    turned = 0
    for image, result in zip(images, flipped, strict=True):
        same = torch.equal(result, image)
        assert same or torch.equal(result, image[:, :, [4, 3, 2, 1, 0]])
        turned += not same
    assert 420 < turned < 580
    assert torch.equal(Flip(0.0)(images, seeded()), images)
    assert torch.equal(Flip(1.0)(images, seeded()), images.flip(3))


@pytest.mark.parametrize("size", [1, 4, 5, 40])
def test_cutout_fills_the_square_around_a_drawn_pixel(size):
    images = 1 + bytes_of(40, 2, 8, 11) // 2
    cut = Cutout(size, fill=0)(images, seeded())
    generator = seeded()
    rows = torch.randint(8, (40, 1), generator=generator)
    columns = torch.randint(11, (40, 1), generator=generator)
    for i in range(40):
        expected = images[i].clone()
        for y in range(8):
            for x in range(11):
                down, right = y - (rows[i] - size // 2), x - (columns[i] - size // 2)
                if 0 <= down < size and 0 <= right < size:
                    expected[:, y, x] = 0
        assert torch.equal(cut[i], expected)


def test_autoaugment_takes_grey_images_and_changes_each_on_its_own():
    image = bytes_of(1, 1, 20, 24)
    changed = AutoAugment()(image.repeat(60, 1, 1, 1), seeded())
    assert len({tuple(one.flatten().tolist()) for one in changed}) > 15


def test_normalise_is_its_formula_for_bytes_and_for_fractions():
    images, normalise = bytes_of(4, 3, 5, 6), Normalize((0.4, 0.5, 0.6), (0.1, 0.2, 0.3))
    expected = torch.empty(4, 3, 5, 6, dtype=torch.float64)
    for channel, (mean, std) in enumerate(zip(normalise.mean, normalise.std, strict=True)):
        expected[:, channel] = (images[:, channel].double() / 255 - mean) / std
    assert_close(normalise(images), expected.float())
    assert_close(normalise(images.double() / 255), expected.float())


@pytest.mark.parametrize("kind", ["uint8", "float"])
def test_statistics_are_over_all_pixels_and_normalise_to_zero_and_one(kind):
    images = bytes_of(30, 3, 5, 7) // torch.tensor([1, 2, 3], dtype=torch.uint8).view(1, 3, 1, 1)
    given = images if kind == "uint8" else images.double() / 255
    mean, std = channel_statistics(given)
    for channel in range(3):
        values = [value / 255 for value in images[:, channel].flatten().tolist()]
        centre = sum(values) / len(values)
        spread = (sum((value - centre) ** 2 for value in values) / len(values)) ** 0.5
        assert mean[channel] == pytest.approx(centre, abs=1e-12)
        assert std[channel] == pytest.approx(spread, abs=1e-12)
    normal = Normalize(mean, std)(given).double()
    assert_close(normal.mean(dim=(0, 2, 3)), torch.zeros(3).double(), atol=1e-6, rtol=0)
    assert_close(normal.std(dim=(0, 2, 3), correction=0), torch.ones(3).double(), atol=1e-6, rtol=0)


def test_mixup_mixes_labels_as_it_mixes_images():
    labels = torch.randint(5, (64,), generator=seeded(1))
    # An image that shows its label: what is mixed can be read off.
    images = torch.nn.functional.one_hot(labels, 5).double().view(64, 5, 1, 1)
    mixed, soft = Mixup(0.7)(images, labels, 5, seeded())
    assert_close(mixed.view(64, 5), soft)
    assert_close(soft.sum(dim=1), torch.ones(64).double())
    assert ((soft > 0).sum(dim=1) <= 2).all()
    own = soft.gather(1, labels[:, None]).squeeze(1)
    assert len(own[own < 1].unique()) > 30  # a share for each image


@pytest.mark.parametrize("alpha", [0.2, 1.0, 4.0])
def test_the_shares_of_mixup_have_the_moments_of_the_beta_distribution(alpha):
    count = 20_000
    images = torch.arange(count, dtype=torch.float64).view(count, 1, 1, 1)
    labels = torch.arange(count) % 2
    shares = Mixup(alpha)._shares(count, seeded())
    assert shares.mean().item() == pytest.approx(0.5, abs=0.015)
    assert shares.var().item() == pytest.approx(1 / (4 * (2 * alpha + 1)), rel=0.05)
    mixed, _ = Mixup(alpha)(images, labels, 2, seeded())
    others = (mixed.view(-1) - shares * images.view(-1)) / (1 - shares)
    known = others[shares < 0.9].round().long()
    assert len(known.unique()) == len(known)  # a permutation: nobody is mixed in twice


def test_mixup_goes_on_from_a_state_and_leaves_global_generators_alone():
    images, labels = torch.randn(8, 3, 4, 4, generator=seeded()), torch.arange(8)
    generator, state = seeded(), torch.random.get_rng_state()
    first = Mixup()(images, labels, 8, generator)
    second = Mixup()(images, labels, 8, generator)
    again = seeded()
    assert_close(Mixup()(images, labels, 8, again), first, rtol=0, atol=0)
    assert_close(Mixup()(images, labels, 8, again), second, rtol=0, atol=0)
    assert not torch.equal(first[1], second[1])
    assert torch.equal(torch.random.get_rng_state(), state)


def test_a_loss_takes_the_soft_labels_of_mixup():
    from longtail.losses import LogitAdjusted

    images, labels = torch.randn(8, 3, 4, 4, generator=seeded()), torch.arange(8) % 3
    _, soft = Mixup()(images, labels, 3, seeded())
    assert LogitAdjusted([70, 25, 5])(torch.zeros(8, 3), soft).isfinite()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: RandomCrop(padding=-1), "padding must be .* at least 0"),
        (lambda: Flip(1.5), "probability must be .* at most 1"),
        (lambda: Cutout(size=0), "size must be .* at least 1"),
        (lambda: AutoAugment(fill=256), "fill must be .* at most 255"),
        (lambda: Mixup(alpha=0.0), r"alpha.*above 0"),
        (lambda: Normalize((0.5,), (0.0,)), "std be positive"),
        (lambda: Normalize((0.5,), (0.1, 0.2)), "one number for each channel"),
        (lambda: Normalize()(bytes_of(2, 1, 4, 4)), "channel_statistics"),
        (lambda: Flip()(bytes_of(3, 4, 4), seeded()), r"\(N, C, H, W\)"),
        (lambda: Flip()(bytes_of(1, 3, 4, 4).long(), seeded()), "uint8 or floating"),
        (lambda: AutoAugment()(torch.rand(2, 3, 4, 4), seeded()), "before Normalize"),
        (lambda: AutoAugment()(bytes_of(2, 4, 4, 4), seeded()), "1 or 3 channels"),
        (lambda: channel_statistics(bytes_of(0, 3, 4, 4)), "at least one pixel"),
        (
            lambda: Mixup()(bytes_of(2, 3, 4, 4), torch.tensor([0, 1]), 2, seeded()),
            "after Normalize",
        ),
        (
            lambda: Mixup()(torch.rand(2, 3, 4, 4), torch.tensor([0]), 2, seeded()),
            "2 images but 1 labels",
        ),
    ],
)
def test_what_cannot_be_augmented_is_refused_with_a_word_what_to_do(call, said):
    with pytest.raises(ValueError, match=said):
        call()
