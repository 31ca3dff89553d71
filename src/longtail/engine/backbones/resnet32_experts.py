"""ResNet-32 whose last stages stand several times, side by side, one for each expert.

The stem and the first stages are shared; each expert has its own copy of the rest, with weights of
its own. The features of all experts are one row, expert after expert: `heads.Experts` takes them
apart. Sharing one stage is the network of SADE (Zhang et al., NeurIPS 2022) and of the balanced
product of experts (Aimar et al., CVPR 2023) at the width of the plain ResNet-32.
"""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor, nn

from longtail.engine.backbones.backbone import Backbone
from longtail.engine.backbones.norms import Norm, channels_last, check_norm
from longtail.engine.backbones.resnet32 import resnet32_stages
from longtail.ranges import Count

Shared = Literal[0, 1, 2]


class ResNet32Experts(Backbone):
    """What `resnet32_experts` makes."""

    def __init__(self, num_experts: int, shared_stages: Shared, norm: Norm, channels: int) -> None:
        super().__init__(64 * num_experts)
        stem, *stages = resnet32_stages(norm, channels)
        self.trunk = nn.Sequential(stem, *stages[:shared_stages])
        self.experts = nn.ModuleList(
            nn.Sequential(*resnet32_stages(norm, channels)[1 + shared_stages :])
            for _ in range(num_experts)
        )

    def forward(self, inputs: Tensor) -> Tensor:
        """Features of images (N, channels, H, W), expert after expert."""
        maps = self.trunk(channels_last(inputs))
        return torch.cat([expert(maps).mean(dim=(2, 3)) for expert in self.experts], dim=1)


def resnet32_experts(
    num_experts: Count = 3, shared_stages: Shared = 1, norm: Norm = "batch", channels: Count = 3
) -> ResNet32Experts:
    """A ResNet-32 with the stages after the shared ones once for each expert.

    Args:
        num_experts: How many.
        shared_stages: 0, 1 or 2 of the three stages; the stem is always shared.
        norm: "batch", "group" or "none", as in `resnet32`.
        channels: Of the images.

    >>> net = resnet32_experts()
    >>> sum(p.numel() for p in net.parameters()), net(torch.zeros(2, 3, 32, 32)).shape
    (1342864, torch.Size([2, 192]))
    """
    if num_experts < 1 or shared_stages not in get_args(Shared):
        raise ValueError(
            "resnet32_experts has one expert or more, and shares 0, 1 or 2 of its three stages, "
            f"got num_experts={num_experts} and shared_stages={shared_stages}"
        )
    return ResNet32Experts(num_experts, shared_stages, check_norm(norm), channels)
