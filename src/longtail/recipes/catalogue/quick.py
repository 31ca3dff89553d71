"""Quick recipes, for a CPU and a first look. They are ours, and stand beside no published figure.

A tenth of each class is held out, so that the log has a validation curve.
"""

from longtail.recipes.catalogue import sets
from longtail.recipes.catalogue.registry import Values, named

ONE_CYCLE = dict(name="one_cycle", peak=0.25, start=0.1)


def on_cifar(data: object, loss: object) -> Values:
    """40 epochs of one cycle up to 0.2."""
    return dict(
        data=data,
        backbone="resnet32",
        loss=loss,
        augment=sets.CROP_AND_FLIP,
        normalize=sets.CIFAR,
        optimizer=dict(lr=0.2, momentum=0.9, nesterov=True, weight_decay=5e-4),
        schedule=ONE_CYCLE,
        epochs=40,
        batch_size=128,
    )


named(
    "cifar10-lt-ce-quick",
    "Cross-entropy on CIFAR-10-LT in 40 epochs, moved to the uniform prior afterwards.",
    "Ours.",
    on_cifar("cifar10", "cross_entropy"),
)
named(
    "cifar10-lt-la-quick",
    "Logit adjustment on CIFAR-10-LT in 40 epochs.",
    "Ours.",
    on_cifar("cifar10", "logit_adjusted"),
)
named(
    "cifar100-lt-ce-quick",
    "Cross-entropy on CIFAR-100-LT in 40 epochs, moved to the uniform prior afterwards.",
    "Ours: ResNet-32, one cycle up to 0.2, batch 128, crop and flip.",
    on_cifar("cifar100", "cross_entropy"),
)
named(
    "cifar100-lt-la-quick",
    "Logit adjustment on CIFAR-100-LT in 40 epochs.",
    "Ours: ResNet-32, one cycle up to 0.2, batch 128, crop and flip.",
    on_cifar("cifar100", "logit_adjusted"),
)
named(
    "cifar100-lt-lade-quick",
    "LADE on CIFAR-100-LT in 40 epochs.",
    "Ours, with the alpha and lambda of LADE table 7.",
    on_cifar("cifar100", dict(name="lade", alpha=0.1, lam=0.01)),
)
named(
    "images-la-quick",
    "Logit adjustment on a folder of your own images, 64 pixels a side, with a small network.",
    "Ours. The folder has class/file, or train/class/file with val and test beside it if any.",
    dict(
        data=dict(kind="folder", size=64),
        backbone="small_cnn",
        loss="logit_adjusted",
        augment=(dict(name="crop", padding=8), "flip"),
        optimizer=dict(lr=0.1, momentum=0.9, nesterov=True, weight_decay=5e-4),
        schedule=ONE_CYCLE,
        epochs=20,
        batch_size=64,
    ),
)
