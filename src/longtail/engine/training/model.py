"""A model: a backbone and a head, from images to logits and the features they are made of."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor, nn

from longtail.core import Prior
from longtail.engine.backbones import Backbone
from longtail.heads import Head


class Outputs(NamedTuple):
    """What a model says of images: logits (N, C), and the features (N, D) they come from."""

    logits: Tensor
    features: Tensor


class Model(nn.Module):
    """A backbone with a head on its features.

    Args:
        backbone: Images to features.
        head: Features to logits; it says what they carry.

    >>> import torch, longtail as lt
    >>> from longtail.engine.backbones import backbone
    >>> model = Model(backbone("small_cnn"), lt.heads.Linear(128, 10))
    >>> model(torch.zeros(2, 3, 32, 32)).logits.shape, model.carried
    (torch.Size([2, 10]), None)
    """

    def __init__(self, backbone: Backbone, head: Head) -> None:
        super().__init__()
        if backbone.dim != head.dim:
            raise ValueError(
                f"the backbone gives features of {backbone.dim} numbers, the head takes "
                f"{head.dim}; make the head with dim={backbone.dim}"
            )
        self.backbone, self.head = backbone, head

    @property
    def carried(self) -> Prior | None:
        """The prior the logits carry; None where that is not known, or no prior."""
        return self.head.carried

    def forward(self, images: Tensor) -> Outputs:
        """Logits and features."""
        features = self.backbone(images)
        return Outputs(self.head(features), features)
