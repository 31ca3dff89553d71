"""The recipes of EO (de-biasing with an estimated offset), §4.1.

The paper says: ResNet-10 from scratch on ImageNet-LT, ResNet-152 trained on ImageNet for Places-LT
and SUN397, SGD with momentum 0.9, images of 224 pixels, λ₁ = λ₂ = 1. It does not say the rate, the
schedule, the batch, the epochs or the weight decay: on ImageNet-LT they are those of Kang et al.
(ICLR 2020; rate 0.2, batch 512, 90 epochs, half a cosine, 5e-4), on the other two those of LADE on
Places-LT with one rate for all weights.
"""

from __future__ import annotations

from longtail.recipes.training.catalogue.registry import named
from longtail.recipes.training.catalogue.sets import (
    FLIP_AND_JITTER,
    imagenet_lt,
    places_lt,
    sun397,
)
from longtail.recipes.training.data_options import Data
from longtail.recipes.training.input_options import IMAGENET
from longtail.recipes.training.loss_options import CrossEntropy
from longtail.recipes.training.loss_options import EstimatedOffset as OffsetLoss
from longtail.recipes.training.model_options import EstimatedOffset as OffsetHead
from longtail.recipes.training.model_options import Linear, Timm, Torchvision
from longtail.recipes.training.optimizer_options import Cosine, Optimizer, Steps
from longtail.recipes.training.recipe import Recipe

# One block a stage: the ResNet-10 of the long-tailed literature.
RESNET10 = Timm(network="resnet18", options={"layers": [1, 1, 1, 1]})


def on_imagenet(offset: bool) -> Recipe:
    """From scratch, with the offset or as plain cross-entropy."""
    return Recipe(
        data=imagenet_lt(),
        backbone=RESNET10,
        head=OffsetHead() if offset else Linear(),
        loss=OffsetLoss(center_weight=1.0, uniform_weight=1.0) if offset else CrossEntropy(),
        augment=FLIP_AND_JITTER,
        normalize=IMAGENET,
        optimizer=Optimizer(lr=0.2, momentum=0.9, weight_decay=5e-4),
        schedule=Cosine(by_epoch=True),
        epochs=90,
        batch_size=512,
        num_workers=8,
    )


def fine_tuned(data: Data, offset: bool) -> Recipe:
    """From weights trained on ImageNet."""
    return Recipe(
        data=data,
        backbone=Torchvision(network="resnet152", options={"weights": "IMAGENET1K_V1"}),
        head=OffsetHead() if offset else Linear(),
        loss=OffsetLoss(center_weight=1.0, uniform_weight=1.0) if offset else CrossEntropy(),
        augment=FLIP_AND_JITTER,
        normalize=IMAGENET,
        optimizer=Optimizer(lr=0.01, momentum=0.9, weight_decay=5e-4),
        schedule=Steps(milestones=(10, 20), decay=0.1, by_epoch=True),
        epochs=30,
        batch_size=128,
        num_workers=8,
    )


@named
def imagenet_lt_eo() -> Recipe:
    """Estimated offset on ImageNet-LT, ResNet-10.

    EO §4.1: network, momentum, lambda. Rate, schedule, batch, epochs and decay are not said: those
    of Kang et al. Accuracy 42.9 (table 1). Without the uniform constraint: loss.uniform_weight=0;
    the constraint alone: head.use_offset=false.
    """
    return on_imagenet(offset=True)


@named
def imagenet_lt_eo_baseline() -> Recipe:
    """The baseline of EO on ImageNet-LT, ResNet-10 with cross-entropy.

    EO §4.1, the rest as in imagenet-lt-eo. Accuracy 21.9 (table 1).
    """
    return on_imagenet(offset=False)


@named
def places_lt_eo() -> Recipe:
    """Estimated offset on Places-LT, ResNet-152 trained on ImageNet.

    EO §4.1: network, momentum, lambda. The rest is not said: schedule, batch, epochs and decay are
    LADE's, the rate is ours. Accuracy 39.4 (table 1), on an earlier version of the set.
    """
    return fine_tuned(places_lt(), offset=True)


@named
def places_lt_eo_baseline() -> Recipe:
    """The baseline of EO on Places-LT, ResNet-152 with cross-entropy.

    EO §4.1, the rest as in places-lt-eo. Accuracy 28.2 (table 1).
    """
    return fine_tuned(places_lt(), offset=False)


@named
def sun397_eo() -> Recipe:
    """Estimated offset on SUN397, ResNet-152 trained on ImageNet.

    EO §4.1: network, momentum, lambda. The rest is not said: as in places-lt-eo. Accuracy 58.9
    (table 2). The split is not published as lists: name yours train.txt and test.txt.
    """
    return fine_tuned(sun397(), offset=True)


@named
def sun397_eo_baseline() -> Recipe:
    """The baseline of EO on SUN397, ResNet-152 with cross-entropy.

    EO §4.1, the rest as in sun397-eo. Accuracy 48.0 (table 2).
    """
    return fine_tuned(sun397(), offset=False)
