"""The operations of AutoAugment on batches are those of Pillow on single images, to the bit."""

import numpy as np
import pytest
import torch

from longtail.images.augment import operations
from longtail.images.augment.autoaugment import AutoAugment

Image = pytest.importorskip("PIL.Image")
ImageEnhance = pytest.importorskip("PIL.ImageEnhance")
ImageFilter = pytest.importorskip("PIL.ImageFilter")
ImageOps = pytest.importorskip("PIL.ImageOps")

FILL = 128


def photographs(channels=3):
    """Noise, smooth images, one of few values, a constant one, and one with a constant channel."""
    generator = torch.Generator().manual_seed(0)
    noise = torch.randint(256, (6, channels, 32, 32), generator=generator)
    coarse = torch.rand(6, channels, 4, 4, generator=generator)
    smooth = torch.nn.functional.interpolate(coarse, size=32, mode="bicubic") * 200 + 20
    few = torch.randint(2, (1, channels, 32, 32), generator=generator) * 90 + 30
    nearly = torch.full((1, channels, 32, 32), 7)
    nearly[0, 0, :4] = 8
    constant = torch.full((1, channels, 32, 32), 77)
    half = noise[:1].clone()
    half[:, 0] = 5
    batch = [noise, smooth.clamp(0, 255), few, nearly, constant, half]
    return torch.cat([part.to(torch.uint8) for part in batch])


def to_pillow(image):
    array = image.permute(1, 2, 0).numpy()
    return Image.fromarray(array[..., 0] if array.shape[2] == 1 else array)


def from_pillow(picture):
    array = torch.from_numpy(np.array(picture))
    return array[None] if array.dim() == 2 else array.permute(2, 0, 1)


def assert_as_pillow(ours, images, theirs):
    for i, image in enumerate(images):
        expected = from_pillow(theirs(to_pillow(image), i))
        assert torch.equal(ours[i], expected), f"image {i}"


def moved(picture, matrix):
    fill = FILL if picture.mode == "L" else (FILL,) * 3
    return picture.transform(
        picture.size, Image.Transform.AFFINE, matrix, Image.Resampling.NEAREST, fillcolor=fill
    )


def strengths(images, low, high):
    return torch.linspace(low, high, len(images), dtype=torch.float64)


MIXES = {
    "brightness": (operations.brightness, "Brightness"),
    "color": (operations.color, "Color"),
    "contrast": (operations.contrast, "Contrast"),
    "sharpness": (operations.sharpness, "Sharpness"),
}


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("name", MIXES)
@pytest.mark.parametrize("shift", [0.0, 0.013])
def test_mixing_with_a_plain_image_is_pillows_enhancement(name, channels, shift):
    ours, theirs = MIXES[name]
    images = photographs(channels)
    factors = strengths(images, 0.0, 2.0) + shift

    def enhance(picture, i):
        return getattr(ImageEnhance, theirs)(picture).enhance(factors[i].item())

    assert_as_pillow(ours(images, factors), images, enhance)


@pytest.mark.parametrize("channels", [1, 3])
def test_autocontrast_equalize_and_invert_are_pillows(channels):
    images = photographs(channels)
    for ours, theirs in (
        (operations.autocontrast, ImageOps.autocontrast),
        (operations.equalize, ImageOps.equalize),
        (operations.invert, ImageOps.invert),
    ):
        assert_as_pillow(ours(images), images, lambda picture, _, theirs=theirs: theirs(picture))


def test_equalize_is_pillows_where_a_step_is_a_few_pixels():
    # Few pixels: steps of 0, 1 and 2, where the table runs over 255 and has to be cut.
    for size in (15, 16, 17, 22, 25):
        images = photographs()[:, :, :size, :size]
        assert_as_pillow(
            operations.equalize(images), images, lambda picture, _: ImageOps.equalize(picture)
        )


def test_posterize_and_solarize_are_pillows():
    images = photographs()
    bits = 1 + torch.arange(len(images)) % 8
    thresholds = strengths(images, 0.0, 256.0)
    assert_as_pillow(
        operations.posterize(images, bits.double()),
        images,
        lambda picture, i: ImageOps.posterize(picture, int(bits[i])),
    )
    assert_as_pillow(
        operations.solarize(images, thresholds),
        images,
        lambda picture, i: ImageOps.solarize(picture, thresholds[i].item()),
    )


@pytest.mark.parametrize("channels", [1, 3])
def test_shears_are_pillows(channels):
    images = photographs(channels)
    slopes = strengths(images, -0.3, 0.3)
    assert_as_pillow(
        operations.shear_x(images, slopes, FILL),
        images,
        lambda picture, i: moved(picture, (1, slopes[i].item(), 0, 0, 1, 0)),
    )
    assert_as_pillow(
        operations.shear_y(images, slopes, FILL),
        images,
        lambda picture, i: moved(picture, (1, 0, 0, slopes[i].item(), 1, 0)),
    )


def test_translations_are_pillows():
    images = photographs()[:, :, :30]
    fractions = strengths(images, -150 / 331, 150 / 331)
    assert_as_pillow(
        operations.translate_x(images, fractions, FILL),
        images,
        lambda picture, i: moved(picture, (1, 0, 32 * fractions[i].item(), 0, 1, 0)),
    )
    assert_as_pillow(
        operations.translate_y(images, fractions, FILL),
        images,
        lambda picture, i: moved(picture, (1, 0, 0, 0, 1, 30 * fractions[i].item())),
    )


def test_rotations_are_pillows_also_of_images_that_are_not_square():
    images = photographs()[:, :, :25]
    degrees = strengths(images, -30, 30)
    assert_as_pillow(
        operations.rotate(images, degrees, FILL),
        images,
        lambda picture, i: picture.rotate(degrees[i].item(), fillcolor=(FILL,) * 3),
    )


def enhanced(name, level, sign):
    return lambda picture: getattr(ImageEnhance, name)(picture).enhance(1 + 0.1 * level * sign)


def on_pillow(name, level, sign):
    """The operation of that name as the module's docstring gives its range."""
    shear, shift, turn = 0.3 * level / 9 * sign, 150 / 331 * level / 9 * sign, 30 * level / 9 * sign
    return {
        "shear_x": lambda p: moved(p, (1, shear, 0, 0, 1, 0)),
        "shear_y": lambda p: moved(p, (1, 0, 0, shear, 1, 0)),
        "translate_x": lambda p: moved(p, (1, 0, shift * p.width, 0, 1, 0)),
        "translate_y": lambda p: moved(p, (1, 0, 0, 0, 1, shift * p.height)),
        "rotate": lambda p: p.rotate(turn, fillcolor=(FILL,) * 3),
        "brightness": enhanced("Brightness", level, sign),
        "color": enhanced("Color", level, sign),
        "contrast": enhanced("Contrast", level, sign),
        "sharpness": enhanced("Sharpness", level, sign),
        "posterize": lambda p: ImageOps.posterize(p, int(np.round(8 - 4 * level / 9))),
        "solarize": lambda p: ImageOps.solarize(p, 256 - 256 * level / 9),
        "invert": ImageOps.invert,
        "autocontrast": ImageOps.autocontrast,
        "equalize": ImageOps.equalize,
    }[name]


def test_autoaugment_of_a_batch_is_the_same_done_image_by_image_with_pillow():
    from longtail.images.augment.autoaugment import CIFAR_POLICY

    images = photographs().repeat(20, 1, 1, 1)
    ours = AutoAugment(fill=FILL)(images, torch.Generator().manual_seed(3))
    # The draws, in the order in which they are made.
    generator = torch.Generator().manual_seed(3)
    pairs = torch.randint(25, (len(images),), generator=generator)
    draws = torch.rand(2, len(images), generator=generator, dtype=torch.float64)
    signs = 2 * torch.randint(2, (2, len(images)), generator=generator) - 1
    differ = 0
    for i, image in enumerate(images):
        picture = to_pillow(image)
        for step in (0, 1):
            name, probability, level = CIFAR_POLICY[pairs[i]][step]
            if draws[step, i] < probability:
                picture = on_pillow(name, level, signs[step, i].item())(picture)
        expected = from_pillow(picture)
        assert torch.equal(ours[i], expected), f"image {i}: {CIFAR_POLICY[pairs[i]]}"
        differ += not torch.equal(expected, image)
    assert differ > len(images) / 2
