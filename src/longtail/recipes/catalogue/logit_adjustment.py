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


def on_cifar(
    data: object, loss: object, epochs: int, milestones: tuple[int, ...], warmup: int
) -> Values:
    """The released setting."""
    return dict(
        data=data,
        backbone="resnet32",
        loss=loss,
        augment=(dict(name="crop", padding=2), "flip"),
        normalize=dict(mean=(0.5, 0.5, 0.5), std=(1.0, 1.0, 1.0)),
        optimizer=dict(lr=0.1, momentum=0.9, nesterov=True, weight_decay=2e-4),
        schedule=dict(name="steps", milestones=milestones, decay=0.1, warmup=warmup),
        epochs=epochs,
        batch_size=128,
    )


def on_cifar10(loss: object) -> Values:
    """1,241 epochs of 12,406 images."""
    return on_cifar(sets.cifar10(), loss, 1241, (604, 926, 1128), warmup=20)


def on_cifar100(loss: object) -> Values:
    """1,419 epochs of 10,847 images."""
    return on_cifar(sets.cifar100(), loss, 1419, (691, 1059, 1290), warmup=22)


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


named(
    "cifar10-lt-la-ce",
    "LA: cross-entropy on CIFAR-10-LT, ratio 100, moved to the uniform prior afterwards.",
    "LA table 2: balanced error 27.16, after logit adjustment by tau=1 22.60. Setting: "
    "released code.",
    on_cifar10("cross_entropy"),
)
named(
    "cifar10-lt-la-adjusted",
    "LA: the logit-adjusted loss on CIFAR-10-LT, ratio 100.",
    "LA table 2: balanced error 22.33. Setting: released code.",
    on_cifar10(dict(name="logit_adjusted", tau=1.0)),
)
named(
    "cifar10-lt-la-adjusted-adaptive",
    "LA: logit adjustment plus the adaptive margin on CIFAR-10-LT, ratio 100.",
    "LA table 2: balanced error 22.42. Setting: released code.",
    on_cifar10("logit_adjusted_adaptive"),
)
named(
    "cifar100-lt-la-ce",
    "LA: cross-entropy on CIFAR-100-LT, ratio 100, moved to the uniform prior afterwards.",
    "LA table 2: balanced error 61.64, after logit adjustment by tau=1 58.24. Setting: "
    "released code.",
    on_cifar100("cross_entropy"),
)
named(
    "cifar100-lt-la-adjusted",
    "LA: the logit-adjusted loss on CIFAR-100-LT, ratio 100.",
    "LA table 2: balanced error 56.11. Setting: released code.",
    on_cifar100(dict(name="logit_adjusted", tau=1.0)),
)
named(
    "cifar100-lt-la-adjusted-adaptive",
    "LA: logit adjustment plus the adaptive margin on CIFAR-100-LT, ratio 100.",
    "LA table 2: balanced error 55.92. Setting: released code.",
    on_cifar100("logit_adjusted_adaptive"),
)
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
