"""The recipes of ELM (Jitkrittum et al., 2022): table 3, appendices A.1 and A.2.

Table 3 says "SGD with momentum"; 0.9 is the usual one. Networks, rates, epochs, batches, schedules
and weight decay are its; crops of 4 pixels and flips are of A.1, margins and strengths of A.2.
The mean and deviation of the channels are those of most released code: the paper names none.
"""

from __future__ import annotations

from longtail.recipes.training.catalogue import logit_adjustment
from longtail.recipes.training.catalogue.registry import named
from longtail.recipes.training.catalogue.sets import CROP_AND_FLIP, cifar10, cifar100
from longtail.recipes.training.data_options import Data
from longtail.recipes.training.input_options import CIFAR
from longtail.recipes.training.loss_options import ELM, CrossEntropy, LogitAdjusted, Loss
from longtail.recipes.training.model_options import ResNet32
from longtail.recipes.training.optimizer_options import Optimizer, Steps
from longtail.recipes.training.recipe import Recipe


def on_cifar(data: Data, loss: Loss) -> Recipe:
    """Table 3, first column."""
    return Recipe(
        data=data,
        backbone=ResNet32(),
        loss=loss,
        augment=CROP_AND_FLIP,
        normalize=CIFAR,
        optimizer=Optimizer(lr=0.4, momentum=0.9, weight_decay=1e-4),
        schedule=Steps(milestones=(96, 192, 224), decay=0.1, warmup=15),
        epochs=256,
        batch_size=128,
    )


@named
def cifar10_lt_elm() -> Recipe:
    """ELM on CIFAR-10-LT, ratio 100.

    Table 3; A.2: margins P(y), lambda 0.01. Accuracy 77.95 (table 2).
    """
    return on_cifar(cifar10(), ELM(lam=0.01, margins="prior"))


@named
def cifar10_lt_elm_ce() -> Recipe:
    """Cross-entropy in the setting of ELM on CIFAR-10-LT, ratio 100.

    Table 3; accuracy 72.84 (table 2).
    """
    return on_cifar(cifar10(), CrossEntropy())


@named
def cifar10_lt_elm_adjusted() -> Recipe:
    """Logit adjustment in the setting of ELM on CIFAR-10-LT, ratio 100.

    Table 3; accuracy 77.67 (table 2).
    """
    return on_cifar(cifar10(), LogitAdjusted(tau=1.0))


@named
def cifar100_lt_elm() -> Recipe:
    """ELM on CIFAR-100-LT, ratio 100.

    Table 3; A.2: margins sqrt(n), lambda 0.01. Accuracy 45.77 (table 2).
    """
    return on_cifar(cifar100(), ELM(lam=0.01, margins="sqrt_count"))


@named
def cifar100_lt_elm_ce() -> Recipe:
    """Cross-entropy in the setting of ELM on CIFAR-100-LT, ratio 100.

    Table 3; accuracy 38.36 (table 2).
    """
    return on_cifar(cifar100(), CrossEntropy())


@named
def cifar100_lt_elm_adjusted() -> Recipe:
    """Logit adjustment in the setting of ELM on CIFAR-100-LT, ratio 100.

    Table 3; accuracy 43.89 (table 2).
    """
    return on_cifar(cifar100(), LogitAdjusted(tau=1.0))


@named
def imagenet_lt_elm() -> Recipe:
    """ELM on ImageNet-LT, ResNet-50.

    Table 3; A.2: margins 10 sqrt(P(y)), lambda 0.001. Accuracy 50.60 (table 2).
    """
    return logit_adjustment.on_imagenet(ELM(lam=0.001, margins="sqrt_prior", scale=10.0))


@named
def inaturalist_elm() -> Recipe:
    """ELM on iNaturalist 2018, ResNet-50.

    Table 3; A.2: margins sqrt(n), lambda 0.01. Accuracy 68.71 (table 2).
    """
    return logit_adjustment.on_inaturalist(ELM(lam=0.01, margins="sqrt_count"))
