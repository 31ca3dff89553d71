r"""Affine maps of images, each with its own, by the nearest pixel.

The pixel at (x, y) of the result is the one of the image at

    (⌊a·x̄ + b·ȳ + c⌋, ⌊d·x̄ + e·ȳ + f⌋),    x̄ = x + ½,    ȳ = y + ½,

or the fill where there is none. The sums are in fixed point, 16 binary digits after the point, as
Pillow has them for small images; results are equal to the bit (but for maps that only move, where
Pillow uses floating point: there they differ if c or f is within 2^-17 of a half).
"""

from __future__ import annotations

import torch
from torch import Tensor

_ONE = 65536


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
    rows = _source(coefficients[3:], many, height, width, images.device)
    columns = _source(coefficients[:3], many, height, width, images.device)
    outside = (rows < 0) | (rows >= height) | (columns < 0) | (columns >= width)
    index = (rows * width + columns).masked_fill_(outside, 0).view(many, 1, -1)
    moved = images.reshape(many, channels, -1).gather(2, index.expand(-1, channels, -1))
    return moved.view(images.shape).masked_fill_(outside[:, None], fill)


def _source(
    line: list[Tensor | float], many: int, height: int, width: int, device: torch.device
) -> Tensor:
    """Where each pixel (N, H, W) comes from, along one axis."""
    along_x, along_y, start = (
        torch.as_tensor(value, dtype=torch.float64, device=device).expand(many).view(many, 1, 1)
        for value in line
    )
    x = torch.arange(width, device=device)
    y = torch.arange(height, device=device)[:, None]
    middle = _fixed(start + along_x * 0.5 + along_y * 0.5)
    return (_fixed(along_x) * x + _fixed(along_y) * y + middle) >> 16


def _fixed(values: Tensor) -> Tensor:
    return (values * _ONE + 0.5).floor().long()
