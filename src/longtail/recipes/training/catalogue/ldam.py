"""LDAM with deferred re-weighting, the baseline of LA, LADE and ELM (Cao et al., NeurIPS 2019).

All numbers are those of the released code: rate 0.1 after 5 epochs of warm-up, times 0.01 at epochs
160 and 180 of 200, batch 128, weight decay 2e-4, margins up to 0.5, scale 30, class-balanced
weights with β = 0.9999 from epoch 160 on.
"""

from longtail.recipes.training.catalogue.registry import named
from longtail.recipes.training.catalogue.sets import CROP_AND_FLIP, cifar10, cifar100
from longtail.recipes.training.data_options import Data
from longtail.recipes.training.input_options import CIFAR
from longtail.recipes.training.loss_options import LDAM, DeferredReweighting
from longtail.recipes.training.model_options import Cosine, ResNet32
from longtail.recipes.training.optimizer_options import Optimizer, Steps
from longtail.recipes.training.recipe import Recipe


def on_cifar(data: Data) -> Recipe:
    """The released setting."""
    return Recipe(
        data=data,
        backbone=ResNet32(),
        # The head multiplies by the scale, so that the softmax of the logits is what is predicted.
        head=Cosine(scale=30.0),
        loss=LDAM(max_margin=0.5, scale=30.0, scale_in="head"),
        drw=DeferredReweighting(start=160, beta=0.9999),
        augment=CROP_AND_FLIP,
        normalize=CIFAR,
        optimizer=Optimizer(lr=0.1, momentum=0.9, weight_decay=2e-4),
        schedule=Steps(milestones=(160, 180), decay=0.01, warmup=5, by_epoch=True),
        epochs=200,
        batch_size=128,
    )


@named
def cifar10_lt_ldam_drw() -> Recipe:
    """LDAM-DRW on CIFAR-10-LT, ratio 100.

    Released code. LA table 2 quotes a balanced error of 22.97.
    """
    return on_cifar(cifar10())


@named
def cifar100_lt_ldam_drw() -> Recipe:
    """LDAM-DRW on CIFAR-100-LT, ratio 100.

    Released code. LA table 2 quotes a balanced error of 57.96.
    """
    return on_cifar(cifar100())
