"""The recipes of LA (Menon et al., ICLR 2021).

The paper names the networks and SGD with momentum (§6.2); its appendix C, with the numbers, is not
part of the text we have. For CIFAR they are those of the released code: SGD with Nesterov momentum
0.9, rate 0.1, batch 128, L2 of 1e-4 without the usual half, which is a weight decay of 2e-4, inputs
x/255 − 0.5, crops from a padding of 2 pixels, and as many epochs as 120,000 steps make. For
ImageNet-LT and iNaturalist they are those of table 3 of ELM, which says it follows LA.
Not the same here: the released ResNet-32 has bottleneck blocks, and decays no batch-norm.
"""

from longtail.recipes.catalogue import sets
from longtail.recipes.catalogue.registry import Values, named


def on_imagenet(loss: object) -> Values:
    """ELM table 3, second column."""
    return _table_3(sets.imagenet_lt(), loss, sets.IMAGENET, batch_size=512, weight_decay=5e-4)


def on_inaturalist(loss: object) -> Values:
    """ELM table 3, third column."""
    return _table_3(sets.inaturalist(), loss, sets.INATURALIST, batch_size=1024, weight_decay=1e-4)


def _table_3(
    data: object, loss: object, normalize: object, batch_size: int, weight_decay: float
) -> Values:
    return dict(
        data=data,
        backbone=dict(name="torchvision", network="resnet50"),
        loss=loss,
        augment=("flip",),
        normalize=normalize,
        optimizer=dict(lr=0.4, momentum=0.9, weight_decay=weight_decay),
        schedule="cosine",
        epochs=90,
        batch_size=batch_size,
        num_workers=8,
    )


def _on_cifar(
    classes: int, epochs: int, milestones: tuple[int, ...], warmup: int, errors: tuple[str, ...]
) -> None:
    """The three rows of table 2, by the released code; `errors` are the balanced ones."""
    setting = dict(
        data=sets.cifar(classes),
        backbone="resnet32",
        augment=(dict(name="crop", padding=2), "flip"),
        normalize=dict(mean=(0.5, 0.5, 0.5), std=(1.0, 1.0, 1.0)),
        optimizer=dict(lr=0.1, momentum=0.9, nesterov=True, weight_decay=2e-4),
        schedule=dict(name="steps", milestones=milestones, decay=0.1, warmup=warmup),
        epochs=epochs,
        batch_size=128,
    )
    data, (plain, moved, adjusted, adaptive) = f"CIFAR-{classes}-LT, ratio 100", errors
    named(
        f"cifar{classes}-lt-la-ce",
        f"LA: cross-entropy on {data}, moved to the uniform prior afterwards.",
        f"LA table 2: balanced error {plain}, after logit adjustment by tau=1 {moved}. Setting: "
        "released code.",
        setting | dict(loss="cross_entropy"),
    )
    named(
        f"cifar{classes}-lt-la-adjusted",
        f"LA: the logit-adjusted loss on {data}.",
        f"LA table 2: balanced error {adjusted}. Setting: released code.",
        setting | dict(loss=dict(name="logit_adjusted", tau=1.0)),
    )
    named(
        f"cifar{classes}-lt-la-adjusted-adaptive",
        f"LA: logit adjustment plus the adaptive margin on {data}.",
        f"LA table 2: balanced error {adaptive}. Setting: released code.",
        setting | dict(loss="logit_adjusted_adaptive"),
    )


# 12,406 images of CIFAR-10, 10,847 of CIFAR-100.
_on_cifar(10, 1241, (604, 926, 1128), 20, ("27.16", "22.60", "22.33", "22.42"))
_on_cifar(100, 1419, (691, 1059, 1290), 22, ("61.64", "58.24", "56.11", "55.92"))
named(
    "imagenet-lt-la-ce",
    "LA: cross-entropy on ImageNet-LT, ResNet-50, moved to the uniform prior afterwards.",
    "LA table 2: balanced error 53.11, after logit adjustment by tau=1 49.66. Setting: ELM "
    "table 3; what is cut out of images by Goyal et al. (2017), which ELM A.1 names.",
    on_imagenet("cross_entropy"),
)
named(
    "imagenet-lt-la-adjusted",
    "LA: the logit-adjusted loss on ImageNet-LT, ResNet-50.",
    "LA table 2: balanced error 48.89. Setting: ELM table 3.",
    on_imagenet(dict(name="logit_adjusted", tau=1.0)),
)
named(
    "inaturalist-la-ce",
    "LA: cross-entropy on iNaturalist 2018, ResNet-50, moved to the uniform prior afterwards.",
    "LA table 2: balanced error 38.66, after logit adjustment by tau=1 33.98. Setting: ELM "
    "table 3; the channels' mean and deviation are those of released code.",
    on_inaturalist("cross_entropy"),
)
named(
    "inaturalist-la-adjusted",
    "LA: the logit-adjusted loss on iNaturalist 2018, ResNet-50.",
    "LA table 2: balanced error 33.64. Setting: ELM table 3.",
    on_inaturalist(dict(name="logit_adjusted", tau=1.0)),
)
