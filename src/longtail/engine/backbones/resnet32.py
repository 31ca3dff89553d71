r"""ResNet-32 for images of 32 x 32 pixels, with shortcuts that have no parameters (option A).

A 3 x 3 convolution to 16 channels, then three stages of five blocks with 16, 32 and 64 channels;
the second and third stage halve the size. A block is

    h ← ReLU(h' + norm(conv(ReLU(norm(conv(h)))))),

where h' is h, or every second pixel of h with zero channels put on both sides. The features are
the means over the pixels. He et al., CVPR 2016, section 4.2; initialised (He et al., 2015) as in
the code of LDAM (Cao et al., NeurIPS 2019).

With dim=128 it is the net of LADE's CIFAR figures. The paper only names its source, the code of
Tang et al. (NeurIPS 2020); there the last block stands twice, side by side, and the outputs of both
are the features. It is no ResNet-32 to compare with others: it has 16 % more parameters.

`ResNet32Experts` shares the stem and the first stages; each expert has its own copy of the rest.
The features of all experts are one row, expert after expert: `heads.Experts` takes them apart.
Sharing one stage is the network of SADE (Zhang et al., NeurIPS 2022) and of the balanced product of
experts (Aimar et al., CVPR 2023) at the width of the plain ResNet-32.
"""

from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from longtail.engine.backbones.backbone import Backbone, Norm, channels_last, conv3x3, norm_layer
from longtail.ranges import Count

Dim = Literal[64, 128]
Shared = Literal[0, 1, 2]

_BLOCKS = 5  # in a stage


class ResNet32(Backbone):
    """ResNet-32: 0.46 million parameters with 64 features, 0.54 million with 128.

    The norm is "batch", "group" (8 groups), or "none": blocks then start as the identity.

    >>> net = ResNet32()
    >>> sum(p.numel() for p in net.parameters()), net(torch.zeros(2, 3, 32, 32)).shape
    (463504, torch.Size([2, 64]))
    """

    def __init__(self, dim: Dim = 64, norm: Norm = "batch", channels: Count = 3) -> None:
        if dim not in get_args(Dim):
            raise ValueError(
                f"resnet32 has 64 features, or 128 in the variant of LADE, got dim={dim}; "
                "for another width take small_cnn"
            )
        super().__init__(dim)
        self.stem = _stem(norm, channels)
        # The last block is apart, since the wider net has it twice.
        self.stages = nn.Sequential(
            *_stage(16, 16, _BLOCKS, norm),
            *_stage(16, 32, _BLOCKS, norm),
            *_stage(32, 64, _BLOCKS - 1, norm),
        )
        self.last = nn.ModuleList(_Block(64, 64, norm) for _ in range(dim // 64))

    def forward(self, inputs: Tensor) -> Tensor:
        """Features of images (N, channels, H, W)."""
        maps = self.stages(self.stem(channels_last(inputs)))
        return torch.cat([block(maps).mean(dim=(2, 3)) for block in self.last], dim=1)


class _Block(nn.Module):
    def __init__(self, inputs: int, outputs: int, norm: Norm) -> None:
        super().__init__()
        self.halves = inputs != outputs
        self.conv1 = conv3x3(inputs, outputs, 2 if self.halves else 1, norm)
        self.norm1 = norm_layer(norm, outputs)
        self.conv2 = conv3x3(outputs, outputs, 1, norm)
        self.norm2 = norm_layer(norm, outputs)
        if norm == "none":
            # Nothing else keeps the sums of fifteen blocks from growing: start as the identity.
            nn.init.zeros_(self.conv2.weight)

    def forward(self, inputs: Tensor) -> Tensor:
        inner = F.relu(self.norm1(self.conv1(inputs)))
        return F.relu(self.norm2(self.conv2(inner)) + self.shortcut(inputs))

    def shortcut(self, inputs: Tensor) -> Tensor:
        if not self.halves:
            return inputs
        aside = inputs.shape[1] // 2
        return F.pad(inputs[:, :, ::2, ::2], (0, 0, 0, 0, aside, aside))


def _stages(norm: Norm, channels: int) -> tuple[nn.Module, ...]:
    """The stem and the three stages."""
    widths = ((16, 16), (16, 32), (32, 64))
    stages = (nn.Sequential(*_stage(*width, _BLOCKS, norm)) for width in widths)
    return _stem(norm, channels), *stages


def _stem(norm: Norm, channels: int) -> nn.Sequential:
    return nn.Sequential(conv3x3(channels, 16, 1, norm), norm_layer(norm, 16), nn.ReLU())


def _stage(inputs: int, outputs: int, blocks: int, norm: Norm) -> list[_Block]:
    return [_Block(inputs if i == 0 else outputs, outputs, norm) for i in range(blocks)]


class ResNet32Experts(Backbone):
    """A ResNet-32 with the stages after the shared ones once for each expert; the stem is shared.

    >>> net = ResNet32Experts()
    >>> sum(p.numel() for p in net.parameters()), net(torch.zeros(2, 3, 32, 32)).shape
    (1342864, torch.Size([2, 192]))
    """

    def __init__(
        self,
        num_experts: Count = 3,
        shared_stages: Shared = 1,
        norm: Norm = "batch",
        channels: Count = 3,
    ) -> None:
        if num_experts < 1 or shared_stages not in get_args(Shared):
            raise ValueError(
                "resnet32_experts has one expert or more, and shares 0, 1 or 2 of its three "
                f"stages, got num_experts={num_experts} and shared_stages={shared_stages}"
            )
        super().__init__(64 * num_experts)
        stem, *stages = _stages(norm, channels)
        self.trunk = nn.Sequential(stem, *stages[:shared_stages])
        self.experts = nn.ModuleList(
            nn.Sequential(*_stages(norm, channels)[1 + shared_stages :]) for _ in range(num_experts)
        )

    def forward(self, inputs: Tensor) -> Tensor:
        """Features of images (N, channels, H, W), expert after expert."""
        maps = self.trunk(channels_last(inputs))
        return torch.cat([expert(maps).mean(dim=(2, 3)) for expert in self.experts], dim=1)
