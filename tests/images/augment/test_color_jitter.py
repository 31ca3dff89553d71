"""Colour jitter: the factors it draws, one image at a time, by hand."""

import pytest
import torch

from longtail.images.augment import ColorJitter


def mixed(plain, image, factor):
    return (plain + factor * (image - plain)).clamp(0, 255).floor()


def grey(image):
    weights = torch.tensor([19595, 38470, 7471])
    return (((image.long() * weights.view(3, 1, 1)).sum(dim=0) + 32768) >> 16).float()


def test_every_image_has_factors_of_its_own_in_a_fixed_order():
    images = torch.randint(256, (5, 3, 4, 6), dtype=torch.uint8)
    jitter = ColorJitter(brightness=0.4, contrast=0.3, color=0.2)
    found = jitter(images, torch.Generator().manual_seed(7))
    strengths = (0.4, 0.3, 0.2)
    drawn = torch.rand((3, 5), generator=torch.Generator().manual_seed(7))
    for at, image in enumerate(images.float()):
        factors = [1 + s * (2 * float(d[at]) - 1) for s, d in zip(strengths, drawn, strict=True)]
        image = mixed(torch.zeros(()), image, factors[0])
        image = mixed((grey(image).mean() + 0.5).floor(), image, factors[1])
        image = mixed(grey(image), image, factors[2])
        assert (found[at].float() - image).abs().max() <= 1  # where a product meets a whole number
        assert (found[at].float() == image).float().mean() > 0.95


def test_no_strength_changes_nothing_and_the_images_given_stay():
    images = torch.randint(256, (3, 3, 4, 4), dtype=torch.uint8)
    before = images.clone()
    assert torch.equal(ColorJitter(0, 0, 0)(images, torch.Generator()), before)
    ColorJitter()(images, torch.Generator())
    assert torch.equal(images, before)


def test_images_that_are_no_bytes_are_refused_and_so_are_strengths_beyond_one():
    with pytest.raises(ValueError, match=r"ColorJitter .*uint8"):
        ColorJitter()(torch.rand(2, 3, 4, 4), torch.Generator())
    with pytest.raises(ValueError, match=r"contrast.*got 1\.5"):
        ColorJitter(contrast=1.5)
