r"""What AutoAugment does to pixels, as Pillow does it: moves by affine maps, and changes of tone.

The pixel at (x, y) of an affine map's result is the one of the image at

    (⌊a·x̄ + b·ȳ + c⌋, ⌊d·x̄ + e·ȳ + f⌋),    x̄ = x + ½,    ȳ = y + ½,

or the fill where there is none. The sums are in fixed point, 16 binary digits after the point, as
Pillow has them for small images; results are equal to the bit (but for maps that only move, where
Pillow uses floating point: there they differ if c or f is within 2^-17 of a half).

Four changes of tone mix an image with a plain version of it, plain + factor · (image − plain) cut
to 0 ... 255 and then truncated: a factor of 1 leaves the image, 0 gives the plain one, more than 1
exaggerates. All are on bytes and equal to Pillow's to the bit. Grey images have one channel, colour
ones three.
"""

from __future__ import annotations

import torch
from torch import Tensor


def shear_x(images: Tensor, slope: Tensor, fill: float) -> Tensor:
    """Rows move to the left by slope times their distance from the top edge."""
    return affine(images, [1, slope, 0, 0, 1, 0], fill)


def shear_y(images: Tensor, slope: Tensor, fill: float) -> Tensor:
    """Columns move up by slope times their distance from the left edge."""
    return affine(images, [1, 0, 0, slope, 1, 0], fill)


def translate_x(images: Tensor, fraction: Tensor, fill: float) -> Tensor:
    """All moves to the left by a fraction of the width."""
    return affine(images, [1, 0, fraction * images.shape[3], 0, 1, 0], fill)


def translate_y(images: Tensor, fraction: Tensor, fill: float) -> Tensor:
    """All moves up by a fraction of the height."""
    return affine(images, [1, 0, 0, 0, 1, fraction * images.shape[2]], fill)


def rotate(images: Tensor, degrees: Tensor, fill: float) -> Tensor:
    """Counter-clockwise about the middle."""
    angle = -torch.deg2rad(degrees)
    cos, sin = angle.cos(), angle.sin()
    x, y = images.shape[3] / 2, images.shape[2] / 2
    return affine(images, [cos, sin, x - cos * x - sin * y, -sin, cos, y + sin * x - cos * y], fill)


def affine(images: Tensor, coefficients: list[Tensor | float], fill: float) -> Tensor:
    """The images under maps a, b, c, d, e, f, each a number, or one for each image."""
    many, channels, height, width = images.shape
    rows, columns = _source(coefficients[3:], images), _source(coefficients[:3], images)
    outside = (rows < 0) | (rows >= height) | (columns < 0) | (columns >= width)
    index = (rows * width + columns).masked_fill_(outside, 0).view(-1, 1, height * width)
    moved = images.reshape(many, channels, -1).gather(2, index.expand(many, channels, -1))
    return moved.view(images.shape).masked_fill_(outside[:, None], fill)


def _source(line: list[Tensor | float], images: Tensor) -> Tensor:
    """Where each pixel (N, H, W) comes from, along one axis."""
    along_x, along_y, start = (
        torch.as_tensor(value, dtype=torch.float64, device=images.device).view(-1, 1, 1)
        for value in line
    )
    x = torch.arange(images.shape[3], device=images.device)
    y = torch.arange(images.shape[2], device=images.device)[:, None]
    middle = _fixed(start + along_x * 0.5 + along_y * 0.5)
    return (_fixed(along_x) * x + _fixed(along_y) * y + middle) >> 16


def _fixed(values: Tensor) -> Tensor:
    return (values * 2**16 + 0.5).floor().long()


def brightness(images: Tensor, factor: Tensor) -> Tensor:
    """Mixed with black."""
    return _mix(torch.zeros((), device=images.device), images, factor)


def color(images: Tensor, factor: Tensor) -> Tensor:
    """Mixed with the grey image."""
    return _mix(_grey(images), images, factor)


def contrast(images: Tensor, factor: Tensor) -> Tensor:
    """Mixed with the mean of the grey image."""
    mean = _grey(images).double().mean(dim=(1, 2, 3), keepdim=True)
    return _mix((mean + 0.5).floor(), images, factor)


def sharpness(images: Tensor, factor: Tensor) -> Tensor:
    """Mixed with a smoothed image, (5 · pixel + its 8 neighbours) / 13; the edges are as they were.

    Pillow's result, since a thirteenth is never a half that might be rounded either way.
    """
    whole = images.int()
    if min(images.shape[2:]) < 3:
        return images.clone()
    rows = whole[:, :, :-2] + whole[:, :, 1:-1] + whole[:, :, 2:]
    inner = slice(1, -1)
    total = rows[..., :-2] + rows[..., 1:-1] + rows[..., 2:] + 4 * whole[:, :, inner, inner]
    smooth = whole.clone()
    smooth[:, :, inner, inner] = (2 * total + 13) // 26
    return _mix(smooth, images, factor)


def invert(images: Tensor) -> Tensor:
    """255 − x."""
    return 255 - images


def solarize(images: Tensor, threshold: Tensor) -> Tensor:
    """Values of the threshold and above are inverted."""
    return torch.where(images < threshold.view(-1, 1, 1, 1), images, 255 - images)


def posterize(images: Tensor, bits: Tensor) -> Tensor:
    """Only the first bits of each value are kept."""
    dropped = (8 - bits.int()).view(-1, 1, 1, 1)
    return ((images.int() >> dropped) << dropped).to(torch.uint8)


def _mix(plain: Tensor, images: Tensor, factor: Tensor) -> Tensor:
    # In float32, as Pillow does: elsewhere a sum just below a whole number would be truncated.
    plain, share = plain.float(), factor.float().view(-1, 1, 1, 1)
    return (plain + share * (images.float() - plain)).clamp_(0, 255).to(torch.uint8)


def _grey(images: Tensor) -> Tensor:
    if images.shape[1] == 1:
        return images
    weights = torch.tensor([19595, 38470, 7471], dtype=torch.int32, device=images.device)
    weighted = images.int() * weights.view(1, 3, 1, 1)
    return (weighted.sum(dim=1, keepdim=True, dtype=torch.int32) + 32768) >> 16


def autocontrast(images: Tensor) -> Tensor:
    """Linear in each channel, its least value to 0 and its greatest to 255; constants stay."""
    least = images.amin(dim=(2, 3), keepdim=True).double()
    span = images.amax(dim=(2, 3), keepdim=True).double() - least
    # As Pillow rounds it: `255 / span` would multiply by a reciprocal, and truncate differently.
    scale = torch.full_like(span, 255.0) / span.clamp(min=1.0)
    stretched = (images.double() * scale + -least * scale).clamp_(0, 255).to(torch.uint8)
    return torch.where(span > 0, stretched, images)


def equalize(images: Tensor) -> Tensor:
    """Each channel's values by their rank, so that about as many pixels have each.

    Unchanged where all pixels but those of the greatest value are fewer than 255.
    """
    many, channels, height, width = images.shape
    planes = images.reshape(many * channels, height * width).long()
    offset = 256 * torch.arange(len(planes), device=images.device)[:, None]
    histogram = torch.bincount((planes + offset).view(-1), minlength=256 * len(planes))
    histogram = histogram.view(-1, 256)
    at_most = histogram.gather(1, planes.amax(dim=1, keepdim=True))
    step = (height * width - at_most) // 255
    below = histogram.cumsum(dim=1) - histogram
    table = ((below + step // 2) // step.clamp(min=1)).clamp_(max=255)
    table = torch.where(step > 0, table, torch.arange(256, device=images.device))
    return table.gather(1, planes).to(torch.uint8).view(images.shape)
