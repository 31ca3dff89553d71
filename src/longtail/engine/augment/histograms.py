"""What stretches the values of each channel of each image over 0 ... 255, as Pillow does it."""

from __future__ import annotations

import torch
from torch import Tensor


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
