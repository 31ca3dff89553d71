"""Quick recipes, for a CPU and a first look. They are ours, and stand beside no published figure.

A tenth of each class is held out, so that the log has a validation curve.
"""

from longtail.recipes.training.catalogue.registry import named
from longtail.recipes.training.catalogue.sets import CROP_AND_FLIP
from longtail.recipes.training.data_options import Cifar10, Cifar100, Data, ImageFolder
from longtail.recipes.training.input_options import CIFAR, Crop, Flip
from longtail.recipes.training.loss_options import LADE, CrossEntropy, LogitAdjusted, Loss
from longtail.recipes.training.model_options import ResNet32, SmallCNN
from longtail.recipes.training.optimizer_options import OneCycle, Optimizer
from longtail.recipes.training.recipe import Recipe


def on_cifar(data: Data, loss: Loss) -> Recipe:
    """40 epochs of one cycle up to 0.2."""
    return Recipe(
        data=data,
        backbone=ResNet32(),
        loss=loss,
        augment=CROP_AND_FLIP,
        normalize=CIFAR,
        optimizer=Optimizer(lr=0.2, momentum=0.9, nesterov=True, weight_decay=5e-4),
        schedule=OneCycle(peak=0.25, start=0.1),
        epochs=40,
        batch_size=128,
    )


@named
def cifar10_lt_ce_quick() -> Recipe:
    """Cross-entropy on CIFAR-10-LT in 40 epochs, moved to the uniform prior afterwards.

    Ours.
    """
    return on_cifar(Cifar10(), CrossEntropy())


@named
def cifar10_lt_la_quick() -> Recipe:
    """Logit adjustment on CIFAR-10-LT in 40 epochs.

    Ours.
    """
    return on_cifar(Cifar10(), LogitAdjusted())


@named
def cifar100_lt_ce_quick() -> Recipe:
    """Cross-entropy on CIFAR-100-LT in 40 epochs, moved to the uniform prior afterwards.

    Ours: ResNet-32, one cycle up to 0.2, batch 128, crop and flip.
    """
    return on_cifar(Cifar100(), CrossEntropy())


@named
def cifar100_lt_la_quick() -> Recipe:
    """Logit adjustment on CIFAR-100-LT in 40 epochs.

    Ours: ResNet-32, one cycle up to 0.2, batch 128, crop and flip.
    """
    return on_cifar(Cifar100(), LogitAdjusted())


@named
def cifar100_lt_lade_quick() -> Recipe:
    """LADE on CIFAR-100-LT in 40 epochs.

    Ours, with the alpha and lambda of LADE table 7.
    """
    return on_cifar(Cifar100(), LADE(alpha=0.1, lam=0.01))


@named
def images_la_quick() -> Recipe:
    """Logit adjustment on a folder of your own images, 64 pixels a side, with a small network.

    Ours. The folder has class/file, or train/class/file with val and test beside it if any.
    """
    return Recipe(
        data=ImageFolder(size=64),
        backbone=SmallCNN(),
        loss=LogitAdjusted(),
        augment=(Crop(padding=8), Flip()),
        optimizer=Optimizer(lr=0.1, momentum=0.9, nesterov=True, weight_decay=5e-4),
        schedule=OneCycle(peak=0.25, start=0.1),
        epochs=20,
        batch_size=64,
    )
