"""The recipes of NCM (learned nearest class mean): stage one, and the heads of stage two.

§5.2 says: SGD, half a cosine, instance sampling, ResNet-32 for CIFAR, ResNet-10 for ImageNet-LT;
stage two: rate 5, momentum 0.9, gradients cut at 0.1, which `fit_head` takes by itself. The rest
of stage one follows the code of balanced meta-softmax (Ren et al., NeurIPS 2020), which the paper
names as prior work: batch 512, 13,000 steps, a warm-up from 0.05 to 0.1 over 800 of them, weight
decay 5e-4, AutoAugment and Cutout. Steps are made epochs of 22 (CIFAR-100) and 25 (CIFAR-10).
"""

from __future__ import annotations

from longtail.recipes.training.catalogue.estimated_offset import RESNET10
from longtail.recipes.training.catalogue.registry import named
from longtail.recipes.training.catalogue.sets import (
    FLIP_AND_JITTER,
    cifar10,
    cifar100,
    imagenet_lt,
)
from longtail.recipes.training.data_options import Data
from longtail.recipes.training.input_options import CIFAR, IMAGENET, AutoAugment, Crop, Cutout, Flip
from longtail.recipes.training.model_options import ResNet32
from longtail.recipes.training.optimizer_options import (
    Cosine,
    LearnedNCM,
    MultiNCM,
    NearestClassMean,
    Optimizer,
    SecondStage,
)
from longtail.recipes.training.recipe import Recipe

# The rows of NCM table 1: means, learned means, both with logit adjustment, displacements.
HEADS = SecondStage(
    heads=(
        NearestClassMean(),
        LearnedNCM(),
        LearnedNCM(tau=0.125),
        MultiNCM(num_displacements=20),
        MultiNCM(tau=0.125, num_displacements=20),
    )
)


def on_cifar(data: Data, epochs: int, warmup: int) -> Recipe:
    """Stage one and two."""
    return Recipe(
        data=data,
        backbone=ResNet32(),
        augment=(Crop(padding=4), Flip(), AutoAugment(), Cutout(size=16)),
        normalize=CIFAR,
        optimizer=Optimizer(lr=0.1, momentum=0.9, weight_decay=5e-4),
        schedule=Cosine(warmup=warmup, warmup_start=0.5),
        epochs=epochs,
        batch_size=512,
        second_stage=HEADS,
    )


@named
def cifar10_lt_ncm() -> Recipe:
    """Learned NCM on CIFAR-10-LT, ratio 100: cross-entropy first, then the heads of NCM.

    §5.2 and, for what it does not say (batch, steps, warm-up, decay, augmentation), the code of
    balanced meta-softmax. Accuracy 81.6 (table 2). Batch-norm anew (A.4):
    second_stage.batch_norm=reestimate.
    """
    return on_cifar(cifar10(), epochs=520, warmup=32)


@named
def cifar100_lt_ncm() -> Recipe:
    """Learned NCM on CIFAR-100-LT, ratio 100: cross-entropy first, then the heads of NCM.

    §5.2 and, for what it does not say (batch, steps, warm-up, decay, augmentation), the code of
    balanced meta-softmax. Accuracy 46.0 softmax, 48.7 means, 50.7 learned, 50.9 with adjustment,
    51.0 with displacements too (table 1). Figure 4: data.imbalance_ratio=200 data.held_out=0.1.
    """
    return on_cifar(cifar100(), epochs=591, warmup=36)


@named
def imagenet_lt_ncm() -> Recipe:
    """Learned NCM on ImageNet-LT, ResNet-10: cross-entropy first, then the heads of NCM.

    §5.2 names network, SGD and half a cosine. Rate 0.2, batch 512, 90 epochs, decay 5e-4 and
    augmentation are those of Kang et al. (ICLR 2020): the paper does not say.
    """
    return Recipe(
        data=imagenet_lt(),
        backbone=RESNET10,
        augment=FLIP_AND_JITTER,
        normalize=IMAGENET,
        optimizer=Optimizer(lr=0.2, momentum=0.9, weight_decay=5e-4),
        schedule=Cosine(),
        epochs=90,
        batch_size=512,
        num_workers=8,
        second_stage=HEADS,
    )
