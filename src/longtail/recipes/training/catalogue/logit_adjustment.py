"""The recipes of LA (Menon et al., ICLR 2021).

The paper names the networks and SGD with momentum (§6.2); its appendix C, with the numbers, is not
part of the text we have. For CIFAR they are those of the released code: SGD with Nesterov momentum
0.9, rate 0.1, batch 128, L2 of 1e-4 without the usual half, which is a weight decay of 2e-4, inputs
x/255 − 0.5, crops from a padding of 2 pixels, and as many epochs as 120,000 steps make. For
ImageNet-LT and iNaturalist they are those of table 3 of ELM, which says it follows LA.
Not the same here: the released ResNet-32 has bottleneck blocks, and decays no batch-norm.
"""

from __future__ import annotations

from longtail.recipes.training.catalogue.registry import named
from longtail.recipes.training.catalogue.sets import cifar10, cifar100, imagenet_lt, inaturalist
from longtail.recipes.training.data_options import Data
from longtail.recipes.training.input_options import (
    IMAGENET,
    INATURALIST,
    Crop,
    Flip,
    Normalization,
)
from longtail.recipes.training.loss_options import (
    CrossEntropy,
    LogitAdjusted,
    LogitAdjustedAdaptive,
    Loss,
)
from longtail.recipes.training.model_options import ResNet32, Torchvision
from longtail.recipes.training.optimizer_options import Cosine, Optimizer, Steps
from longtail.recipes.training.recipe import Recipe


def on_cifar(data: Data, loss: Loss, epochs: int, schedule: Steps) -> Recipe:
    """The released setting."""
    return Recipe(
        data=data,
        backbone=ResNet32(),
        loss=loss,
        augment=(Crop(padding=2), Flip()),
        normalize=Normalization(mean=(0.5, 0.5, 0.5), std=(1.0, 1.0, 1.0)),
        optimizer=Optimizer(lr=0.1, momentum=0.9, nesterov=True, weight_decay=2e-4),
        schedule=schedule,
        epochs=epochs,
        batch_size=128,
    )


def on_cifar10(loss: Loss) -> Recipe:
    """1,241 epochs of 12,406 images."""
    schedule = Steps(milestones=(604, 926, 1128), decay=0.1, warmup=20)
    return on_cifar(cifar10(), loss, 1241, schedule)


def on_cifar100(loss: Loss) -> Recipe:
    """1,419 epochs of 10,847 images."""
    schedule = Steps(milestones=(691, 1059, 1290), decay=0.1, warmup=22)
    return on_cifar(cifar100(), loss, 1419, schedule)


def on_imagenet(loss: Loss) -> Recipe:
    """ELM table 3, second column."""
    return _table_3(imagenet_lt(), loss, IMAGENET, batch_size=512, weight_decay=5e-4)


def on_inaturalist(loss: Loss) -> Recipe:
    """ELM table 3, third column."""
    return _table_3(inaturalist(), loss, INATURALIST, batch_size=1024, weight_decay=1e-4)


def _table_3(
    data: Data, loss: Loss, normalize: Normalization, batch_size: int, weight_decay: float
) -> Recipe:
    return Recipe(
        data=data,
        backbone=Torchvision(network="resnet50"),
        loss=loss,
        augment=(Flip(),),
        normalize=normalize,
        optimizer=Optimizer(lr=0.4, momentum=0.9, weight_decay=weight_decay),
        schedule=Cosine(),
        epochs=90,
        batch_size=batch_size,
        num_workers=8,
    )


@named
def cifar10_lt_la_ce() -> Recipe:
    """LA: cross-entropy on CIFAR-10-LT, ratio 100, moved to the uniform prior afterwards.

    LA table 2: balanced error 27.16, after logit adjustment by tau=1 22.60. Setting: released code.
    """
    return on_cifar10(CrossEntropy())


@named
def cifar10_lt_la_adjusted() -> Recipe:
    """LA: the logit-adjusted loss on CIFAR-10-LT, ratio 100.

    LA table 2: balanced error 22.33. Setting: released code.
    """
    return on_cifar10(LogitAdjusted(tau=1.0))


@named
def cifar10_lt_la_adjusted_adaptive() -> Recipe:
    """LA: logit adjustment plus the adaptive margin on CIFAR-10-LT, ratio 100.

    LA table 2: balanced error 22.42. Setting: released code.
    """
    return on_cifar10(LogitAdjustedAdaptive())


@named
def cifar100_lt_la_ce() -> Recipe:
    """LA: cross-entropy on CIFAR-100-LT, ratio 100, moved to the uniform prior afterwards.

    LA table 2: balanced error 61.64, after logit adjustment by tau=1 58.24. Setting: released code.
    """
    return on_cifar100(CrossEntropy())


@named
def cifar100_lt_la_adjusted() -> Recipe:
    """LA: the logit-adjusted loss on CIFAR-100-LT, ratio 100.

    LA table 2: balanced error 56.11. Setting: released code.
    """
    return on_cifar100(LogitAdjusted(tau=1.0))


@named
def cifar100_lt_la_adjusted_adaptive() -> Recipe:
    """LA: logit adjustment plus the adaptive margin on CIFAR-100-LT, ratio 100.

    LA table 2: balanced error 55.92. Setting: released code.
    """
    return on_cifar100(LogitAdjustedAdaptive())


@named
def imagenet_lt_la_ce() -> Recipe:
    """LA: cross-entropy on ImageNet-LT, ResNet-50, moved to the uniform prior afterwards.

    LA table 2: balanced error 53.11, after logit adjustment by tau=1 49.66. Setting: ELM table 3;
    what is cut out of images by Goyal et al. (2017), which ELM A.1 names.
    """
    return on_imagenet(CrossEntropy())


@named
def imagenet_lt_la_adjusted() -> Recipe:
    """LA: the logit-adjusted loss on ImageNet-LT, ResNet-50.

    LA table 2: balanced error 48.89. Setting: ELM table 3.
    """
    return on_imagenet(LogitAdjusted(tau=1.0))


@named
def inaturalist_la_ce() -> Recipe:
    """LA: cross-entropy on iNaturalist 2018, ResNet-50, moved to the uniform prior afterwards.

    LA table 2: balanced error 38.66, after logit adjustment by tau=1 33.98. Setting: ELM table 3;
    the channels' mean and deviation are those of released code.
    """
    return on_inaturalist(CrossEntropy())


@named
def inaturalist_la_adjusted() -> Recipe:
    """LA: the logit-adjusted loss on iNaturalist 2018, ResNet-50.

    LA table 2: balanced error 33.64. Setting: ELM table 3.
    """
    return on_inaturalist(LogitAdjusted(tau=1.0))
