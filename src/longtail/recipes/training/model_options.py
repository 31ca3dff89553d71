"""Backbones and heads as a recipe names them; the options are those of the classes behind them."""

from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from longtail.recipes.training.section import Above, Named, NotBelow, Positive, ShareBelowOne

Norm: TypeAlias = Literal["batch", "group", "none"]


class ResNet32(Named, frozen=True, tag="resnet32"):
    """That of CIFAR: 64 features, or 128 as in LADE."""

    dim: Literal[64, 128] = 64
    norm: Norm = "batch"
    channels: Positive = 3


class ResNet32Experts(Named, frozen=True, tag="resnet32_experts"):
    """ResNet-32 with the stages after the shared ones once for each expert; its head is experts."""

    num_experts: Positive = 3
    shared_stages: Literal[0, 1, 2] = 1
    norm: Norm = "batch"
    channels: Positive = 3


class SmallCNN(Named, frozen=True, tag="small_cnn"):
    """Four convolutions, for a first look."""

    dim: Annotated[int, msgspec.Meta(ge=32, multiple_of=32)] = 128
    norm: Norm = "batch"
    channels: Positive = 3


class MLP(Named, frozen=True, tag="mlp"):
    """Linear layers on flattened images."""

    inputs: Positive = 2
    hidden: Annotated[tuple[Positive, ...], msgspec.Meta(min_length=1)] = (16, 8, 2)
    rectified: bool = True


class Torchvision(Named, frozen=True, tag="torchvision"):
    """A network of torchvision; `options` are for its get_model, such as weights: DEFAULT."""

    network: str
    options: dict[str, Any] = msgspec.field(default_factory=dict)


class Timm(Named, frozen=True, tag="timm"):
    """A network of timm; `options` are for its create_model, such as pretrained: true."""

    network: str
    options: dict[str, Any] = msgspec.field(default_factory=dict)


Backbone: TypeAlias = ResNet32 | ResNet32Experts | SmallCNN | MLP | Torchvision | Timm


class Linear(Named, frozen=True, tag="linear"):
    """w·Φ + b."""

    bias: bool = True


class Cosine(Named, frozen=True, tag="cosine"):
    """s·cos(w, Φ); for the loss ldam its scale is that of the loss."""

    scale: Above = 16.0
    learn_scale: bool = False


class EstimatedOffset(Named, frozen=True, tag="estimated_offset"):
    """The head of EO; its loss is estimated_offset."""

    use_offset: bool = True


class CausalNorm(Named, frozen=True, tag="causal_norm"):
    """The normalised classifier that removes the effect of the mean feature."""

    num_heads: Positive = 2
    tau: Above = 16.0
    alpha: NotBelow = 3.0
    gamma: NotBelow = 0.03125
    momentum: ShareBelowOne = 0.9


class WeightVectorNorm(Named, frozen=True, tag="weight_vector_norm"):
    """Rows of length one, re-scaled by frequency at test time."""

    gamma: NotBelow = 0.1


class Experts(Named, frozen=True, tag="experts"):
    """A head for each expert, on its part of the features; the loss is experts."""

    num_experts: Positive = 3
    kind: Literal["cosine", "linear"] = "cosine"
    scale: Above = 30.0


Head: TypeAlias = Linear | Cosine | Experts | EstimatedOffset | CausalNorm | WeightVectorNorm
