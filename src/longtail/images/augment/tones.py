r"""What changes the values of pixels and not their place, on bytes, as Pillow does it.

Four of them mix an image with a plain version of it, plain + factor · (image − plain) cut to 0 ...
255 and then truncated: a factor of 1 leaves the image, 0 gives the plain one, more than 1
exaggerates. All are equal to Pillow's to the bit. Grey images have one channel, colour ones three.
"""

from __future__ import annotations

import torch
from torch import Tensor


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
