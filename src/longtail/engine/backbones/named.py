"""A backbone by its name, as a recipe gives it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from longtail.engine.backbones.backbone import Backbone
from longtail.engine.backbones.library import timm_backbone, torchvision_backbone
from longtail.engine.backbones.mlp import mlp
from longtail.engine.backbones.resnet32 import resnet32
from longtail.engine.backbones.resnet32_experts import resnet32_experts
from longtail.engine.backbones.small_cnn import small_cnn

OWN: dict[str, Callable[..., Backbone]] = {
    "resnet32": resnet32,
    "resnet32_experts": resnet32_experts,
    "small_cnn": small_cnn,
    "mlp": mlp,
}
LIBRARIES: dict[str, Callable[..., Backbone]] = {
    "torchvision": torchvision_backbone,
    "timm": timm_backbone,
}


def backbone(name: str, **options: Any) -> Backbone:
    """The backbone of that name; its weights come from torch's global generator.

    Args:
        name: "resnet32", "resnet32_experts", "small_cnn", "mlp", or a network of a library:
            "torchvision:resnet50", "timm:resnet50".
        options: What the function of that name takes.

    >>> backbone("resnet32", dim=128).dim
    128
    """
    library, colon, network = name.partition(":")
    if colon and library in LIBRARIES and network:
        return LIBRARIES[library](network, options)
    if name not in OWN:
        raise ValueError(
            f"there is no backbone {name!r}; take one of {', '.join(OWN)}, or "
            + " or ".join(f'"{other}:<its name>"' for other in LIBRARIES)
        )
    try:
        return OWN[name](**options)
    except TypeError as error:
        raise ValueError(f"the backbone {name} does not take these options: {error}") from error
