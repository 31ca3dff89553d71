"""Quick recipes, for a CPU and a first look. They are ours, and stand beside no published figure.

A tenth of each class is for validation, so that the log has a validation curve.
"""

from longtail.recipes.catalogue import sets
from longtail.recipes.catalogue.registry import named

_ONE_CYCLE = dict(name="one_cycle", peak=0.25, start=0.1)
_SGD = dict(momentum=0.9, nesterov=True, weight_decay=5e-4)
_ON_CIFAR = sets.RESNET32_ON_CIFAR | dict(
    optimizer=_SGD | dict(lr=0.2), schedule=_ONE_CYCLE, epochs=40
)


def _on_cifar(classes: int, source: str) -> None:
    """Cross-entropy and logit adjustment."""
    setting, data = _ON_CIFAR | dict(data=f"cifar{classes}"), f"CIFAR-{classes}-LT in 40 epochs"
    named(
        f"cifar{classes}-lt-ce-quick",
        f"Cross-entropy on {data}, moved to the uniform prior afterwards.",
        source,
        setting | dict(loss="cross_entropy"),
    )
    named(
        f"cifar{classes}-lt-la-quick",
        f"Logit adjustment on {data}.",
        source,
        setting | dict(loss="logit_adjusted"),
    )


_on_cifar(10, "Ours.")
_on_cifar(100, "Ours: ResNet-32, one cycle up to 0.2, batch 128, crop and flip.")
named(
    "cifar100-lt-lade-quick",
    "LADE on CIFAR-100-LT in 40 epochs.",
    "Ours, with the alpha and lambda of LADE table 7.",
    _ON_CIFAR | dict(data="cifar100", loss=dict(name="lade", alpha=0.1, lam=0.01)),
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
        optimizer=_SGD | dict(lr=0.1),
        schedule=_ONE_CYCLE,
        epochs=20,
        batch_size=64,
    ),
)
