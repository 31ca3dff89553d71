"""The recipes of LADE (Hong et al., CVPR 2021): appendix, "Implementation details" and table 7.

SGD with momentum 0.9 and weight decay 5e-4 throughout. The warm-up from a third of the rate, rates
that stay the same within an epoch and crops of random size (the appendix has them of 224 out of 256
pixels) are those of the released code. "Softmax" is what PC
Softmax starts from: its scores carry the training prior and are moved to the target afterwards.
"""

from __future__ import annotations

from longtail.recipes.training.catalogue.registry import named
from longtail.recipes.training.catalogue.sets import (
    CROP_AND_FLIP,
    FLIP_AND_JITTER,
    cifar100,
    imagenet_lt,
    inaturalist,
    places_lt,
)
from longtail.recipes.training.input_options import CIFAR, IMAGENET, INATURALIST, Flip
from longtail.recipes.training.loss_options import LADE, CrossEntropy, Loss
from longtail.recipes.training.model_options import ResNet32, Torchvision
from longtail.recipes.training.optimizer_options import Cosine, Optimizer, Steps
from longtail.recipes.training.recipe import Recipe


def on_cifar(imbalance_ratio: float, loss: Loss) -> Recipe:
    """200 epochs, rate 0.2, times 0.01 at 120 and 160."""
    return Recipe(
        data=cifar100(imbalance_ratio),
        backbone=ResNet32(dim=128),
        loss=loss,
        augment=CROP_AND_FLIP,
        normalize=CIFAR,
        optimizer=Optimizer(lr=0.2, momentum=0.9, weight_decay=5e-4),
        schedule=Steps(
            milestones=(120, 160), decay=0.01, warmup=5, warmup_start=1 / 3, by_epoch=True
        ),
        epochs=200,
        batch_size=256,
    )


def on_places(loss: Loss) -> Recipe:
    """ResNet-152 trained on ImageNet, 30 epochs, times 0.1 every 10."""
    return Recipe(
        data=places_lt(),
        backbone=Torchvision(network="resnet152", options={"weights": "IMAGENET1K_V1"}),
        loss=loss,
        augment=FLIP_AND_JITTER,
        normalize=IMAGENET,
        optimizer=Optimizer(lr=0.001, head_lr=0.05, momentum=0.9, weight_decay=5e-4),
        schedule=Steps(milestones=(10, 20), decay=0.1, by_epoch=True),
        epochs=30,
        batch_size=128,
        num_workers=8,
    )


def on_imagenet(loss: Loss) -> Recipe:
    """ResNeXt-50-32x4d, 180 epochs, half a cosine from 0.05."""
    return Recipe(
        data=imagenet_lt(),
        backbone=Torchvision(network="resnext50_32x4d"),
        loss=loss,
        augment=FLIP_AND_JITTER,
        normalize=IMAGENET,
        optimizer=Optimizer(lr=0.05, momentum=0.9, weight_decay=5e-4),
        schedule=Cosine(by_epoch=True),
        epochs=180,
        batch_size=256,
        num_workers=8,
    )


def on_inaturalist(loss: Loss) -> Recipe:
    """ResNet-50, 200 epochs, half a cosine from 0.1."""
    return Recipe(
        data=inaturalist(),
        backbone=Torchvision(network="resnet50"),
        loss=loss,
        augment=(Flip(),),
        normalize=INATURALIST,
        optimizer=Optimizer(lr=0.1, momentum=0.9, weight_decay=5e-4),
        schedule=Cosine(by_epoch=True),
        epochs=200,
        batch_size=256,
        num_workers=8,
    )


@named
def cifar100_lt_lade() -> Recipe:
    """LADE on CIFAR-100-LT, ratio 100.

    Appendix and table 7 (alpha 0.1, lambda 0.01, batch 256); accuracy 45.4 (table 2). The network
    is the 128-dimensional one of the released code, which the paper calls ResNet-32.
    """
    return on_cifar(100.0, LADE(alpha=0.1, lam=0.01))


@named
def cifar100_lt50_lade() -> Recipe:
    """LADE on CIFAR-100-LT, ratio 50.

    As at ratio 100 but alpha 0.01 (table 7); accuracy 50.5 (table 2).
    """
    return on_cifar(50.0, LADE(alpha=0.01, lam=0.01))


@named
def cifar100_lt10_lade() -> Recipe:
    """LADE on CIFAR-100-LT, ratio 10.

    As at ratio 100 but alpha 0.01 (table 7); accuracy 61.7 (table 2).
    """
    return on_cifar(10.0, LADE(alpha=0.01, lam=0.01))


@named
def cifar100_lt_lade_softmax() -> Recipe:
    """Softmax and PC Softmax of LADE on CIFAR-100-LT, ratio 100.

    Appendix; accuracy 41.0 as it is and 45.3 under the uniform prior (table 2).
    """
    return on_cifar(100.0, CrossEntropy())


@named
def places_lt_lade() -> Recipe:
    """LADE on Places-LT, ResNet-152 trained on ImageNet.

    Appendix and table 7 (alpha 0.005, lambda 0.1, batch 128); accuracy 38.8 (table 3). The
    classifier has a rate of its own. Crops of random size and how strong the jitter is are of
    released code.
    """
    return on_places(LADE(alpha=0.005, lam=0.1))


@named
def places_lt_lade_softmax() -> Recipe:
    """Softmax and PC Softmax of LADE on Places-LT, ResNet-152 trained on ImageNet.

    Appendix; the setting of places-lt-lade.
    """
    return on_places(CrossEntropy())


@named
def imagenet_lt_lade() -> Recipe:
    """LADE on ImageNet-LT, ResNeXt-50-32x4d, 180 epochs.

    Appendix and table 7 (alpha 0.05, lambda 0.5, batch 256); accuracy 53.0 (table 4). Crops of
    random size and how strong the jitter is are of released code.
    """
    return on_imagenet(LADE(alpha=0.05, lam=0.5))


@named
def imagenet_lt_lade_softmax() -> Recipe:
    """Softmax and PC Softmax of LADE on ImageNet-LT, ResNeXt-50-32x4d, 180 epochs.

    Appendix; accuracy 48.2 as it is and 52.8 under the uniform prior (table 4).
    """
    return on_imagenet(CrossEntropy())


@named
def inaturalist_lade() -> Recipe:
    """LADE on iNaturalist 2018, ResNet-50, 200 epochs.

    Appendix and table 7 (alpha 0.05, lambda 0.5, batch 256); accuracy 70.0 (table 5). Crops of
    random size and no jitter, as in released code.
    """
    return on_inaturalist(LADE(alpha=0.05, lam=0.5))


@named
def inaturalist_lade_softmax() -> Recipe:
    """Softmax and PC Softmax of LADE on iNaturalist 2018, ResNet-50, 200 epochs.

    Appendix; accuracy 65.0 as it is and 69.3 under the uniform prior (table 5).
    """
    return on_inaturalist(CrossEntropy())
