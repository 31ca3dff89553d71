"""Networks of torchvision and timm as backbones, without their classifier.

Neither library is a dependency: they are imported when one of their networks is asked for.
"""

import importlib
from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from longtail.engine.backbones.backbone import Backbone

# Where the networks of torchvision keep what follows the features.
_CLASSIFIERS = ("fc", "classifier", "heads", "head")

_MISSING = {
    "torchvision": "install the torchvision that was built for your torch",
    "timm": "pip install 'longtail[timm]'",
}


class LibraryBackbone(Backbone):
    """A network of another library, called as it is; its classifier has been taken off."""

    def __init__(self, network: nn.Module, dim: int) -> None:
        super().__init__(dim)
        self.network = network

    def forward(self, inputs: Tensor) -> Tensor:
        """Features of images (N, channels, H, W)."""
        features: Tensor = self.network(inputs)
        return features


def torchvision_backbone(network: str, options: Mapping[str, Any] = {}) -> LibraryBackbone:
    """A network of `torchvision.models.list_models()`, its last linear layer replaced by nothing.

    The options are for `torchvision.models.get_model`: weights="DEFAULT" for trained ones.
    """
    models = _imported("torchvision", "torchvision.models")
    built: nn.Module = models.get_model(network, **options)
    linear = {name: part for name, part in built.named_modules() if isinstance(part, nn.Linear)}
    for attribute in _CLASSIFIERS:
        layers = [name for name in linear if name.partition(".")[0] == attribute]
        if layers:
            built.set_submodule(layers[-1], nn.Identity())
            return LibraryBackbone(built, linear[layers[-1]].in_features)
    raise ValueError(
        f"torchvision's {network} has no linear classifier under {', '.join(_CLASSIFIERS)}, "
        "so its features cannot be told from its logits; take another network"
    )


def timm_backbone(network: str, options: Mapping[str, Any] = {}) -> LibraryBackbone:
    """A network of `timm.list_models()`, made with num_classes=0.

    The options are for `timm.create_model`: pretrained=True for trained weights, in_chans for
    images with other than three channels.
    """
    timm = _imported("timm", "timm")
    built = timm.create_model(network, num_classes=0, **options)
    # A few networks put a layer between pooling and classifier; num_features is what it is given.
    dim = getattr(built, "head_hidden_size", None) or built.num_features
    return LibraryBackbone(built, int(dim))


def _imported(library: str, module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"a backbone of {library} was asked for, but it cannot be imported ({error}); "
            f'{_MISSING[library]}, or take a backbone of our own, such as "resnet32"'
        ) from error
    except RuntimeError as error:
        # What an ordinary torchvision says beside a torch for the CPU: its operators are missing.
        raise ImportError(
            f"{library} is installed, but torchvision does not fit this torch ({error}); install "
            "the torchvision that was built for the same torch, for the CPU or for the same CUDA, "
            'or take a backbone of our own, such as "resnet32"'
        ) from error
